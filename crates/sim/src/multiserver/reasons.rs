//! Known reasons why the model does not reproduce a claim.

/// A prefix of claims' names, and the reason.
const REASONS: [(&str, &str); 8] = [
    (
        "figure 2",
        "with many connections the program is always busy; whether its calls to other servers or a kernel's calls and \
         segments cost more is assumed, within half to twice of each",
    ),
    (
        "10 B, driver 200",
        "a driver at 200 MHz is always busy and the bottleneck: by its range a message costs it as much as ip, which the paper's \
         driver cannot have cost",
    ),
    (
        "10 B, 2267",
        "waking takes longer than a message only after a sleep, and with eight connections few servers sleep: the faster clock gains \
         more than sleeps cost",
    ),
    (
        "10 B",
        "the program is busy for four fifths there: what lighttpd and its calls cost on NewtOS is assumed, and eight \
         connections hide no more of the way through four servers",
    ),
    (
        "100 kB, driver",
        "as for 10 B: a message costs the driver as much as ip, so at 200 MHz it is the bottleneck",
    ),
    (
        "100 kB",
        "tcp does not copy any more, so tcp and ip are the bottleneck below 600 MHz only; then answers wait for windows that begin \
         small, and for acknowledgements whose way was fitted to streams in bulk",
    ),
    (
        "together",
        "fast cores lose nothing here, so what is fastest is nearly best; and most of the chip's power is static, so it \
         brings nearly most a joule, too",
    ),
    (
        "1",
        "eight connections in bulk keep each server at work, so that who sleeps delays one of them and not all: wake-ups of fast \
         cores cost less than what a faster core gains, as in slower-is-faster",
    ),
];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|(begins, _)| claim.starts_with(begins)).map(|(_, why)| why)
}

#[cfg(test)]
mod tests;

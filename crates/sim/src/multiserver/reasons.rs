//! Known reasons why the model does not reproduce a claim.

/// A prefix of claims' names, and the reason.
const REASONS: [(&str, &str); 10] = [
    (
        "figure 2",
        "with many connections the program is always busy; whether its calls to other servers or a kernel's calls and \
         segments cost more is assumed, within half to twice of each",
    ),
    (
        "10 B, driver 200",
        "where the fitted exit is short a driver at 200 MHz is the bottleneck, and its messages cost as much as ip's by their range",
    ),
    (
        "10 B, 2267",
        "every server sleeps after nearly each message at 1600 MHz, too, so that a faster clock loses nothing by more sleeps",
    ),
    (
        "10 B",
        "the program is busy for less than half: with eight connections it waits for the sleeps of three servers, on the way in and \
         out, and what lighttpd and its calls cost on NewtOS is assumed",
    ),
    (
        "100 kB, driver",
        "a driver at 200 MHz carries some 5 Gb/s, and is the bottleneck where tcp and ip carry more",
    ),
    (
        "100 kB",
        "tcp does not copy any more, so tcp and ip are the bottleneck below 400 MHz only; then answers wait for windows that begin \
         small, and for sleeps",
    ),
    (
        "together, 10 B energy",
        "a core that sleeps takes nothing in the model, so that a fast one which sleeps takes what a slow one takes that works",
    ),
    (
        "together, 10 B",
        "slow servers sleep less and answer more there, so that the rate falls from 400 to 600 MHz, and the search ends",
    ),
    (
        "together",
        "1 MB and 10 MB carry nearly the most that they ever do from 600 MHz on, so what is fastest is best; and a core that sleeps takes nothing in \
         the model, so that it brings nearly most a joule, too",
    ),
    (
        "1",
        "1 MB and 10 MB carry nearly the most that they ever do from 600 MHz on, since tcp does not copy here, so that few sleeps are felt",
    ),
];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|(begins, _)| claim.starts_with(begins)).map(|(_, why)| why)
}

#[cfg(test)]
mod tests;

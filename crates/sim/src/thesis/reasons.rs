//! Known reasons why the model does not reproduce a claim.

const TCP_IS_BUSY: &str = "as the costs stand tcp is always busy on this machine, so what ip's sleeps cost is not felt; the \
                           thesis' tcp idles at times";
const DRIVER: &str = "a message costs the driver as much as ip by its range, and without offloads each packet is one, so at 800 MHz \
                      the driver is the bottleneck";
const SECOND: &str = "as the costs are fitted the four cards are the bottleneck; where they are drawn dearer tcp is nearly as slow \
                      as ip, and at 1600 MHz the bottleneck itself";

/// A prefix of claims' names, and the reason.
const REASONS: [(&str, &str); 15] = [
    ("figure 4.1, ip", TCP_IS_BUSY),
    ("figure 4.1, driver", DRIVER),
    ("figure 4.1, tcp", "where the driver or ip are drawn dearer than tcp, they bound the stack"),
    ("figure 4.2", TCP_IS_BUSY),
    ("figure 4.3, mixed", DRIVER),
    (
        "figure 4.3, all 800",
        "messages cost what was fitted to 10 Gb/s with offloads; for 3.3 Gb/s in single packets they would have to cost less",
    ),
    ("section 4.2, polling", TCP_IS_BUSY),
    ("figure 4.4, 1 Gb/s", "follows from costs of messages and switches, both assumed within half to twice"),
    (
        "section 4.3, stalls",
        "batches lose nothing and no timer of tcp's runs out, so that there is no congestion control that could stall",
    ),
    ("figure 4.4, posix", "each answer to it is a kernel call of tcp's, which bounds the stack"),
    ("figure 4.5", DRIVER),
    ("figure 4.6", SECOND),
    ("figure 4.7, boosted", "follows from tcp's costs at 1600 MHz"),
    ("figure 4.7", SECOND),
    (
        "figure 4.8",
        "a quarter of a message's cycles is assumed to wait for memory; threads equal cores only if some half does",
    ),
];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|(begins, _)| claim.starts_with(begins)).map(|(_, why)| why)
}

#[cfg(test)]
mod tests;

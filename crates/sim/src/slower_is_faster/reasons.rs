//! Known reasons why the model does not reproduce a claim.

/// A prefix of claims' names, and the reason.
const REASONS: [(&str, &str); 12] = [
    (
        "section 4.2, driver",
        "a driver costs as much as the range says: a message's cycles are assumed within half to twice, which its core feels",
    ),
    (
        "figure 2, 200",
        "tcp is the bottleneck there, and copying, messages and sleeping share its 70% at 1600 MHz in other ways in each draw",
    ),
    (
        "figure 2, half beats all",
        "what tcp saves in sleeps at 1200 MHz it needs for its messages, which the fit makes dear; 2% are missing as the model stands",
    ),
    (
        "figure 2",
        "what slower cores save is sleeps, what they cost is that each message takes longer: streams, sizes and costs of messages, \
         which are assumed, leave the fitted exit much room; with large segments few sleeps are left to save",
    ),
    (
        "section 4.3, copying",
        "Table 2 falls with the clock by a tenth, which the fit reaches by dear messages, since bytes of 16 KB are copied while \
         other streams wait anyway; so little of tcp's 70% is left for copying",
    ),
    ("section 4.3", "where the others become the bottleneck depends on their assumed cycles a message"),
    (
        "figure 3, third",
        "the rate is at the window's limit by then, so tcp's last steps give the others nothing more to do",
    ),
    (
        "figure 3",
        "where ip's and the driver's messages are drawn cheaper, they have time left beside a tcp at 600 MHz",
    ),
    (
        "figure 5, utilisation",
        "compares what is used; both carry the same rate where tcp or the window is the limit",
    ),
    (
        "figure 5",
        "with tcp at the same clock two threads are always busy, too, and just carry what two cores carry; where they do not is a \
         matter of what ip's and the driver's messages cost beside tcp's, each assumed within half to twice",
    ),
    (
        "section 4.5, less",
        "where the fitted exit is long, one core without sleeps does nearly as much as three that sleep",
    ),
    (
        "section 4.5",
        "sharing costs too little: kernel calls for each message and batch, switches and cold caches after them are charged, but \
         a server keeps the core until it has nothing to do, so there are few switches",
    ),
];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.iter().find(|(name, _)| claim.starts_with(name)).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests;

//! Known reasons why the model does not reproduce a claim.

const SET_OFFLINE: &str = "two more CPUs of a set cost some 4 to 15% of one in the paper; the range of that share, from \
    another kernel, ends at 36%";

/// A prefix of claims' names, and the reason.
const REASONS: [(&str, &str); 7] = [
    (
        "no wait, native",
        "what is left to do once the CPU runs is taken from another kernel and natively in proportion to the software: the upper \
         half of its range is too much",
    ),
    (
        "no wait, three at once",
        "two more CPUs of a set cost 165 us each in the paper, 43% of one; on the kernel that the model's share is from it is 32% \
         of 270 us",
    ),
    (
        "no wait",
        "0.38 ms end to end after an exit of 0.27 ms: in the paper 41% of the software comes after the exit, on the kernel \
         that was traced 14%",
    ),
    (
        "abstract, online ARM",
        "12 ms to 0.22 ms, which are input, are 54 times; the 21 times of the abstract would need 0.36 ms after the exit, \
         which the paper does not name",
    ),
    ("at once, offline", SET_OFFLINE),
    ("three offline, Bolt at once", SET_OFFLINE),
    ("section 1, three offline", SET_OFFLINE),
];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.iter().find(|(name, _)| claim.starts_with(name)).map(|(_, reason)| *reason)
}

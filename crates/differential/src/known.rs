//! Differences that are known and have a reason. docs/differential.md lists them with the same names.

use crate::program::{Call, Program, Step};

/// A difference, after the step at which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which step, from 0.
    pub step: usize,
    pub name: String,
    pub kernel: String,
    pub eft: String,
}

/// A known one: its name, and whether a difference is it.
type Known = (&'static str, fn(&Program, &Step, &Difference) -> bool);

const KNOWN: &[Known] = &[
    ("low-water readiness", |program, _, d| {
        is(d, " ready") && without(&d.eft, "IN") == d.kernel && sets_low_water(program)
    }),
    ("hang-up of a bound socket", |_, step, d| {
        let bind = matches!(step, Step::Call(_, Call::Bind { .. }));
        bind && is(d, " ready") && (d.kernel.as_str(), d.eft.as_str()) == ("OUT HUP", "OUT")
    }),
    ("unsent end of stream", |_, step, d| {
        let shutdown = matches!(step, Step::Call(_, Call::Shutdown { how: libc::SHUT_WR | libc::SHUT_RDWR }));
        let count = |words: &str| words.parse::<u32>().ok();
        shutdown && is(d, " unsent") && count(&d.eft).is_some_and(|n| count(&d.kernel) == n.checked_add(1))
    }),
];

/// Whether it is in this observation of a slot.
fn is(difference: &Difference, observation: &str) -> bool {
    difference.name.starts_with("slot ") && difference.name.ends_with(observation)
}

fn without(words: &str, word: &str) -> String {
    words.split(' ').filter(|other| *other != word).collect::<Vec<_>>().join(" ")
}

fn sets_low_water(program: &Program) -> bool {
    let sets = |step: &Step| {
        matches!(step, Step::Call(_, Call::Set { level: libc::SOL_SOCKET, option: libc::SO_RCVLOWAT, .. }))
    };
    program.steps.iter().any(sets)
}

/// The name of the known difference that this is.
pub fn known(program: &Program, difference: &Difference) -> Option<&'static str> {
    let step = program.steps.get(difference.step)?;
    KNOWN.iter().find(|(_, is)| is(program, step, difference)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests;

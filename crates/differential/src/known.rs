//! Differences that are known and have a reason. docs/differential.md lists them with the same names.

use crate::observation::{Observation, differences};
use crate::program::{Call, Kind, Program, Step};

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
type Known = (&'static str, fn(&Program, &Difference) -> bool);

const KNOWN: &[Known] = &[
    ("low-water readiness", |program, d| {
        let low = |call: &Call| {
            matches!(call, Call::Set { level: libc::SOL_SOCKET, option: libc::SO_RCVLOWAT, .. })
        };
        is(d, " ready") && without(&d.eft, "IN") == d.kernel && has_called(program, d, low)
    }),
    ("error of a datagram socket", |program, d| {
        let datagrams = |call: &Call| matches!(call, Call::Socket { kind: Kind::Datagram, .. });
        let error = (d.kernel.as_str(), d.eft.as_str()) == ("OUT ERR", "IN OUT");
        is(d, " ready") && error && has_called(program, d, datagrams)
    }),
];

/// Whether it is in this observation of a slot.
fn is(difference: &Difference, observation: &str) -> bool {
    difference.name.starts_with("slot ") && difference.name.ends_with(observation)
}

fn without(words: &str, word: &str) -> String {
    words.split(' ').filter(|other| *other != word).collect::<Vec<_>>().join(" ")
}

/// Whether such a call was made until the difference was seen: what it changed lasts.
fn has_called(program: &Program, difference: &Difference, is: impl Fn(&Call) -> bool) -> bool {
    let until = program.steps.iter().take(difference.step.saturating_add(1));
    until.into_iter().any(|step| matches!(step, Step::Call(_, call) if is(call)))
}

/// The name of the known difference that this is.
pub fn known(program: &Program, difference: &Difference) -> Option<&'static str> {
    KNOWN.iter().find(|(_, is)| is(program, difference)).map(|(name, _)| *name)
}

/// The differences of two observations after `step`, each with the name by which it is known, if it is.
pub fn judged(
    program: &Program,
    step: usize,
    kernel: &Observation,
    eft: &Observation,
) -> Vec<(Difference, Option<&'static str>)> {
    let judge = |(name, kernel, eft)| {
        let difference = Difference { step, name, kernel, eft };
        let known = known(program, &difference);
        (difference, known)
    };
    differences(kernel, eft).into_iter().map(judge).collect()
}

#[cfg(test)]
mod tests;

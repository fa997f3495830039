//! Differences that are known and have a reason. docs/differential.md lists them with the same names.

use crate::observation::{Observation, differences};
use crate::program::{Call, FIN, Kind, Program, RST, Segment, Sent, Step};

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
    ("remains of a failed connect", |program, d| {
        let reset = |step: &Step| matches!(step, Step::Peer(Sent::Segment(s)) if s.flags & RST != 0);
        let connects = |call: &Call| matches!(call, Call::Connect { .. });
        let unsent = is(d, " unsent") && (d.kernel.as_str(), d.eft.as_str()) == ("3", "0");
        let named = matches!(program.steps.get(d.step), Some(Step::Call(_, Call::Name)));
        let port = named && d.name == "call" && d.kernel.replace(", a port", ", no port") == d.eft;
        (unsent || port) && has_called(program, d, connects) && until(program, d).any(reset)
    }),
    ("text in place of a FIN", |program, d| {
        let told = d.name.starts_with("wire ") && d.name.ends_with(" acknowledged");
        let contradicts = |end, later: &Segment| later.from <= end && ends(later) > end;
        (is(d, " unread") || told) && after_the_end(program, d, contradicts)
    }),
    ("reset with the number of a FIN", |program, d| {
        after_the_end(program, d, |end, later| later.flags & RST != 0 && later.from == end)
    }),
];

/// Whether it is in this observation of a slot.
fn is(difference: &Difference, observation: &str) -> bool {
    difference.name.starts_with("slot ") && difference.name.ends_with(observation)
}

fn without(words: &str, word: &str) -> String {
    words.split(' ').filter(|other| *other != word).collect::<Vec<_>>().join(" ")
}

/// The steps until the difference was seen.
fn until<'a>(program: &'a Program, difference: &Difference) -> impl Iterator<Item = &'a Step> {
    program.steps.iter().take(difference.step.saturating_add(1))
}

/// Where a segment's text ends in the peer's stream.
fn ends(segment: &Segment) -> i64 {
    segment.from + i64::from(segment.len)
}

/// Whether the peer, until the difference was seen, sent such a segment after a FIN. `is` is told where the FIN lies.
fn after_the_end(program: &Program, difference: &Difference, is: impl Fn(i64, &Segment) -> bool) -> bool {
    let mut end: Option<i64> = None;
    until(program, difference).filter_map(segment).any(|segment| {
        let found = end.is_some_and(|end| is(end, segment));
        if segment.flags & FIN != 0 {
            end = Some(end.map_or(ends(segment), |end| end.min(ends(segment))));
        }
        found
    })
}

fn segment(step: &Step) -> Option<&Segment> {
    match step {
        Step::Peer(Sent::Segment(segment)) => Some(segment),
        _ => None,
    }
}

/// Whether such a call was made until the difference was seen: what it changed lasts.
fn has_called(program: &Program, difference: &Difference, is: impl Fn(&Call) -> bool) -> bool {
    until(program, difference).any(|step| matches!(step, Step::Call(_, call) if is(call)))
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

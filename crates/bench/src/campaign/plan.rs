//! What is to be broken, and how often.

use eft_linux::inject::{Kind, SUPERVISOR};

use super::checksums::Checksums;
use super::judge::Trial;

/// Faults of one kind in one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    pub component: &'a str,
    pub kind: Kind,
    pub checksums: Checksums,
}

impl Series<'_> {
    fn includes(&self, trial: &Trial) -> bool {
        trial.component == self.component && trial.kind == self.kind && trial.checksums == self.checksums
    }
}

pub struct Plan {
    pub seed: u64,
    /// Faults of each kind in each component that are to be effective.
    pub count: u64,
    /// After so many of them there are no more, effective or not: of a thousand bits of a heap few are used again.
    pub most: u64,
    pub components: Vec<String>,
    pub kinds: Vec<Kind>,
}

impl Plan {
    /// Each component with each kind of fault that it can have. Payloads are hit with both kinds of checksums.
    pub fn series(&self) -> impl Iterator<Item = Series<'_>> {
        let of = |checksums| {
            let kinds = move |component| {
                self.kinds.iter().map(move |kind| Series { component, kind: *kind, checksums })
            };
            self.components.iter().map(String::as_str).flat_map(kinds)
        };
        // Another device needs another stack.
        let all = of(Checksums::Device)
            .chain(of(Checksums::Software).filter(|series| series.kind == Kind::FlipPayload));
        all.filter(|series| is_possible(series.component, series.kind))
    }

    /// Whether these are too few of a component and kind.
    pub fn goes_on(&self, trials: &[Trial]) -> bool {
        (trials.len() as u64) < self.most && effective(trials.iter()) < self.count
    }

    /// Those of which fewer were effective than there are to be, in words.
    pub fn lacking(&self, trials: &[Trial]) -> Option<String> {
        let lacks = |series: Series| {
            let all = || trials.iter().filter(|trial| series.includes(trial));
            let effective = effective(all());
            let own = match series.checksums {
                Checksums::Device => "",
                Checksums::Software => " with software checksums",
            };
            let (component, kind, count) = (series.component, series.kind.name(), all().count());
            (effective < self.count).then(|| format!("{component} {kind}{own} {effective} of {count}"))
        };
        let all: Vec<String> = self.series().filter_map(lacks).collect();
        (!all.is_empty()).then(|| format!("fewer than {} effective: {}", self.count, all.join(", ")))
    }
}

fn effective<'a>(trials: impl Iterator<Item = &'a Trial>) -> u64 {
    trials.filter(|t| t.is_effective()).count() as u64
}

/// What a component does not have cannot be broken.
fn is_possible(component: &str, kind: Kind) -> bool {
    if component == SUPERVISOR {
        return kind.strikes_supervisor();
    }
    let is = |names: &[&str]| names.iter().any(|name| component.starts_with(name));
    match kind {
        Kind::FlipArena => is(&["tcp", "udp", "filter", "ip"]),
        Kind::FlipPayload => !is(&["filter", "cores"]),
        Kind::FlipChannel => true,
        Kind::Enomem => is(&["tcp", "udp", "sockets", "nic"]),
        Kind::Message(_) if is(&["cores"]) => false,
        Kind::Message(fault) if fault.is_about_receipts() => is(&["tcp", "udp", "ip", "nic"]),
        _ => true,
    }
}

#[cfg(test)]
mod tests;

//! What is to be broken, and how often.

use eft_linux::inject::{Kind, SUPERVISOR};

use super::judge::Trial;

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
    /// Each component with each kind of fault that it can have.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, Kind)> {
        let kinds = |component| self.kinds.iter().map(move |kind| (component, *kind));
        let all = self.components.iter().map(String::as_str).flat_map(kinds);
        all.filter(|(component, kind)| is_possible(component, *kind))
    }

    /// Whether these are too few of a component and kind.
    pub fn goes_on(&self, trials: &[Trial]) -> bool {
        (trials.len() as u64) < self.most && effective(trials) < self.count
    }

    /// Those of which fewer were effective than there are to be, in words.
    pub fn lacking(&self, trials: &[Trial]) -> Option<String> {
        let of = |component: &str, kind| {
            trials.iter().filter(|t| t.component == component && t.kind == kind).cloned().collect::<Vec<_>>()
        };
        let lacks = |(component, kind): (&str, Kind)| {
            let all = of(component, kind);
            (effective(&all) < self.count)
                .then(|| format!("{component} {} {} of {}", kind.name(), effective(&all), all.len()))
        };
        let all: Vec<String> = self.pairs().filter_map(lacks).collect();
        (!all.is_empty()).then(|| format!("fewer than {} effective: {}", self.count, all.join(", ")))
    }
}

fn effective(trials: &[Trial]) -> u64 {
    trials.iter().filter(|t| t.is_effective()).count() as u64
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

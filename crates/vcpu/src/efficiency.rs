//! Fast core efficiency: IPC times utilisation (section 3.2 of the paper).
//!
//! The IPC of a P and of an E core, or of a thread whose sibling is busy, cannot be compared. So it is kept by kind
//! of core, and what is not measured is predicted from what is: by the ratio between the two kinds that the other vCPUs
//! show, or until then by the one that the host was described with.

use alloc::vec;
use alloc::vec::Vec;

use eft_machine::Ppm;

use crate::PPM;
use crate::guest::Count;
use crate::host::Host;

/// A window with fewer cycles (less than about a millisecond's) is ignored.
const CYCLES_MIN: u64 = 1_000_000;
/// A higher IPC is a counter's error; the widest cores retire 10 instructions a cycle.
const IPC_MAX: Ppm = Ppm(16 * PPM);
/// What a busy sibling leaves of a core's IPC until it was measured: two threads reach some 1.2 times one alone.
pub const SIBLING: Ppm = Ppm::from_percent(60);

/// A filtered IPC: the filter of section 3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    accepted: Option<Ppm>,
    /// Beyond the threshold, seen once.
    pending: Option<Ppm>,
}

impl Filter {
    pub fn value(&self) -> Option<Ppm> {
        self.accepted
    }

    pub fn offer(&mut self, new: Ppm, threshold: Ppm) {
        let near = |old: Ppm| {
            u128::from(old.0.abs_diff(new.0)) * u128::from(PPM) <= u128::from(old.0) * u128::from(threshold.0)
        };
        let accept = self.accepted.is_none_or(near) || self.pending.is_some_and(near);
        if accept {
            (self.accepted, self.pending) = (Some(new), None);
        } else {
            self.pending = Some(new);
        }
    }
}

/// IPC of one vCPU by kind of core and over all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Efficiency {
    kinds: Vec<Filter>,
    all: Filter,
}

/// Kinds of core: each class alone and with a busy sibling.
pub fn kind(class: u8, sibling_busy: bool) -> usize {
    usize::from(class) * 2 + usize::from(sibling_busy)
}

impl Efficiency {
    pub fn new(host: &Host) -> Self {
        Self { kinds: vec![Filter::default(); host.classes.len() * 2], all: Filter::default() }
    }

    /// Takes the counts of a window.
    pub fn window(&mut self, counts: &[Count], threshold: Ppm) {
        let ipc = |instructions, cycles| Ppm::of(instructions, cycles).min(IPC_MAX);
        let (mut instructions, mut cycles) = (0u64, 0u64);
        for count in counts.iter().filter(|count| count.cycles >= CYCLES_MIN) {
            if let Some(filter) = self.kinds.get_mut(kind(count.class, count.sibling_busy)) {
                filter.offer(ipc(count.instructions, count.cycles), threshold);
                instructions = instructions.saturating_add(count.instructions);
                cycles = cycles.saturating_add(count.cycles);
            }
        }
        if cycles > 0 {
            self.all.offer(ipc(instructions, cycles), threshold);
        }
    }

    /// As the paper has it: wherever it was measured.
    pub fn raw(&self) -> Option<Ppm> {
        self.all.value()
    }

    /// Alone on a core of `class`: measured there, or predicted.
    pub fn alone(&self, class: usize, ratios: &Ratios) -> Option<Ppm> {
        self.on(class, false, ratios)
    }

    /// On a core of `class`: measured there, or predicted.
    pub fn on(&self, class: usize, sibling_busy: bool, ratios: &Ratios) -> Option<Ppm> {
        let wanted = kind(class as u8, sibling_busy);
        if let Some(measured) = self.kinds.get(wanted)?.value() {
            return Some(measured);
        }
        // The nearest kind has the safest ratio: the same class with the sibling in the other state, then from the fastest on.
        let known = |k: usize| Some((k, self.kinds[k].value()?));
        let (from, ipc) = known(wanted ^ 1).or_else(|| (0..self.kinds.len()).find_map(known))?;
        let (wanted, known) = (ratios.0[wanted], ratios.0[from]);
        Some(Ppm((u128::from(ipc.0) * u128::from(wanted.0) / u128::from(known.0.max(1))) as u64))
    }
}

/// IPC by kind relative to alone on the fastest class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ratios(Vec<Ppm>);

impl Ratios {
    pub fn described(host: &Host) -> Self {
        Self(host.classes.iter().flat_map(|class| [class.ipc, class.ipc * SIBLING]).collect())
    }

    /// Learns each ratio from the vCPUs that ran on both kinds.
    pub fn learn<'a>(&mut self, host: &Host, all: impl Iterator<Item = &'a Efficiency> + Clone) {
        *self = Self::described(host);
        for k in 1..self.0.len() {
            let both = all.clone().filter_map(|e| Some((e.kinds[0].value()?, e.kinds[k].value()?)));
            let (fast, here) =
                both.fold((0u64, 0u64), |(a, b), (x, y)| (a.saturating_add(x.0), b.saturating_add(y.0)));
            if fast > 0 && here > 0 {
                self.0[k] = Ppm::of(here, fast);
            }
        }
    }
}

#[cfg(test)]
mod tests;

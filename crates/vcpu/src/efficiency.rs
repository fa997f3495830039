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
mod tests {
    use super::*;
    use crate::host::tests::host;

    const THRESHOLD: Ppm = Ppm::from_percent(15);

    fn count(class: u8, ipc: f64) -> Count {
        Count { class, sibling_busy: false, instructions: (ipc * 1e9) as u64, cycles: 1_000_000_000 }
    }

    #[test]
    fn a_change_counts_if_it_is_small_or_stays() {
        let mut filter = Filter::default();
        let offer = |filter: &mut Filter, new| {
            filter.offer(Ppm(new), THRESHOLD);
            filter.value().unwrap().0
        };
        assert_eq!(offer(&mut filter, 1_000_000), 1_000_000);
        assert_eq!(offer(&mut filter, 1_150_000), 1_150_000, "15% is within");
        assert_eq!(offer(&mut filter, 500_000), 1_150_000, "once is not enough");
        assert_eq!(offer(&mut filter, 2_000_000), 1_150_000, "another change begins anew");
        assert_eq!(offer(&mut filter, 2_100_000), 2_100_000, "the second interval of it");
        assert_eq!(offer(&mut filter, 100), 2_100_000);
        assert_eq!(offer(&mut filter, 2_000_000), 2_000_000, "back again: the outlier is forgotten");
        assert_eq!(offer(&mut filter, 100), 2_000_000);
    }

    #[test]
    fn the_other_type_is_predicted_from_what_others_show() {
        let host = host(2, 2, 0.5);
        let mut ratios = Ratios::described(&host);
        let efficiency = |counts: &[Count]| {
            let mut e = Efficiency::new(&host);
            e.window(counts, THRESHOLD);
            e
        };
        let (both, slow_only) = (efficiency(&[count(0, 2.0), count(1, 1.0)]), efficiency(&[count(1, 0.7)]));
        assert_eq!(slow_only.alone(0, &ratios), Some(Ppm(700_000)), "nothing is known yet");
        ratios.learn(&host, [&both, &slow_only].into_iter());
        assert_eq!(slow_only.alone(0, &ratios), Some(Ppm(1_400_000)));
        assert_eq!(slow_only.raw(), Some(Ppm(700_000)));
        assert_eq!(both.alone(0, &ratios), Some(Ppm(2_000_000)), "what is measured is not predicted");
        assert_eq!(Efficiency::new(&host).alone(0, &ratios), None);
    }

    #[test]
    fn a_busy_sibling_is_taken_out() {
        let host = host(2, 2, 0.5);
        let mut shared = Efficiency::new(&host);
        shared.window(&[Count { sibling_busy: true, ..count(0, 0.6) }], THRESHOLD);
        assert_eq!(shared.alone(0, &Ratios::described(&host)), Some(Ppm(1_000_000)));
        assert_eq!(shared.raw(), Some(Ppm(600_000)));
        assert_eq!(shared.on(0, true, &Ratios::described(&host)), Some(Ppm(600_000)));
        let mut alone = Efficiency::new(&host);
        alone.window(&[count(0, 2.0)], THRESHOLD);
        assert_eq!(
            alone.on(0, true, &Ratios::described(&host)),
            Some(Ppm(1_200_000)),
            "predicted from alone"
        );
    }

    #[test]
    fn mad_counters_do_no_harm() {
        let host = host(1, 1, 0.5);
        let mut e = Efficiency::new(&host);
        let mad = |class, instructions, cycles| Count { class, sibling_busy: true, instructions, cycles };
        e.window(&[mad(0, u64::MAX, CYCLES_MIN), mad(1, 5, u64::MAX), mad(99, 1, u64::MAX)], THRESHOLD);
        let mut ratios = Ratios::described(&host);
        ratios.learn(&host, [&e].into_iter());
        assert!(e.alone(0, &ratios).is_some_and(|ipc| ipc.0 < u64::MAX / PPM));
    }
}

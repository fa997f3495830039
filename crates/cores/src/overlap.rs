//! How much components are busy at the same time: which ones may share a core's hardware threads
//! (`multiserver-scheduling`, sections 3 to 5).
//!
//! Two threads of a core slow each other down only while both have work. Components that are busy in turn, or in
//! different periods of the load, therefore share a core at little cost, however busy each of them is. For each pair,
//! the product of their busy shares is averaged with a decay over about [`SAMPLES`] samples: the share of time in which
//! both work, if they are independent of each other within one period. The sum over two groups is the groups' overlap,
//! since each member works only while the others on its CPU do not.
//!
//! Promises: a sample costs one multiplication for each pair of components; every overlap of a pair is a number in
//! 0..=1. Limit: alternation within one period (10 ms) is not seen.

use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::CpuId;

use crate::observation::Observation;

/// Samples after which most of what was seen before has decayed.
const SAMPLES: f64 = 64.0;
/// Fewer samples say nothing.
const SAMPLES_MIN: u32 = 32;

/// Empty until enough was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlaps {
    names: Vec<String>,
    /// One mean per pair: the second with the first, the third with the first and the second, and so on.
    means: Vec<f64>,
    samples: u32,
}

impl Overlaps {
    /// Takes one observation with traffic. `names` are the components; if they have changed, it begins anew.
    pub fn note(&mut self, names: &[String], seen: &Observation) {
        if self.names != names {
            let pairs = names.len() * names.len().saturating_sub(1) / 2;
            *self = Self { names: names.to_vec(), means: alloc::vec![0.0; pairs], samples: 0 };
        }
        let busy: Vec<f64> =
            names.iter().map(|name| seen.component(name).map_or(0.0, |load| load.busy.0)).collect();
        self.samples = self.samples.saturating_add(1);
        // At first a plain mean, so that the initial zeros have no weight.
        let newest = 1.0 / f64::from(self.samples).min(SAMPLES);
        let pairs = (1..busy.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        for (mean, (first, second)) in self.means.iter_mut().zip(pairs) {
            *mean += (busy[first] * busy[second] - *mean) * newest;
        }
    }

    /// Whether enough samples were taken to rely on it.
    pub fn is_known(&self) -> bool {
        self.samples >= SAMPLES_MIN
    }

    fn of_pair(&self, one: &str, other: &str) -> f64 {
        let index = |name: &str| self.names.iter().position(|known| known == name);
        let (Some(one), Some(other)) = (index(one), index(other)) else { return 0.0 };
        let (first, second) = (one.min(other), one.max(other));
        if first == second { 0.0 } else { self.means[second * (second - 1) / 2 + first] }
    }

    /// Share of time in which both groups work.
    pub fn of_groups(&self, one: &[String], other: &[String]) -> f64 {
        let with = |name: &String| other.iter().map(|next| self.of_pair(name, next)).sum::<f64>();
        one.iter().map(with).sum()
    }
}

/// Decides which groups share a core: the group for each place, so that the sum of the overlaps on the cores is least.
/// `groups` are in the order of their present places, busiest first; `cores` says to which core each place belongs.
/// `None` if the overlaps are not known, or if nothing is clearly better than the present order.
pub fn deal(groups: &[Vec<String>], cores: &[CpuId], overlaps: &Overlaps) -> Option<Vec<usize>> {
    /// The search tries all ways to share; more groups have too many.
    const GROUPS_MAX: usize = 8;
    /// Smaller gains would change to and fro with the noise.
    const CLEARLY: f64 = 0.9;
    const MATTERS: f64 = 0.02;
    let count = groups.len();
    let is_shared = |core: &CpuId| cores.iter().filter(|other| *other == core).count() > 1;
    if !overlaps.is_known() || count > GROUPS_MAX || cores.len() != count || !cores.iter().any(is_shared) {
        return None;
    }
    let of = |one: usize, other: usize| overlaps.of_groups(&groups[one], &groups[other]);
    let between: Vec<Vec<f64>> =
        (0..count).map(|one| (0..count).map(|other| of(one, other)).collect()).collect();
    let pairs = (0..count).flat_map(|one| (0..one).map(move |other| (one, other)));
    let stands: f64 = pairs
        .filter(|(one, other)| cores[*one] == cores[*other])
        .map(|(one, other)| between[one][other])
        .sum();
    let mut search =
        Dealing { between: &between, cores, best: None, bound: (stands * CLEARLY).min(stands - MATTERS) };
    search.place(&mut alloc::vec![None; count], 0, 0.0);
    search.best
}

/// Depth-first search, busiest group first; a branch ends once it costs as much as the best.
struct Dealing<'a> {
    between: &'a [Vec<f64>],
    cores: &'a [CpuId],
    best: Option<Vec<usize>>,
    bound: f64,
}

impl Dealing<'_> {
    fn place(&mut self, at: &mut Vec<Option<usize>>, group: usize, cost: f64) {
        if cost >= self.bound {
            return;
        }
        if group == at.len() {
            self.best = Some(at.iter().map(|group| group.unwrap_or(0)).collect());
            self.bound = cost;
            return;
        }
        let mut tried: Vec<(usize, Vec<usize>)> = Vec::new();
        for place in 0..at.len() {
            let here: Vec<usize> =
                (0..at.len()).filter(|other| self.cores[*other] == self.cores[place]).collect();
            let there: Vec<usize> = here.iter().filter_map(|other| at[*other]).collect();
            // Places with the same neighbours on a core of the same size are equivalent.
            if at[place].is_some() || tried.contains(&(here.len(), there.clone())) {
                continue;
            }
            let more: f64 = there.iter().map(|other| self.between[group][*other]).sum();
            at[place] = Some(group);
            self.place(at, group + 1, cost + more);
            at[place] = None;
            tried.push((here.len(), there));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observation::ComponentLoad;
    use eft_machine::Share;

    /// Feeds samples with these busy shares, in turn.
    pub(crate) fn seen(names: &[String], samples: &[&[(&str, f64)]]) -> Overlaps {
        let mut overlaps = Overlaps::default();
        for step in samples.iter().cycle().take(samples.len() * 128) {
            let load = |(name, busy): &(&str, f64)| ComponentLoad {
                name: (*name).into(),
                busy: Share(*busy),
                ..ComponentLoad::default()
            };
            let components = step.iter().map(load).collect();
            overlaps.note(names, &Observation { components, ..Observation::default() });
        }
        overlaps
    }

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| String::from(*name)).collect()
    }

    #[test]
    fn who_is_busy_in_turn_does_not_overlap() {
        let all = names(&["ip", "udp", "tcp"]);
        let (udp, tcp): (&[_], &[_]) =
            (&[("udp", 0.9), ("ip", 0.5), ("tcp", 0.0)], &[("tcp", 0.9), ("ip", 0.5), ("udp", 0.0)]);
        let overlaps = seen(&all, &[udp, tcp]);
        assert!(overlaps.is_known());
        assert!(overlaps.of_pair("udp", "tcp") < 1e-9);
        // ip works half of each period, udp nine tenths of every other.
        assert!((overlaps.of_pair("ip", "udp") - 0.225).abs() < 0.01, "{overlaps:?}");
        assert_eq!(overlaps.of_pair("udp", "ip"), overlaps.of_pair("ip", "udp"));
        let groups = overlaps.of_groups(&names(&["ip"]), &names(&["udp", "tcp"]));
        assert!((groups - 0.45).abs() < 0.01, "{groups}");
        assert_eq!(overlaps.of_pair("ip", "nobody"), 0.0);
    }

    #[test]
    fn what_was_long_ago_is_forgotten_and_too_little_is_not_known() {
        let all = names(&["udp", "tcp"]);
        let mut overlaps = seen(&all, &[&[("udp", 1.0), ("tcp", 1.0)]]);
        assert!((overlaps.of_pair("udp", "tcp") - 1.0).abs() < 1e-9);
        let quiet = Observation::default();
        (0..200).for_each(|_| overlaps.note(&all, &quiet));
        assert!(overlaps.of_pair("udp", "tcp") < 0.05, "{overlaps:?}");
        overlaps.note(&names(&["udp", "tcp", "ip"]), &quiet);
        assert!(!overlaps.is_known(), "others are components now");
    }

    #[test]
    fn who_shares_a_core_is_found_over_all_ways_to_share() {
        let all = names(&["a", "b", "c", "d", "e", "f"]);
        // a with d, b with e, c with f are busy in turn; any other two work together.
        let step = |busy: [&'static str; 3]| busy.map(|name| (name, 0.8));
        let samples = [step(["a", "b", "c"]), step(["d", "e", "f"])];
        let overlaps = seen(&all, &samples.each_ref().map(|step| step.as_slice()));
        let groups: Vec<Vec<String>> = all.iter().map(|name| alloc::vec![name.clone()]).collect();
        let cost = |dealt: &[usize], cores: &[CpuId]| -> f64 {
            let pairs = (0..6).flat_map(|one| (0..one).map(move |other| (one, other)));
            let shared = pairs.filter(|(one, other)| cores[*one] == cores[*other]);
            shared.map(|(one, other)| overlaps.of_groups(&groups[dealt[one]], &groups[dealt[other]])).sum()
        };
        let cores = [0, 0, 1, 1, 2, 2].map(CpuId);
        let dealt = deal(&groups, &cores, &overlaps).unwrap();
        assert!(cost(&dealt, &cores) < 1e-9 && cost(&[0, 1, 2, 3, 4, 5], &cores) > 0.5, "{dealt:?}");
        let mut sorted = dealt.clone();
        sorted.sort();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5], "each once");
        // One core of three threads: two that are busy in turn and one more.
        let cores = [0, 0, 0, 1, 2, 3].map(CpuId);
        let dealt = deal(&groups, &cores, &overlaps).unwrap();
        assert!((cost(&dealt, &cores) - 0.32).abs() < 0.02, "{dealt:?}");
        // Nothing is better than the present order.
        assert_eq!(
            deal(&groups, &[CpuId(0), CpuId(1), CpuId(2), CpuId(0), CpuId(1), CpuId(2)], &overlaps),
            None
        );
        assert_eq!(
            deal(
                &groups,
                &[CpuId(0), CpuId(0), CpuId(1), CpuId(1), CpuId(2), CpuId(2)],
                &Overlaps::default()
            ),
            None
        );
    }
}

//! The paper's analytic model (Figure 4): a fast and a slow core, two VMs, perfect scheduling.
//!
//! A VM that spends the part `f` of its time on the fast core and has efficiency `s` does `1 + f (s - 1)` times what it
//! does on the slow core alone.

/// Throughput of both VMs normalised to two slow cores, and the largest slowdown against 100% fair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub throughput: f64,
    pub slowdown: f64,
}

/// `fair` is the part of the fast time dealt out evenly; the first VM has the efficiency 2, the second `efficiency`.
pub fn figure_4(fair: f64, efficiency: f64) -> Point {
    let done = |share: f64, s: f64| 1.0 + share * (s - 1.0);
    let of = |fair: f64| [done(1.0 - fair / 2.0, 2.0), done(fair / 2.0, efficiency)];
    let (now, even) = (of(fair), of(1.0));
    let slowdown = now.iter().zip(even).map(|(now, even)| 1.0 - now / even).fold(0.0, f64::max);
    Point { throughput: now.iter().sum::<f64>() / 2.0, slowdown }
}

/// Bounds the loss of VMs that share fast cores and end at the same time under `amp-fair`, for any schedule.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    /// Fast cores for each vCPU of a VM; all VMs have as many.
    pub fast: f64,
    /// The efficiency of the VM that gains, and its gain over `amp-fair`.
    pub first: (f64, f64),
    /// Efficiencies of the others.
    pub others: &'a [f64],
}

impl Budget<'_> {
    /// A lower bound of the others' largest slowdown. Each must finish its work, for which `amp-fair` gives it an equal
    /// part of the fast time; the first VM's gain reduces the fast time that remains until the end.
    pub fn least_slowdown(&self) -> f64 {
        let share = self.fast / (self.others.len() + 1) as f64;
        let (efficiency, gain) = self.first;
        let taken = (1.0 + share * (efficiency - 1.0) - 1.0 / gain) / (efficiency - 1.0);
        let lacking = share * self.others.len() as f64 - (self.fast - taken);
        let slow = self.others.iter().map(|other| 1.0 / (other - 1.0)).sum::<f64>();
        let longer = lacking.max(0.0) / (self.fast + slow);
        longer / (1.0 + longer)
    }
}

/// The gain over `amp-fair`, with a third of all cores fast, of a VM that always has fast cores.
pub fn gain_of(efficiency: f64) -> f64 {
    3.0 * efficiency / (efficiency + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ratio of the clocks: no VM gains more from a fast core.
    const MOST: f64 = 2.375;

    #[test]
    fn a_gain_is_somebody_elses_slowdown() {
        // Two VMs of efficiency 2, one core each, one of which is fast: the first has it for 0.75 of the time that both
        // would take, and the other for what is left until the end.
        let equal = Budget { fast: 1.0, first: (2.0, 2.0 / 1.5), others: &[2.0] };
        let done = |slowdown: f64| {
            let end = 1.0 / (1.0 - slowdown);
            end + (end - 0.75)
        };
        assert!((done(equal.least_slowdown()) - 1.5).abs() < 1e-9, "{}", equal.least_slowdown());
        let none = Budget { first: (2.0, 1.0), ..equal };
        assert_eq!(none.least_slowdown(), 0.0, "nobody has gained");
    }

    /// Table 2 has 0.0% for 1H-1M-1L, where Figure 8's text has freqmine gain 40% at least, and 20% for pmake where that
    /// has the fast cores to itself: so a fast core would have to be of no use to canneal.
    #[test]
    fn the_least_slowdown_of_1h_1m_1l_is_above_table_2() {
        let pmake = 1.334;
        assert!((gain_of(pmake) - 1.2).abs() < 0.001);
        let with = |canneal: f64| {
            Budget { fast: 1.0, first: (MOST, 1.40), others: &[pmake, canneal] }.least_slowdown() * 100.0
        };
        assert!(
            with(1.2) > 2.0 && with(1.1) > 1.4 && with(1.03) > 0.5,
            "{} {} {}",
            with(1.2),
            with(1.1),
            with(1.03)
        );
        // What is printed as 0.0 is below 0.05.
        assert!(with(1.003) > 0.05 && with(1.002) < 0.05);
    }

    /// The same for 1H-1L, 0.06%, with four fast cores for the six vCPUs of freqmine.
    #[test]
    fn the_least_slowdown_of_1h_1l_is_above_table_2() {
        let with = |freqmine: f64, canneal: f64| {
            let (fast, share) = (4.0 / 6.0, 1.0 / 3.0);
            let gain = (1.0 + fast * (freqmine - 1.0)) / (1.0 + share * (freqmine - 1.0));
            Budget { fast, first: (freqmine, gain), others: &[canneal] }.least_slowdown() * 100.0
        };
        // 1.75 is the least with which freqmine gains 40% in 1H-1M-1L.
        assert!((gain_of(1.75) - 1.40).abs() < 0.001);
        assert!(with(1.75, 1.2) > 3.5 && with(MOST, 1.2) > 2.5);
        assert!(with(MOST, 1.004) > 0.065 && with(MOST, 1.003) < 0.065);
    }

    /// A VM that never has a fast core loses what `amp-fair` would have given it: Table 2's rows of single vCPUs say that
    /// soplex and GemsFDTD have efficiencies of 1.25 at most, and libquantum 1.48 at least.
    #[test]
    fn rows_of_single_vcpus_imply_efficiencies() {
        let implied = |slowdown: f64| 3.0 / (1.0 - slowdown / 100.0) - 2.0;
        for (slowdown, efficiency) in [(7.38, 1.239), (10.0, 1.333), (7.75, 1.252), (13.89, 1.484)] {
            assert!((implied(slowdown) - efficiency).abs() < 0.001, "{}", implied(slowdown));
        }
    }
}

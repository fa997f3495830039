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
mod tests;

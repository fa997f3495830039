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

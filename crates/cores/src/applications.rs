//! Which CPUs other programs use, beside the stack.
//!
//! A CPU's busy time as the kernel accounts it, less the CPU time of the components on it, belongs to others:
//! applications, and whatever else the kernel accounts to that CPU. It is averaged over about a fifth of a second,
//! since the kernel counts in ticks of 10 ms. With hysteresis: a CPU counts as used after [`SUSTAINED`] above
//! [`IN_SHARE`], and as free after [`SUSTAINED`] below [`OUT_SHARE`].
//!
//! Promises: a sample costs time linear in CPUs and components; time that may be the stack's own is never attributed to
//! others (the time of a component that may run anywhere is subtracted from every CPU). Must never happen: that the
//! stack is rearranged because the applications fluctuate; see [`Patience`].

use alloc::collections::BTreeMap;
use core::time::Duration;

use eft_base::Instant;
use eft_base::time::nanos;
use eft_machine::{CpuId, CpuSet, Share};

use crate::observation::{CpuLoad, Observation};

/// Others use a CPU from when they take more than the first share of it until they take less than the second.
const IN_SHARE: Share = Share(0.2);
const OUT_SHARE: Share = Share(0.1);
const SUSTAINED: Duration = Duration::from_secs(1);
const MEAN_NS: f64 = 200_000_000.0;
/// A shorter mean, for decisions that must follow a new load quickly. The kernel counts in ticks of 10 ms
/// (proc_stat(5)), so a tenth of it may be an error of measurement.
const QUICK_MEAN_NS: f64 = 100_000_000.0;
/// How much more than the period of a sample the kernel may account for.
const TICKS_NS: f64 = 40_000_000.0;

/// Sums that decay exponentially.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    others_ns: f64,
    accounted_ns: f64,
}

/// What others take of a CPU, and whether it counts as used.
#[derive(Clone, Debug, Default)]
struct Account {
    /// What the stack took since the kernel's last account, and the time since then: the account is read less often
    /// than samples are taken.
    own_ns: f64,
    since_ns: f64,
    slow: Mean,
    quick: Mean,
    is_in: bool,
    /// Since when the mean has called for the opposite of `is_in`.
    otherwise: Option<Instant>,
}

/// Follows the load of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct Applications {
    accounts: BTreeMap<CpuId, Account>,
    cpus: CpuSet,
}

impl Applications {
    /// The CPUs that others use now.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// What others take of a CPU, as a mean over [`QUICK_MEAN_NS`].
    pub fn share(&self, cpu: CpuId) -> Share {
        self.accounts.get(&cpu).map_or(Share::NONE, |account| account.quick.share(QUICK_MEAN_NS))
    }

    /// Takes one credible observation; true if the set has changed.
    pub fn note(&mut self, seen: &Observation) -> bool {
        let mut stack: BTreeMap<CpuId, Share> = BTreeMap::new();
        let mut anywhere = Share::NONE;
        for load in &seen.components {
            match load.cpu {
                Some(cpu) => *stack.entry(cpu).or_default() += load.cpu_share,
                None => anywhere += load.cpu_share,
            }
        }
        self.accounts.retain(|cpu, _| seen.cpu(*cpu).is_some());
        for cpu in &seen.cpus {
            let own = stack.get(&cpu.cpu).copied().unwrap_or_default() + anywhere;
            let account = self.accounts.entry(cpu.cpu).or_default();
            account.add(cpu, own, seen.period);
            account.judge(seen.at);
        }
        let cpus: CpuSet =
            self.accounts.iter().filter(|(_, account)| account.is_in).map(|(cpu, _)| *cpu).collect();
        let is_new = cpus != self.cpus;
        self.cpus = cpus;
        is_new
    }
}

impl Mean {
    fn add(&mut self, mean_ns: f64, busy_ns: f64, own_ns: f64, accounted_ns: f64) {
        let kept = mean_ns / (mean_ns + accounted_ns);
        // Not clamped here: a tick that the kernel accounts late must cancel what the stack took before.
        self.others_ns = self.others_ns * kept + busy_ns - own_ns;
        self.accounted_ns = self.accounted_ns * kept + accounted_ns;
    }

    fn share(&self, mean_ns: f64) -> Share {
        // A shorter time says nothing.
        let enough_ns = mean_ns / 4.0;
        if self.accounted_ns < enough_ns {
            return Share::NONE;
        }
        Share((self.others_ns / self.accounted_ns).clamp(0.0, 1.0))
    }
}

impl Account {
    /// `own`: what the stack took of the CPU, as a share of the period.
    fn add(&mut self, cpu: &CpuLoad, own: Share, period: Duration) {
        let period_ns = nanos(period) as f64;
        self.own_ns += own.0 * period_ns;
        self.since_ns += period_ns;
        if cpu.accounted.is_zero() {
            return;
        }
        // One absurd account must not be remembered for minutes.
        let accounted_ns = (nanos(cpu.accounted) as f64).min(4.0 * self.since_ns + TICKS_NS);
        let busy_ns = cpu.busy.0 * accounted_ns;
        self.slow.add(MEAN_NS, busy_ns, self.own_ns, accounted_ns);
        self.quick.add(QUICK_MEAN_NS, busy_ns, self.own_ns, accounted_ns);
        (self.own_ns, self.since_ns) = (0.0, 0.0);
    }

    fn judge(&mut self, now: Instant) {
        let wanted = self.slow.share(MEAN_NS) >= if self.is_in { OUT_SHARE } else { IN_SHARE };
        if wanted == self.is_in {
            self.otherwise = None;
            return;
        }
        let since = *self.otherwise.get_or_insert(now);
        if now.saturating_since(since) >= SUSTAINED {
            (self.is_in, self.otherwise) = (wanted, None);
        }
    }
}

/// How long a change of the applications' CPUs has to last before the stack is rearranged. The kernel's scheduler moves
/// applications about, and away from where the stack goes: each rearrangement doubles the wait for the next one, until
/// the applications have stayed in place for long.
#[derive(Clone, Debug)]
pub struct Patience<T> {
    candidate: Option<(T, Instant)>,
    wait: Duration,
    /// When the applications were last elsewhere than the stack assumes.
    unrest: Option<Instant>,
}

const WAIT_MIN: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(600);
/// After a calm of so many times the last wait, the applications have come to rest.
const RESTED: u32 = 16;

impl<T> Default for Patience<T> {
    fn default() -> Self {
        Self { candidate: None, wait: WAIT_MIN, unrest: None }
    }
}

impl<T: PartialEq> Patience<T> {
    /// Whether it is time to go from `held` to `now`.
    pub fn is_over(&mut self, time: Instant, held: &T, now: T) -> bool {
        if now == *held {
            self.candidate = None;
            return false;
        }
        let since = match &self.candidate {
            Some((before, since)) if *before == now => *since,
            _ => time,
        };
        if self.unrest.is_some_and(|at| time.saturating_since(at) >= self.wait * RESTED) {
            self.wait = WAIT_MIN;
        }
        self.unrest = Some(time);
        if time.saturating_since(since) < self.wait {
            self.candidate = Some((now, since));
            return false;
        }
        self.candidate = None;
        self.wait = (self.wait * 2).min(WAIT_MAX);
        true
    }
}

#[cfg(test)]
mod tests;

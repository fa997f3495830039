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
mod tests {
    use super::*;
    use crate::observation::ComponentLoad;

    const PERIOD: Duration = Duration::from_millis(10);
    const S: Duration = Duration::from_secs(1);

    fn seen(at: Instant, tcp: ComponentLoad, cpus: Vec<CpuLoad>) -> Observation {
        let components = alloc::vec![tcp];
        Observation { at, period: PERIOD, components, cpus, ..Observation::default() }
    }

    /// Feeds samples for `length`; `busy` says how busy CPU 0 is at a sample, of which tcp takes `own`.
    fn feed(
        them: &mut Applications,
        from: Instant,
        length: Duration,
        own: f64,
        busy: impl Fn(u32) -> f64,
    ) -> Instant {
        for step in 1..=length.div_duration_f64(PERIOD) as u32 {
            let cpu = |cpu: CpuId, busy: f64| CpuLoad {
                cpu,
                online: true,
                busy: Share(busy),
                accounted: PERIOD,
                ..CpuLoad::default()
            };
            let tcp = ComponentLoad {
                name: "tcp".into(),
                running: true,
                cpu: Some(CpuId(0)),
                cpu_share: Share(own),
                ..ComponentLoad::default()
            };
            let cpus = alloc::vec![cpu(CpuId(0), busy(step)), cpu(CpuId(1), 0.05)];
            them.note(&seen(from + step * PERIOD, tcp, cpus));
        }
        from + length
    }

    #[test]
    fn what_the_stack_takes_is_not_somebody_elses() {
        let mut them = Applications::default();
        let now = feed(&mut them, Instant::ZERO, 5 * S, 0.85, |_| 0.95);
        assert!(them.cpus().is_empty(), "{}", them.cpus());
        feed(&mut them, now, 5 * S, 0.35, |_| 0.95);
        assert_eq!(them.cpus().to_string(), "0");
    }

    #[test]
    fn an_account_that_is_read_at_every_tenth_sample_says_the_same_at_all_of_them() {
        // Seen live: the others' share alternated between 0.6 and nothing ten times a second.
        let mut them = Applications::default();
        for step in 1..200 {
            let accounted = if step % 10 == 0 { 10 * PERIOD } else { Duration::ZERO };
            let busy = if accounted > Duration::ZERO { 0.95 } else { 0.0 };
            let tcp = ComponentLoad {
                name: "tcp".into(),
                cpu: Some(CpuId(0)),
                cpu_share: Share(0.4),
                ..ComponentLoad::default()
            };
            let cpu =
                CpuLoad { cpu: CpuId(0), online: true, busy: Share(busy), accounted, ..CpuLoad::default() };
            them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu]));
            let share = them.share(CpuId(0));
            assert!(step < 10 || !share.differs(Share(0.55), Share(0.01)), "{share} at sample {step}");
        }
    }

    #[test]
    fn what_may_be_the_stacks_own_is_taken_off_every_cpu() {
        let mut them = Applications::default();
        for step in 1..500 {
            let cpu = |cpu: CpuId| CpuLoad {
                cpu,
                busy: Share(0.4),
                accounted: PERIOD,
                online: true,
                ..CpuLoad::default()
            };
            let tcp =
                ComponentLoad { name: "tcp".into(), cpu_share: Share(0.35), ..ComponentLoad::default() };
            them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu(CpuId(0)), cpu(CpuId(1))]));
        }
        assert!(them.cpus().is_empty(), "{}", them.cpus());
    }

    #[test]
    fn in_above_a_fifth_for_a_second_and_out_below_a_tenth() {
        let mut them = Applications::default();
        let now = feed(&mut them, Instant::ZERO, 3 * S, 0.0, |_| 0.02);
        // A burst of half a second does not count, nor does a load that crosses the threshold with a mean below it.
        let now = feed(&mut them, now, S / 2, 0.0, |_| 0.9);
        let now = feed(&mut them, now, 3 * S, 0.0, |step| if step % 2 == 0 { 0.25 } else { 0.01 });
        assert!(them.cpus().is_empty());
        let now = feed(&mut them, now, 4 * S, 0.0, |_| 0.3);
        assert_eq!(them.cpus().to_string(), "0");
        let now = feed(&mut them, now, 4 * S, 0.0, |_| 0.13);
        assert_eq!(them.cpus().to_string(), "0", "between the marks it stays");
        feed(&mut them, now, 4 * S, 0.0, |_| 0.05);
        assert!(them.cpus().is_empty());
    }

    #[test]
    fn ticks_that_come_late_are_nobodys_load() {
        // The stack takes half of each period; the kernel accounts for it in whole ticks, in every other sample.
        let mut them = Applications::default();
        for step in 1..1000u32 {
            let busy = if step % 2 == 0 { 1.0 } else { 0.0 };
            let cpu = CpuLoad { cpu: CpuId(0), busy: Share(busy), accounted: PERIOD, ..CpuLoad::default() };
            let tcp =
                ComponentLoad { cpu: Some(CpuId(0)), cpu_share: Share(0.5), ..ComponentLoad::default() };
            them.note(&seen(Instant::ZERO + step * PERIOD, tcp, alloc::vec![cpu]));
            assert!(them.cpus().is_empty(), "sample {step}");
        }
    }

    #[test]
    fn who_goes_to_and_fro_is_followed_ever_more_seldom() {
        let mut patience = Patience::default();
        let (mut held, mut followed) = (0, 0);
        // The applications move to the other package every 7 s, for ten minutes.
        for second in 0..600u32 {
            let now = second / 7 % 2;
            if patience.is_over(Instant::ZERO + second * S, &held, now) {
                (held, followed) = (now, followed + 1);
            }
        }
        assert_eq!(followed, 1);
        let calm = Instant::ZERO + 600 * S + 2 * WAIT_MIN * RESTED;
        assert!(!patience.is_over(calm, &held, 1 - held));
        assert!(patience.is_over(calm + WAIT_MIN, &held, 1 - held));
    }
}

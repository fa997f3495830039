//! On which CPUs others work: what is busy there beside the stack.
//!
//! A CPU's busy time after the kernel's account, less the CPU time that the components on it took, is others': the
//! applications, and whatever else the kernel accounts to that CPU. Means over about a fifth of a second, since the kernel
//! counts in ticks of 10 ms. A CPU is in above [`IN_SHARE`] and out below [`OUT_SHARE`], each for [`SUSTAINED_NS`] on end.
//!
//! Promises: a look costs time linear in CPUs and components; what may have been the stack's own is never taken for
//! somebody else's (a component that may run anywhere is taken off every CPU). Must never happen: that the stack is
//! rearranged because the applications fluctuate; see [`Patience`].

use alloc::collections::BTreeMap;

use eft_machine::CpuSet;

use crate::observation::{CpuLoad, Observation};

/// Others work where they take more than this of a CPU, until they take less than that.
const IN_SHARE: f64 = 0.2;
const OUT_SHARE: f64 = 0.1;
const SUSTAINED_NS: u64 = 1_000_000_000;
const MEAN_NS: f64 = 200_000_000.0;
/// For who must be quick: what others take of a CPU as soon as a load has begun. The kernel counts in ticks of 10 ms
/// (proc_stat(5)), so a tenth may be nobody's.
const QUICK_MEAN_NS: f64 = 100_000_000.0;
/// What the kernel may account for beyond the period of a look.
const TICKS_NS: f64 = 40_000_000.0;

/// Sums that forget.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    others_ns: f64,
    accounted_ns: f64,
}

/// What others take of a CPU, and what was made of that.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Since the kernel's last account, which is read less often than looks are taken: what the stack took, and the time.
    own_ns: f64,
    since_ns: f64,
    slow: Mean,
    quick: Mean,
    is_in: bool,
    /// Since when it has been otherwise.
    otherwise_ns: Option<u64>,
}

/// Follows the load of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct Applications {
    accounts: BTreeMap<u32, Account>,
    cpus: CpuSet,
}

impl Applications {
    /// Where others work now.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// What others take of a CPU, as a mean over [`QUICK_MEAN_NS`].
    pub fn share(&self, cpu: u32) -> f64 {
        self.accounts.get(&cpu).map_or(0.0, |account| account.quick.share(QUICK_MEAN_NS))
    }

    /// Takes one sound look; true if the set is another than before.
    pub fn note(&mut self, seen: &Observation) -> bool {
        let mut stack: BTreeMap<u32, f64> = BTreeMap::new();
        let mut anywhere = 0.0;
        for load in &seen.components {
            match load.cpu {
                Some(cpu) => *stack.entry(cpu).or_default() += load.cpu_share,
                None => anywhere += load.cpu_share,
            }
        }
        self.accounts.retain(|cpu, _| seen.cpu(*cpu).is_some());
        for cpu in &seen.cpus {
            let own = stack.get(&cpu.cpu).copied().unwrap_or(0.0) + anywhere;
            let account = self.accounts.entry(cpu.cpu).or_default();
            account.add(cpu, own * seen.period_ns as f64, seen.period_ns);
            account.judge(seen.at_ns);
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
        // Not clamped here: a tick that comes an account late must cancel what the stack took before.
        self.others_ns = self.others_ns * kept + busy_ns - own_ns;
        self.accounted_ns = self.accounted_ns * kept + accounted_ns;
    }

    fn share(&self, mean_ns: f64) -> f64 {
        // Less than this says nothing yet.
        let enough_ns = mean_ns / 4.0;
        if self.accounted_ns < enough_ns { 0.0 } else { (self.others_ns / self.accounted_ns).clamp(0.0, 1.0) }
    }
}

impl Account {
    fn add(&mut self, cpu: &CpuLoad, own_ns: f64, period_ns: u64) {
        self.own_ns += own_ns;
        self.since_ns += period_ns as f64;
        if cpu.accounted_ns == 0 {
            return;
        }
        // One absurd account must not be remembered for minutes.
        let accounted_ns = (cpu.accounted_ns as f64).min(4.0 * self.since_ns + TICKS_NS);
        let busy_ns = cpu.busy * accounted_ns;
        self.slow.add(MEAN_NS, busy_ns, self.own_ns, accounted_ns);
        self.quick.add(QUICK_MEAN_NS, busy_ns, self.own_ns, accounted_ns);
        (self.own_ns, self.since_ns) = (0.0, 0.0);
    }

    fn judge(&mut self, now_ns: u64) {
        let wanted = self.slow.share(MEAN_NS) >= if self.is_in { OUT_SHARE } else { IN_SHARE };
        if wanted == self.is_in {
            self.otherwise_ns = None;
            return;
        }
        let since_ns = *self.otherwise_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= SUSTAINED_NS {
            (self.is_in, self.otherwise_ns) = (wanted, None);
        }
    }
}

/// How long a change that would rearrange the stack has to stay before it is followed. The kernel's scheduler moves
/// applications about, and away from where the stack goes: each time that they are followed, the next takes twice as
/// long, until they have been where they are for long.
#[derive(Clone, Debug)]
pub struct Patience<T> {
    candidate: Option<(T, u64)>,
    wait_ns: u64,
    /// When they were last elsewhere than the stack takes them to be.
    unrest_ns: Option<u64>,
}

const WAIT_MIN_NS: u64 = 5_000_000_000;
const WAIT_MAX_NS: u64 = 600_000_000_000;
/// Calm for so many times the last wait, they have come to rest.
const RESTED: u64 = 16;

impl<T> Default for Patience<T> {
    fn default() -> Self {
        Self { candidate: None, wait_ns: WAIT_MIN_NS, unrest_ns: None }
    }
}

impl<T: PartialEq> Patience<T> {
    /// Whether it is time to go from `held` to `now`.
    pub fn is_over(&mut self, now_ns: u64, held: &T, now: T) -> bool {
        if now == *held {
            self.candidate = None;
            return false;
        }
        let since_ns = match &self.candidate {
            Some((before, since_ns)) if *before == now => *since_ns,
            _ => now_ns,
        };
        if self.unrest_ns.is_some_and(|at| now_ns.saturating_sub(at) >= self.wait_ns * RESTED) {
            self.wait_ns = WAIT_MIN_NS;
        }
        self.unrest_ns = Some(now_ns);
        if now_ns.saturating_sub(since_ns) < self.wait_ns {
            self.candidate = Some((now, since_ns));
            return false;
        }
        self.candidate = None;
        self.wait_ns = (self.wait_ns * 2).min(WAIT_MAX_NS);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::ComponentLoad;

    const LOOK_NS: u64 = 10_000_000;

    fn seen(at_ns: u64, tcp: ComponentLoad, cpus: Vec<CpuLoad>) -> Observation {
        let components = alloc::vec![tcp];
        Observation { at_ns, period_ns: LOOK_NS, components, cpus, ..Observation::default() }
    }

    /// Feeds looks for so long; `busy` says how busy CPU 0 is at a look, of which tcp takes `own`.
    fn feed(them: &mut Applications, from_ns: u64, for_ns: u64, own: f64, busy: impl Fn(u64) -> f64) -> u64 {
        for look in 1..=for_ns / LOOK_NS {
            let cpu = |cpu: u32, busy: f64| CpuLoad {
                cpu,
                online: true,
                busy,
                accounted_ns: LOOK_NS,
                ..CpuLoad::default()
            };
            let tcp = ComponentLoad {
                name: "tcp".into(),
                running: true,
                cpu: Some(0),
                cpu_share: own,
                ..ComponentLoad::default()
            };
            let cpus = alloc::vec![cpu(0, busy(look)), cpu(1, 0.05)];
            them.note(&seen(from_ns + look * LOOK_NS, tcp, cpus));
        }
        from_ns + for_ns
    }

    #[test]
    fn what_the_stack_takes_is_not_somebody_elses() {
        let mut them = Applications::default();
        let now = feed(&mut them, 0, 5_000_000_000, 0.85, |_| 0.95);
        assert!(them.cpus().is_empty(), "{}", them.cpus());
        feed(&mut them, now, 5_000_000_000, 0.35, |_| 0.95);
        assert_eq!(them.cpus().to_string(), "0");
    }

    #[test]
    fn an_account_that_is_read_at_every_tenth_look_says_the_same_at_all_of_them() {
        // Seen live: what others took swung between 0.6 and nothing ten times a second.
        let mut them = Applications::default();
        for look in 1..200 {
            let accounted_ns = if look % 10 == 0 { 10 * LOOK_NS } else { 0 };
            let busy = if accounted_ns > 0 { 0.95 } else { 0.0 };
            let tcp = ComponentLoad {
                name: "tcp".into(),
                cpu: Some(0),
                cpu_share: 0.4,
                ..ComponentLoad::default()
            };
            let cpu = CpuLoad { cpu: 0, online: true, busy, accounted_ns, ..CpuLoad::default() };
            them.note(&seen(look * LOOK_NS, tcp, alloc::vec![cpu]));
            let share = them.share(0);
            assert!(look < 10 || (share - 0.55).abs() < 0.01, "{share} at look {look}");
        }
    }

    #[test]
    fn what_may_be_the_stacks_own_is_taken_off_every_cpu() {
        let mut them = Applications::default();
        for look in 1..500 {
            let cpu = |cpu: u32| CpuLoad {
                cpu,
                busy: 0.4,
                accounted_ns: LOOK_NS,
                online: true,
                ..CpuLoad::default()
            };
            let tcp = ComponentLoad { name: "tcp".into(), cpu_share: 0.35, ..ComponentLoad::default() };
            them.note(&seen(look * LOOK_NS, tcp, alloc::vec![cpu(0), cpu(1)]));
        }
        assert!(them.cpus().is_empty(), "{}", them.cpus());
    }

    #[test]
    fn in_above_a_fifth_for_a_second_and_out_below_a_tenth() {
        let mut them = Applications::default();
        let now = feed(&mut them, 0, 3_000_000_000, 0.0, |_| 0.02);
        // A burst of half a second is nothing, nor is what flickers about the mark with a mean below it.
        let now = feed(&mut them, now, 500_000_000, 0.0, |_| 0.9);
        let now = feed(&mut them, now, 3_000_000_000, 0.0, |look| if look % 2 == 0 { 0.25 } else { 0.01 });
        assert!(them.cpus().is_empty());
        let now = feed(&mut them, now, 4_000_000_000, 0.0, |_| 0.3);
        assert_eq!(them.cpus().to_string(), "0");
        let now = feed(&mut them, now, 4_000_000_000, 0.0, |_| 0.13);
        assert_eq!(them.cpus().to_string(), "0", "between the marks it stays");
        feed(&mut them, now, 4_000_000_000, 0.0, |_| 0.05);
        assert!(them.cpus().is_empty());
    }

    #[test]
    fn ticks_that_come_late_are_nobodys_load() {
        // The stack takes half of each look; the kernel accounts for it in whole ticks, every other look.
        let mut them = Applications::default();
        for look in 1..1000u64 {
            let busy = if look % 2 == 0 { 1.0 } else { 0.0 };
            let cpu = CpuLoad { cpu: 0, busy, accounted_ns: LOOK_NS, ..CpuLoad::default() };
            let tcp = ComponentLoad { cpu: Some(0), cpu_share: 0.5, ..ComponentLoad::default() };
            them.note(&seen(look * LOOK_NS, tcp, alloc::vec![cpu]));
            assert!(them.cpus().is_empty(), "look {look}");
        }
    }

    #[test]
    fn who_goes_to_and_fro_is_followed_ever_more_seldom() {
        let mut patience = Patience::default();
        let (mut held, mut followed) = (0, 0);
        // Every 7 s in the other package, for ten minutes.
        for second in 0..600u64 {
            let now = second / 7 % 2;
            if patience.is_over(second * 1_000_000_000, &held, now) {
                (held, followed) = (now, followed + 1);
            }
        }
        assert_eq!(followed, 1);
        let calm = 600_000_000_000 + 2 * WAIT_MIN_NS * RESTED;
        assert!(!patience.is_over(calm, &held, 1 - held));
        assert!(patience.is_over(calm + WAIT_MIN_NS, &held, 1 - held));
    }
}

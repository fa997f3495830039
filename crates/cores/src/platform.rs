//! What a policy has to work with: the machine, the speeds that its managed CPUs can be set to, and the components.
//!
//! Promises: every question has an answer on every machine, whether its hardware threads, caches, packages, classes and
//! speeds are known or not; where they are unknown, CPUs look alike.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use eft_machine::{CoreClass, Cpu, CpuId, CpuSet, KiloHertz, Machine, Share};

use crate::error::SchedulerError;
use crate::plan::Plan;

/// Most components of a stack.
pub const COMPONENTS_MAX: usize = 64;
/// What each of two busy hardware threads of a core gets done, relative to one that has the core alone. Two together
/// do a quarter more, since one runs while the other waits for memory (thesis 4.5).
pub const THREAD_SHARE: f64 = 0.62;
/// More steps than this between the slowest and the fastest only make a search longer.
const LEVELS_MAX: usize = 8;

#[derive(Clone, Debug)]
pub struct Platform {
    machine: Machine,
    /// In the order in which a packet that arrives passes them.
    components: Vec<String>,
    levels: BTreeMap<CpuId, Vec<Share>>,
    /// Each CPU's index in the machine's list.
    index: BTreeMap<CpuId, usize>,
    largest_capacity: u32,
    /// Managed CPUs that can run something, parked or not; kept because it is often needed.
    managed: CpuSet,
    /// The hardware threads of each CPU's core.
    siblings: BTreeMap<CpuId, CpuSet>,
    /// Speeds are P-states: they lower the voltage, and a frequency domain has only one. Otherwise a duty cycle.
    by_frequency: bool,
    /// Where the applications run, if that is known.
    pub applications: CpuSet,
}

/// Where the applications are, as far as it matters to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Where most of their CPUs are.
    pub package: u32,
    /// Whether idle neighbours would make any of them faster.
    pub boost: bool,
}

impl Platform {
    /// `duty_levels`: shares that each managed CPU can be slowed down to by a duty cycle; `None`: only the P-states
    /// that the machine offers.
    pub fn new(
        machine: Machine,
        components: &[String],
        duty_levels: Option<&[Share]>,
    ) -> Result<Self, SchedulerError> {
        if components.len() > COMPONENTS_MAX {
            return Err(SchedulerError::TooManyComponents { count: components.len(), most: COMPONENTS_MAX });
        }
        let mut components = components.to_vec();
        components.sort_by_key(|name| (rank(name), name.clone()));
        components.dedup();
        let levels_of = |cpu: &Cpu| match duty_levels {
            Some(levels) => tidy_levels(levels.to_vec()),
            None => frequency_levels(cpu),
        };
        let managed = machine.cpus.iter().filter(|cpu| machine.managed.contains(cpu.cpu));
        let levels = managed.map(|cpu| (cpu.cpu, levels_of(cpu))).collect();
        let index = machine.cpus.iter().enumerate().map(|(index, cpu)| (cpu.cpu, index)).collect();
        let largest_capacity = machine.cpus.iter().filter_map(|cpu| cpu.capacity).max().unwrap_or(0);
        let of_core = |cpu: &Cpu| (cpu.cpu, cpu.siblings.union(&CpuSet::one(cpu.cpu)));
        let siblings = machine.cpus.iter().map(of_core).collect();
        Ok(Self {
            managed: usable(&machine),
            siblings,
            index,
            largest_capacity,
            machine,
            components,
            levels,
            by_frequency: duty_levels.is_none(),
            applications: CpuSet::new(),
        })
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Updates the CPUs' states; the list of CPUs stays the same.
    pub fn set_states(&mut self, online: CpuSet, offline: CpuSet, parked: CpuSet) {
        (self.machine.online, self.machine.offline, self.machine.parked) = (online, offline, parked);
        self.managed = usable(&self.machine);
    }

    pub fn components(&self) -> &[String] {
        &self.components
    }

    pub fn by_frequency(&self) -> bool {
        self.by_frequency
    }

    /// Managed CPUs that can run something, parked or not.
    pub fn managed(&self) -> CpuSet {
        self.managed.clone()
    }

    pub fn is_managed(&self, cpu: CpuId) -> bool {
        self.managed.contains(cpu)
    }

    /// A CPU that always runs something: the base CPU, if it is online.
    pub fn base(&self) -> CpuId {
        let running = self.machine.online.minus(&self.machine.parked);
        if running.contains(CpuId(0)) {
            CpuId(0)
        } else {
            running.first().or(self.machine.online.first()).unwrap_or(CpuId(0))
        }
    }

    /// From slow to full speed; never empty.
    pub fn levels(&self, cpu: CpuId) -> &[Share] {
        self.levels.get(&cpu).map_or(&[Share::ALL], Vec::as_slice)
    }

    fn cpu(&self, cpu: CpuId) -> Option<&Cpu> {
        self.machine.cpus.get(*self.index.get(&cpu)?)
    }

    pub fn class(&self, cpu: CpuId) -> CoreClass {
        self.cpu(cpu).map_or(CoreClass::Equal, |cpu| cpu.class)
    }

    /// Work done per time at full speed, relative to the largest core here.
    pub fn capacity(&self, cpu: CpuId) -> f64 {
        let Some(cpu) = self.cpu(cpu) else { return 1.0 };
        let largest = self.largest_capacity;
        match (cpu.capacity, cpu.class) {
            (Some(capacity), _) if largest > 0 => (f64::from(capacity) / f64::from(largest)).max(0.05),
            // Without figures: roughly the capacities of a big.LITTLE pair.
            (_, CoreClass::Little) => 0.5,
            (_, CoreClass::Medium) => 0.75,
            _ => 1.0,
        }
    }

    /// Hardware threads of the same core, itself included.
    pub fn siblings(&self, cpu: CpuId) -> CpuSet {
        self.siblings.get(&cpu).cloned().unwrap_or_else(|| CpuSet::one(cpu))
    }

    pub fn is_first_thread(&self, cpu: CpuId) -> bool {
        let Some(threads) = self.siblings.get(&cpu) else { return true };
        threads.iter().find(|thread| *thread == cpu || self.managed.contains(*thread)) == Some(cpu)
    }

    pub fn package(&self, cpu: CpuId) -> u32 {
        self.cpu(cpu).and_then(|cpu| cpu.package).unwrap_or(0)
    }

    /// The lowest CPU that shares the last-level cache.
    pub fn cache(&self, cpu: CpuId) -> CpuId {
        let shared = self.cpu(cpu).and_then(|cpu| cpu.last_level_cache.as_ref()).map(|cache| &cache.shared);
        shared.and_then(CpuSet::first).unwrap_or(CpuId(0))
    }

    /// Managed CPUs that change their speed together with this one.
    pub fn domain(&self, cpu: CpuId) -> CpuSet {
        let known =
            self.cpu(cpu).and_then(|cpu| cpu.frequency.as_ref()).map(|frequency| frequency.domain.clone());
        let together = known.filter(|_| self.by_frequency).unwrap_or_default();
        if together.is_empty() {
            return CpuSet::one(cpu);
        }
        together.and(&self.managed).union(&CpuSet::one(cpu))
    }

    /// Whether idle neighbours let this CPU run faster than its full speed.
    pub fn has_boost(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).and_then(|cpu| cpu.frequency.as_ref()).and_then(|frequency| frequency.boost)
            == Some(true)
    }

    /// The applications' home, if they run on these CPUs; `None` if there are none, or if all managed CPUs are in one
    /// package.
    pub fn home(&self, applications: &CpuSet) -> Option<Home> {
        let mut packages = self.managed.iter().map(|cpu| self.package(cpu));
        let first = packages.next()?;
        if packages.all(|package| package == first) {
            return None;
        }
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for cpu in applications.iter() {
            *counts.entry(self.package(cpu)).or_default() += 1;
        }
        let package =
            counts.iter().min_by_key(|(package, count)| (core::cmp::Reverse(**count), **package))?.0;
        Some(Home { package: *package, boost: applications.iter().any(|cpu| self.has_boost(cpu)) })
    }

    /// A CPU's capacity under a plan while it has its core to itself.
    pub fn effective(&self, cpu: CpuId, plan: &Plan) -> f64 {
        self.capacity(cpu) * plan.speed(cpu)
    }
}

fn usable(machine: &Machine) -> CpuSet {
    machine.managed.and(&machine.online.union(&machine.parked))
}

/// A component's position on the path of an arriving packet.
pub fn rank(name: &str) -> u8 {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "nic" => 0,
        "ip" => 1,
        "filter" => 2,
        "udp" => 3,
        "tcp" => 4,
        "sockets" => 5,
        _ => 6,
    }
}

/// Whether this component copies payload between the stack and its programs.
pub fn is_transport(name: &str) -> bool {
    matches!(rank(name), 3 | 4)
}

/// The share of the stack's work that a component has before anything is known of the load: tcp has most, ip comes
/// next, the driver does with little, and the syscall server needs no core of its own (thesis 4.6).
pub fn usual_demand(name: &str) -> f64 {
    match rank(name) {
        0 => 0.18,
        1 => 0.24,
        2 => 0.12,
        3 => 0.02,
        4 => 0.40,
        5 => 0.03,
        _ => 0.01,
    }
}

fn frequency_levels(cpu: &Cpu) -> Vec<Share> {
    let Some(frequency) = &cpu.frequency else { return alloc::vec![Share::ALL] };
    let of_states = || cpu.p_states.iter().map(|state| state.frequency).collect::<Vec<_>>();
    let mut clocks = if frequency.available.is_empty() { of_states() } else { frequency.available.clone() };
    let limits = (frequency.min, frequency.max);
    if let ([], (Some(min), Some(max))) = (clocks.as_slice(), limits) {
        // The driver accepts any frequency in its range.
        let step = max.0.saturating_sub(min.0) / (LEVELS_MAX as u64 - 1);
        clocks = (0..LEVELS_MAX as u64).map(|index| KiloHertz(min.0 + index * step)).collect();
    }
    let full = clocks.iter().copied().max().unwrap_or_default();
    tidy_levels(clocks.into_iter().map(|clock| clock.share_of(full)).collect())
}

/// A speed from here on counts as full speed.
const FULL: Share = Share(0.995);
/// Two speeds closer than this count as one.
const SAME: Share = Share(0.01);

/// Ascending, without duplicates, with full speed, and not too many.
fn tidy_levels(mut levels: Vec<Share>) -> Vec<Share> {
    levels.retain(|level| *level >= crate::speed::SHARE_MIN && *level < FULL);
    levels.sort_by(Share::total_cmp);
    levels.dedup_by(|a, b| (*a - *b).0.abs() < SAME.0);
    let count = levels.len();
    if count >= LEVELS_MAX {
        let kept = |index: usize| levels[index * count / (LEVELS_MAX - 1)];
        levels = (0..LEVELS_MAX - 1).map(kept).collect();
    }
    levels.push(Share::ALL);
    levels
}

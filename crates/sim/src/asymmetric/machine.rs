//! A machine of the model: cores of some classes on dies with a last-level cache and memory of their own.

use eft_machine::Ppm;
use eft_vcpu::error::SchedulerError;
use eft_vcpu::guest::{Count, Vcpu};
use eft_vcpu::host::{Class, Group, Host};
use eft_vcpu::options::{Options, Policy, Score};
use eft_vcpu::scheduler::Scheduler;

use super::calibration::Calibration;

/// Cores of one kind. Class 0 is the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreClass {
    pub name: &'static str,
    pub khz: u64,
    /// Instructions per cycle without waits for memory, relative to class 0, per mille.
    pub ipc_milli: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub classes: Vec<CoreClass>,
    /// Of each core.
    pub class: Vec<usize>,
    pub die: Vec<usize>,
    /// Of each die.
    pub node: Vec<u32>,
    pub traffic_max: u64,
    pub move_in_cache_ns: u64,
    pub move_across_ns: u64,
    /// The factor by which memory waits grow on each die, per mille.
    pub contention: Vec<u64>,
    /// Policies are as the paper builds them: they know fast and slow cores and nothing of caches, and order scores by
    /// any difference (sections 3.3 and 4.2).
    pub plain_policies: bool,
}

impl Machine {
    /// Two dies of one socket; fast cores are spread evenly over them.
    pub fn of_the_paper(calibration: &Calibration, fast_cores: usize) -> Self {
        let per_die = calibration.machine("cores_per_die") as usize;
        let cores = 2 * per_die;
        let rank = |core: usize| core % per_die * 2 + core / per_die;
        let class = |name, khz| CoreClass { name, khz: calibration.machine(khz), ipc_milli: 1000 };
        Self {
            classes: vec![class("fast", "fast_khz"), class("slow", "slow_khz")],
            class: (0..cores).map(|core| usize::from(rank(core) >= fast_cores)).collect(),
            die: (0..cores).map(|core| core / per_die).collect(),
            node: vec![0; 2],
            traffic_max: calibration.machine("die_traffic"),
            move_in_cache_ns: calibration.machine("move_in_cache_us") * 1000,
            move_across_ns: calibration.machine("move_across_us") * 1000,
            contention: vec![1000; 2],
            plain_policies: true,
        }
    }

    /// A class's time for work without memory waits, relative to class 0, per mille.
    pub fn slowness_milli(&self, class: usize) -> u64 {
        let CoreClass { khz, ipc_milli, .. } = self.classes[class];
        self.classes[0].khz * 1000 / khz * 1000 / ipc_milli
    }

    pub fn slowest_milli(&self) -> u64 {
        (0..self.classes.len()).map(|class| self.slowness_milli(class)).max().unwrap_or(1000)
    }

    pub fn no_counts(&self) -> Vec<Count> {
        (0..self.classes.len()).map(|class| Count { class: class as u8, ..Count::default() }).collect()
    }

    /// Work for each nanosecond on a core.
    pub fn rate(&self, memory: u64, core: usize) -> Ppm {
        let slowness = self.slowness_milli(self.class[core]);
        let time = (1000 - memory) * slowness + memory * self.contention[self.die[core]];
        Ppm::of(1_000_000, time)
    }

    /// Computes the memory waits of the next millisecond from the traffic of this one.
    pub fn settle(&mut self, traffic: &[u64]) {
        for (contention, traffic) in self.contention.iter_mut().zip(traffic) {
            // Half way to the value for this traffic, so that it settles instead of oscillating.
            let asked = (traffic * *contention / self.traffic_max.max(1)).max(1000);
            *contention = (*contention + asked) / 2;
        }
    }

    /// Cores of a class, one bit each.
    pub fn mask(&self, class: usize) -> u128 {
        let of_class = (0..self.class.len()).filter(|core| self.class[*core] == class);
        of_class.fold(0, |mask, core| mask | 1 << core)
    }

    /// Groups of cores that a policy distinguishes: by class, and by die if it knows of dies.
    fn groups(&self) -> Vec<(usize, usize, u128)> {
        let dies: Vec<(usize, u128)> = if self.plain_policies {
            vec![(0, u128::MAX)]
        } else {
            let of =
                |die| (0..self.die.len()).filter(|c| self.die[*c] == die).fold(0, |mask, c| mask | 1 << c);
            (0..self.node.len()).map(|die| (die, of(die))).collect()
        };
        let of_class = |class| dies.iter().map(move |(die, mask)| (class, *die, mask & self.mask(class)));
        (0..self.classes.len()).flat_map(of_class).filter(|(.., mask)| *mask != 0).collect()
    }

    /// The policy, and the cores of each group that it sees.
    pub fn scheduler(
        &self,
        policy: Policy,
        score: Score,
        owner: &[(usize, usize)],
    ) -> Result<(Option<Scheduler>, Vec<u128>), SchedulerError> {
        let mut host = Host { classes: Vec::new(), groups: Vec::new() };
        let mut masks = Vec::new();
        let present: Vec<usize> = (0..self.classes.len()).filter(|class| self.mask(*class) != 0).collect();
        let first = present.first().map_or(self.classes[0], |class| self.classes[*class]);
        for class in &present {
            let own = self.classes[*class];
            host.classes.push(Class {
                name: own.name.into(),
                speed: Ppm::of(own.khz, first.khz),
                ipc: Ppm::of(own.ipc_milli, first.ipc_milli),
                sibling_of: None,
            });
        }
        for (class, die, mask) in self.groups() {
            let (cores, node) = (mask.count_ones(), self.node[die]);
            let class = present.iter().position(|present| *present == class).unwrap_or(0) as u8;
            host.groups.push(Group { class, cores, threads: cores, cache: die as u32, cluster: 0, node });
            masks.push(mask);
        }
        let mut options = Options { policy, score, ..Options::default() };
        if self.plain_policies {
            options.tie = Ppm::NONE;
        }
        let mut scheduler = Scheduler::new(host, options)?;
        let vcpus: Vec<Vcpu> =
            owner.iter().enumerate().map(|(id, (vm, _))| Vcpu::new(id as u64, *vm as u64)).collect();
        scheduler.set_vcpus(&vcpus);
        Ok((Some(scheduler), masks))
    }
}

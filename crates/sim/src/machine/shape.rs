//! A modelled machine's parts.

use eft_machine::{Cache, CoreClass, Cpu, CpuId, Frequency, KiloHertz, Machine, Share};

/// CPU 0 is not managed: applications and interrupts are there. The stack has the others.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub managed: u32,
    /// How many of the managed CPUs, from the first on, are little.
    pub little: u32,
    pub threads: u32,
    pub packages: u32,
    pub speeds: Speeds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speeds {
    None,
    /// Eighths by duty cycle.
    Duty,
    /// P-states of each CPU.
    Frequency,
}

const EIGHTHS: [Share; 7] =
    [Share(0.125), Share(0.25), Share(0.375), Share(0.5), Share(0.625), Share(0.75), Share(0.875)];
const FULL: KiloHertz = KiloHertz(2_400_000);

impl Shape {
    pub const TWO: Self = Self { managed: 2, little: 0, threads: 1, packages: 1, speeds: Speeds::Duty };

    /// The duty cycles that the scheduler learns of.
    pub fn duty_levels(&self) -> Option<&'static [Share]> {
        match self.speeds {
            Speeds::None => Some(&[]),
            Speeds::Duty => Some(&EIGHTHS),
            Speeds::Frequency => None,
        }
    }

    pub fn machine(&self) -> Machine {
        let cpus: Vec<Cpu> = (0..=self.managed).map(|number| self.cpu(number)).collect();
        Machine {
            model: Some("modelled".into()),
            online: (0..=self.managed).map(CpuId).collect(),
            managed: (1..=self.managed).map(CpuId).collect(),
            cpus,
            ..Machine::default()
        }
    }

    fn cpu(&self, number: u32) -> Cpu {
        let index = number.saturating_sub(1);
        let threads = self.threads.max(1);
        let first = index / threads * threads + 1;
        let siblings = if number == 0 { 0..1 } else { first..first + threads };
        let per_package = self.managed.div_ceil(self.packages.max(1)).max(1);
        let package = index / per_package;
        let little = number > 0 && index < self.little;
        let available = match self.speeds {
            Speeds::Frequency => (3..=8).map(|eighth| KiloHertz(FULL.0 * eighth / 8)).collect(),
            _ => Vec::new(),
        };
        Cpu {
            cpu: CpuId(number),
            online: true,
            managed: number > 0,
            package: Some(package),
            core: Some(first),
            siblings: siblings.map(CpuId).collect(),
            last_level_cache: Some(Cache {
                level: 3,
                size_kib: None,
                shared: (package * per_package + 1..=(package + 1) * per_package).map(CpuId).collect(),
            }),
            class: match self.little {
                0 => CoreClass::Equal,
                _ if little => CoreClass::Little,
                _ => CoreClass::Big,
            },
            capacity: (self.little > 0).then_some(if little { 450 } else { 1024 }),
            frequency: Some(Frequency { max: Some(FULL), available, ..Frequency::default() }),
            ..Cpu::default()
        }
    }
}

/// The default topology, in no particular order.
pub fn components() -> Vec<String> {
    ["sockets", "tcp", "udp", "ip", "filter", "nic0"].map(String::from).to_vec()
}

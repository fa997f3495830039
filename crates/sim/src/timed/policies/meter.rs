//! The energy that the stack's chip has taken, by the machine's own model.

use crate::hardware::Cores;
use crate::timed::world::{Workload, World};

#[derive(Clone, Debug)]
pub struct Meter {
    cores: Cores,
    counted_ps: u64,
    /// Of each core, the awake time that is counted.
    awake_ps: Vec<u64>,
    femtojoules: u128,
}

const MICROJOULE_FJ: u128 = 1_000_000_000;

impl Meter {
    pub fn new(cores: Cores) -> Self {
        Self { counted_ps: 0, awake_ps: vec![0; cores.count() as usize], cores, femtojoules: 0 }
    }

    /// Counts until now. Clocks must not have changed since it was last called.
    pub fn count<W: Workload>(&mut self, world: &World<W>) {
        let passed = world.machine.now_ps - std::mem::replace(&mut self.counted_ps, world.machine.now_ps);
        self.femtojoules += u128::from(self.cores.static_mw()) * u128::from(passed);
        for (i, counted) in self.awake_ps.iter_mut().enumerate() {
            let Some(clock) = world.machine.clock_of(i + 1) else { continue };
            let awake = world.machine.awake_ps(i + 1);
            let awake_since = awake - std::mem::replace(counted, awake);
            self.femtojoules +=
                u128::from(self.cores.core_mw(i + 1, clock, 1_000_000)) * u128::from(awake_since);
        }
    }

    pub fn microjoules(&self) -> u64 {
        (self.femtojoules / MICROJOULE_FJ) as u64
    }
}

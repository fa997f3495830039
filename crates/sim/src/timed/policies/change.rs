//! A plan is carried out while everything runs.

use eft_cores::plan::{Change, Plan, changes};

use super::meter::Meter;
use super::placement::PLACED;
use crate::hardware::Cores;
use crate::timed::charge::component;
use crate::timed::world::{Workload, World};

/// How a machine changes a clock.
#[derive(Clone, Debug)]
pub struct Clocks {
    pub cores: Cores,
    /// From the order until the clock has changed.
    pub transition_ps: u64,
}

/// The plan in force, and what led to it.
#[derive(Clone, Debug)]
pub struct InForce {
    pub plan: Plan,
    /// Servers that went to another core, and cores that got another clock.
    pub moves: u64,
    pub clock_changes: u64,
}

impl InForce {
    /// The least that leads to a new plan, in the scheduler's order. Parked and given-back CPUs only rest.
    pub fn change<W: Workload>(
        &mut self,
        world: &mut World<W>,
        meter: &mut Meter,
        clocks: &Clocks,
        new: &Plan,
    ) {
        let steps = changes(&self.plan, new);
        for group in steps.chunk_by(|one, next| is_speed(one) && is_speed(next)) {
            if group.iter().any(is_speed) {
                // All cores of a step change at the same time.
                world.advance(world.machine.now_ps + clocks.transition_ps);
                meter.count(world);
            }
            group.iter().for_each(|step| self.step(world, clocks, step));
        }
        self.plan = new.clone();
    }

    fn step<W: Workload>(&mut self, world: &mut World<W>, clocks: &Clocks, step: &Change) {
        match step {
            Change::Speed { cpu, share } => {
                let core = cpu.0 as usize;
                let clock = clocks.cores.clock(core, clocks.cores.speed(core, share.0));
                world.machine.set_clock(core, clock);
                self.clock_changes += 1;
            }
            Change::Move { component: name, seat } => {
                let server =
                    PLACED.into_iter().find(|s| component(*s).is_some_and(|c| c.to_string() == *name));
                let Some(server) = server else { return };
                let core = seat.cpu.0 as usize;
                self.moves += u64::from(world.machine.core_of(server) != core);
                world.machine.send(&world.rest.profile.costs, server, core);
            }
            _ => {}
        }
    }
}

fn is_speed(change: &Change) -> bool {
    matches!(change, Change::Speed { .. })
}

//! Which server is on which core, and how fast the cores are.

use std::collections::BTreeMap;
use std::fmt;

use eft_cores::plan::{Plan, Seat as Place};
use eft_machine::{CpuId, Share};

use crate::batch::servers::Server;
use crate::batch::{Seat, Setting};
use crate::hardware::Clock;
use crate::hardware::clock::DUTY_STEPS;
use crate::timed::charge::component;

/// The servers that a plan places, in the order of [`Placement::core_of`].
pub const PLACED: [Server; 3] = [Server::Tcp, Server::Ip, Server::Driver];
/// The program is elsewhere; the stack's cores have the numbers from 1 on.
pub const PROGRAM: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub core_of: [usize; PLACED.len()],
    /// Of the clock of each server's core, in [`DUTY_STEPS`]; servers of one core have the same.
    pub duty: [u64; PLACED.len()],
}

impl Placement {
    pub const ALL_ON_ONE: Self = Self { core_of: [1; PLACED.len()], duty: [DUTY_STEPS; PLACED.len()] };
    pub const SPREAD: Self = Self { core_of: [1, 2, 3], duty: [DUTY_STEPS; PLACED.len()] };

    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        for ((server, core), duty) in PLACED.into_iter().zip(self.core_of).zip(self.duty) {
            let Some(peer) = component(server) else { continue };
            let cpu = CpuId(core as u32);
            plan.seats.insert(peer.to_string(), Place { cpu, dedicated: false });
            if duty < DUTY_STEPS {
                plan.speeds.insert(cpu, Share(duty as f64 / DUTY_STEPS as f64));
            }
        }
        plan
    }

    /// Where a plan puts the servers. `None`: it has no place for one of them.
    pub fn of(plan: &Plan) -> Option<Self> {
        let mut placement = Self::SPREAD;
        for (i, server) in PLACED.into_iter().enumerate() {
            let seat = plan.seats.get(&component(server)?.to_string())?;
            placement.core_of[i] = seat.cpu.0 as usize;
            placement.duty[i] = duty(plan.speed(seat.cpu));
        }
        Some(placement)
    }

    pub fn setting(&self, full_khz: u64) -> Setting {
        let seat = |core, duty| Seat { core, thread: 0, clock: Clock { khz: full_khz, duty } };
        let [tcp, ip, driver] = [0, 1, 2].map(|i| seat(self.core_of[i], self.duty[i]));
        Setting::of([seat(PROGRAM, DUTY_STEPS), tcp, ip, driver])
    }
}

/// The steps that are nearest to a share of full speed.
pub fn duty(share: Share) -> u64 {
    ((share.0 * DUTY_STEPS as f64).round() as u64).clamp(1, DUTY_STEPS)
}

impl fmt::Display for Placement {
    /// `tcp@1*8/8 ip+nic0@2*4/8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cores: BTreeMap<usize, (Vec<String>, u64)> = BTreeMap::new();
        for ((server, core), duty) in PLACED.into_iter().zip(self.core_of).zip(self.duty) {
            let on = cores.entry(core).or_default();
            on.0.extend(component(server).map(|peer| peer.to_string()));
            on.1 = duty;
        }
        let of = |(core, (names, duty)): (&usize, &(Vec<String>, u64))| {
            format!("{}@{core}*{duty}/{DUTY_STEPS}", names.join("+"))
        };
        f.pad(&cores.iter().map(of).collect::<Vec<_>>().join(" "))
    }
}

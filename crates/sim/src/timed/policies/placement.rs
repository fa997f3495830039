//! Which server is on which core, and how fast the cores are.

use std::collections::BTreeMap;

use eft_cores::plan::{Plan, Seat as Place};
use eft_machine::{CpuId, Share};

use crate::batch::run::Outcome;
use crate::batch::servers::Server;
use crate::batch::{Seat, Setting};
use crate::hardware::Cores;
use crate::hardware::cores::SPEEDS;
use crate::timed::charge::component;

/// The servers that a plan places, in the order of [`Placement::core_of`].
pub const PLACED: [Server; 3] = [Server::Tcp, Server::Ip, Server::Driver];
/// The program is elsewhere; the stack's cores have the numbers from 1 on.
pub const PROGRAM: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub core_of: [usize; PLACED.len()],
    /// Of each server's core, in [`SPEEDS`]; servers of one core have the same.
    pub speed: [u64; PLACED.len()],
}

impl Placement {
    /// On cores of the largest class, as far as there are so many.
    pub const ALL_ON_ONE: Self = Self { core_of: [1; PLACED.len()], speed: [SPEEDS; PLACED.len()] };
    pub const SPREAD: Self = Self { core_of: [1, 2, 3], speed: [SPEEDS; PLACED.len()] };

    pub fn plan(&self, cores: &Cores) -> Plan {
        let mut plan = Plan::default();
        for ((server, core), speed) in PLACED.into_iter().zip(self.core_of).zip(self.speed) {
            let Some(peer) = component(server) else { continue };
            let cpu = CpuId(core as u32);
            plan.seats.insert(peer.to_string(), Place { cpu, dedicated: false });
            if speed < SPEEDS {
                plan.speeds.insert(cpu, Share(cores.share(core, speed)));
            }
        }
        plan
    }

    /// Where a plan puts the servers. `None`: it has no place for one of them.
    pub fn of(plan: &Plan, cores: &Cores) -> Option<Self> {
        let mut placement = Self::SPREAD;
        for (i, server) in PLACED.into_iter().enumerate() {
            let seat = plan.seats.get(&component(server)?.to_string())?;
            let core = seat.cpu.0 as usize;
            (placement.core_of[i], placement.speed[i]) = (core, cores.speed(core, plan.speed(seat.cpu).0));
        }
        Some(placement)
    }

    pub fn setting(&self, cores: &Cores) -> Setting {
        let seat = |core, speed| Seat { core, thread: 0, clock: cores.clock(core, speed) };
        let [tcp, ip, driver] = [0, 1, 2].map(|i| seat(self.core_of[i], self.speed[i]));
        Setting::of([seat(PROGRAM, SPEEDS), tcp, ip, driver])
    }

    /// Whether cores that have one clock together have one speed.
    pub fn is_possible(&self, cores: &Cores) -> bool {
        let of = |server: usize| (cores.clocked_with(self.core_of[server]), self.speed[server]);
        let is_one = |one: usize, other: usize| {
            let ((together, speed), (_, too)) = (of(one), of(other));
            speed == too || !together.contains(&self.core_of[other])
        };
        (0..PLACED.len()).all(|one| (one..PLACED.len()).all(|other| is_one(one, other)))
    }

    /// Power of the chip, its static share, too, if tier 2 has this outcome.
    pub fn milliwatts(&self, cores: &Cores, outcome: &Outcome) -> u64 {
        let mut seen = Vec::new();
        let mut power = cores.static_mw();
        for (i, server) in PLACED.into_iter().enumerate() {
            let core = self.core_of[i];
            if !seen.contains(&core) {
                seen.push(core);
                let clock = cores.clock(core, self.speed[i]);
                power += cores.core_mw(core, clock, outcome.busy_ppm[server as usize]);
            }
        }
        power
    }

    /// `tcp@1*8/8 ip+nic0@2*4/8`, or where there are classes `tcp@big1*8/8`.
    pub fn told(&self, cores: &Cores) -> String {
        let mut used: BTreeMap<usize, (Vec<String>, u64)> = BTreeMap::new();
        for ((server, core), speed) in PLACED.into_iter().zip(self.core_of).zip(self.speed) {
            let on = used.entry(core).or_default();
            on.0.extend(component(server).map(|peer| peer.to_string()));
            on.1 = speed;
        }
        let of = |(core, (names, speed)): (&usize, &(Vec<String>, u64))| {
            format!("{}@{}*{speed}/{SPEEDS}", names.join("+"), cores.name(*core))
        };
        used.iter().map(of).collect::<Vec<_>>().join(" ")
    }
}

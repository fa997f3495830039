//! Samples of what tier 1's servers did: their engines' pages, the machine's account of their time, CPUs, energy.

use std::collections::BTreeMap;
use std::time::Duration;

use eft_base::Instant;
use eft_channel::account::QueueReading;
use eft_cores::counted::indicators;
use eft_cores::plan::Plan;
use eft_cores::sample::{ComponentSample, CpuSample, Hint, QueueSample, Sample, Traffic};
use eft_machine::{CpuId, Microjoules};
use eft_messages::ComponentId;

use super::meter::Meter;
use super::placement::{PLACED, PROGRAM};
use crate::batch::servers::Server;
use crate::hardware::{PS_PER_MS, PS_PER_NS};
use crate::timed::charge::component;
use crate::timed::world::{Workload, World};

/// The kernel counts a CPU's time in such units (proc_stat(5)), and they are read every other sample, as live.
const TICK_PS: u64 = 10 * PS_PER_MS;
const READ_PS: u64 = 20 * PS_PER_MS;

#[derive(Default)]
pub struct Sensor {
    /// As they were at the last sample.
    queues: BTreeMap<(ComponentId, u32), QueueReading>,
    /// Busy and idle time of each CPU, as last read.
    cpus: Vec<(u64, u64)>,
    read_ps: u64,
}

fn duration(ps: u64) -> Duration {
    Duration::from_nanos(ps / PS_PER_NS)
}

impl Sensor {
    pub fn sample<W: Workload>(
        &mut self,
        world: &mut World<W>,
        meter: &mut Meter,
        cores: usize,
        plan: &Plan,
    ) -> Sample {
        meter.count(world);
        world.machine.account_all();
        let now_ps = world.machine.now_ps;
        if self.cpus.is_empty() || now_ps >= self.read_ps + READ_PS {
            self.read_ps = now_ps;
            self.cpus = (0..=cores).map(|core| times(world, core)).collect();
        }
        let at = world.rest.servers.now(now_ps);
        Sample {
            at,
            components: PLACED.into_iter().filter_map(|s| self.component(world, s, at, plan)).collect(),
            cpus: self.cpus.iter().enumerate().map(|(core, times)| cpu(core, *times, plan)).collect(),
            energy: Some(Microjoules(meter.microjoules())),
        }
    }

    fn component<W: Workload>(
        &mut self,
        world: &World<W>,
        server: Server,
        at: Instant,
        plan: &Plan,
    ) -> Option<ComponentSample> {
        let peer = component(server)?;
        let name = peer.to_string();
        let (tally, seat) = (&world.machine.tally[server as usize], plan.seats.get(&name)?);
        let awake = tally.awake_ps + tally.polling_ps;
        Some(ComponentSample {
            generation: 1,
            running: true,
            heartbeat: tally.batches + tally.sleeps,
            cpu: Some(seat.cpu),
            dedicated: seat.dedicated,
            accounted_to: at,
            busy: duration(tally.awake_ps),
            polling: duration(tally.polling_ps),
            waiting: Duration::ZERO,
            sleeping: duration(world.machine.now_ps - awake),
            cpu_time: duration(awake),
            wake_ups: tally.sleeps,
            wakes_sent: tally.wakes,
            wakes_cost: duration(tally.wakes_ps),
            queues: self.queues(world, peer),
            hint: hint(world, peer, at),
            traffic: traffic(world, peer),
            counters: None,
            name,
        })
    }

    fn queues<W: Workload>(&mut self, world: &World<W>, peer: ComponentId) -> Vec<QueueSample> {
        let senders = [ComponentId::SOCKETS].into_iter().chain(PLACED.into_iter().filter_map(component));
        let names: BTreeMap<u32, String> = senders.map(|peer| (peer.code(), peer.to_string())).collect();
        let Some(status) = world.rest.servers.stack.status_of(peer) else { return Vec::new() };
        let mut samples = Vec::new();
        for reading in status.account().queues() {
            let before = self.queues.insert((peer, reading.sender), reading);
            let water = before.and_then(|before| reading.water_since(&before));
            let (low, high) = water.unwrap_or((0, 0));
            let Some(from) = names.get(&reading.sender).cloned() else { continue };
            let (overloads, underloads) = (reading.overloads.into(), reading.underloads.into());
            samples.push(QueueSample { from, capacity: reading.capacity, high, low, overloads, underloads });
        }
        samples
    }
}

fn hint<W: Workload>(world: &World<W>, peer: ComponentId, at: Instant) -> Hint {
    let reading = world.rest.servers.stack.status_of(peer).and_then(|status| status.account().read(at));
    match reading.map(|reading| reading.hints) {
        Some(hints) if hints.starved => Hint::Starved,
        Some(hints) if hints.receiver_behind => Hint::ReceiverBehind,
        _ => Hint::None,
    }
}

fn traffic<W: Workload>(world: &World<W>, peer: ComponentId) -> Traffic {
    let counters = world.rest.servers.stack.all_counters(peer);
    let mut traffic = Traffic::default();
    for (names, field) in indicators(peer.role) {
        let of =
            |name: &&str| counters.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value);
        *field(&mut traffic) = names.iter().map(of).sum();
    }
    traffic
}

/// Busy and idle time of a CPU, in whole ticks.
fn times<W: Workload>(world: &World<W>, core: usize) -> (u64, u64) {
    let in_ticks = |ps: u64| ps / TICK_PS * TICK_PS;
    let busy = world.machine.awake_ps(core);
    (in_ticks(busy), in_ticks(world.machine.now_ps - busy))
}

fn cpu(core: usize, (busy_ps, idle_ps): (u64, u64), plan: &Plan) -> CpuSample {
    let cpu = CpuId(core as u32);
    CpuSample {
        cpu,
        online: true,
        managed: core != PROGRAM,
        parked: plan.parked.contains(cpu),
        speed: plan.speed(cpu),
        busy: duration(busy_ps),
        idle: duration(idle_ps),
        stolen: Duration::ZERO,
    }
}

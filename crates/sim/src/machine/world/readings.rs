//! The modelled machine's sensor readings.

use std::time::Duration;

use super::{ACCOUNT_NS, Part, QUEUE, World};
use eft_base::Instant;
use eft_cores::attention::QuickSample;
use eft_cores::sample::{ComponentSample, CpuSample, Hint, QueueSample, Sample, Traffic};
use eft_machine::{CpuId, Microjoules};

impl World {
    /// Lets time pass and takes a sample.
    pub fn sample_after(&mut self, period_ns: u64) -> Sample {
        self.pass(period_ns);
        self.sample()
    }

    /// Takes a quick sample: only counters that are in memory anyway.
    pub fn quick_sample(&self) -> QuickSample {
        let sum = |of: fn(&Part) -> u64| self.parts.values().map(of).sum::<u64>();
        let Traffic { received_bytes, sent_bytes, received_segments, sent_segments, .. } = self.traffic;
        QuickSample {
            beats: sum(|part| part.heartbeat as u64),
            moved: received_bytes + sent_bytes + received_segments + sent_segments,
            distress: sum(|part| part.overloads) + self.starved,
        }
    }

    /// Takes a whole sample; the observation of queues begins anew.
    pub fn sample(&mut self) -> Sample {
        if self.now_ns >= self.accounted_to_ns + ACCOUNT_NS {
            self.account();
        }
        let sample = self.seen();
        for part in self.parts.values_mut() {
            (part.high, part.low) = (0.0, f64::from(QUEUE));
        }
        sample
    }

    fn seen(&self) -> Sample {
        let components = self.parts.iter().map(|(name, part)| self.component(name, part)).collect();
        let machine = self.hardware.machine();
        let cpu = |cpu: CpuId| {
            let (busy, idle) = self.accounts.get(&cpu).copied().unwrap_or_default();
            CpuSample {
                cpu,
                online: true,
                managed: machine.managed.contains(cpu),
                parked: self.plan.parked.contains(cpu),
                speed: self.plan.speed(cpu),
                busy: Duration::from_nanos(busy),
                idle: Duration::from_nanos(idle),
                stolen: Duration::ZERO,
            }
        };
        Sample {
            at: Instant(self.now_ns),
            components,
            cpus: machine.online.iter().map(cpu).collect(),
            energy: Some(Microjoules(self.energy_uj as u64)),
        }
    }

    pub(super) fn component(&self, name: &str, part: &Part) -> ComponentSample {
        let seat = self.plan.seats.get(name);
        let queue = QueueSample {
            from: "neighbour".into(),
            capacity: QUEUE,
            high: part.high as u32,
            low: part.low as u32,
            overloads: part.overloads,
            underloads: part.underloads,
        };
        ComponentSample {
            name: name.into(),
            generation: 1,
            running: true,
            heartbeat: part.heartbeat as u64,
            cpu: seat.map(|seat| seat.cpu),
            dedicated: seat.is_some_and(|seat| seat.dedicated),
            accounted_to: Instant(self.now_ns),
            busy: Duration::from_nanos(part.busy_ns as u64),
            polling: Duration::from_nanos(part.polling_ns as u64),
            waiting: Duration::ZERO,
            sleeping: Duration::from_nanos(part.sleeping_ns as u64),
            cpu_time: Duration::from_nanos((part.busy_ns + part.polling_ns) as u64),
            wake_ups: part.wake_ups as u64,
            wakes_sent: part.wakes_sent as u64,
            wakes_cost: Duration::from_nanos((part.wakes_sent * 13_000.0) as u64),
            queues: vec![queue],
            hint: if self.disturbance.starves() { Hint::Starved } else { Hint::None },
            traffic: if name == "tcp" { self.traffic } else { Traffic::default() },
            counters: None,
        }
    }
}

//! One sample of a running stack and its cores, as plain data, from the sensors to the scheduler.
//!
//! All counters are cumulative since the component's first start and may wrap or go back (a status page outlives its
//! component, but a component may scribble over its own): `observation` turns two samples into rates and refuses what
//! is absurd. A value that the machine does not provide is `None`, never a guess.

use alloc::string::String;
use alloc::vec::Vec;

use core::time::Duration;

use eft_base::{Instant, time};
use eft_machine::{CpuId, Microjoules, Share};
use serde::{Deserialize, Serialize};

/// All readings of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// On the monotonic clock.
    #[serde(rename = "at_ns")]
    pub at: Instant,
    pub components: Vec<ComponentSample>,
    pub cpus: Vec<CpuSample>,
    /// Energy of all packages since some beginning; `None` without a meter.
    #[serde(rename = "energy_uj")]
    pub energy: Option<Microjoules>,
}

/// One component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentSample {
    /// As `eft ps` names it: `tcp`, `nic0`, …
    pub name: String,
    /// Grows with every restart; counters of two generations are not compared.
    pub generation: u32,
    pub running: bool,
    /// Turns of its loop: stands still while it sleeps, and also if it hangs.
    pub heartbeat: u64,
    /// Where it was told to run; `None`: anywhere.
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
    /// The end of the time that the four times below cover, on the clock of [`Sample::at`]; zero: nothing was accounted
    /// for yet. It differs from `at` by as long as the sampling took.
    #[serde(rename = "accounted_to_ns")]
    pub accounted_to: Instant,
    /// Handling messages, events and deadlines.
    #[serde(rename = "busy_ns", with = "time::nanos")]
    pub busy: Duration,
    /// Polling empty queues in user space.
    #[serde(rename = "polling_ns", with = "time::nanos")]
    pub polling: Duration,
    /// In user-mode wait (UMWAIT, MWAITX, WFE): the kernel counts it as busy, but the core rests.
    #[serde(rename = "waiting_ns", with = "time::nanos")]
    pub waiting: Duration,
    /// In the kernel, asleep.
    #[serde(rename = "sleeping_ns", with = "time::nanos")]
    pub sleeping: Duration,
    /// CPU time as the kernel accounts it.
    #[serde(rename = "cpu_ns", with = "time::nanos")]
    pub cpu_time: Duration,
    /// Times that it slept in the kernel and was woken.
    pub wake_ups: u64,
    /// Wakes that it sent by a system call, and what they cost it.
    pub wakes_sent: u64,
    #[serde(rename = "wakes_sent_ns", with = "time::nanos")]
    pub wakes_cost: Duration,
    pub queues: Vec<QueueSample>,
    pub hint: Hint,
    pub traffic: Traffic,
    /// Of the component's thread, where there is a PMU.
    pub counters: Option<HardwareCounters>,
}

/// A queue toward this component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSample {
    /// The sender.
    pub from: String,
    pub capacity: u32,
    /// Most and fewest messages in it since the previous sample.
    pub high: u32,
    pub low: u32,
    /// Times that it rose above its upper mark, and fell below its lower mark.
    pub overloads: u64,
    pub underloads: u64,
}

/// A component's own report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    #[default]
    None,
    /// The component that it sends to does not keep up.
    ReceiverBehind,
    /// It itself gets too little time: its queues fill while it is runnable.
    Starved,
}

/// The indicators of Table 1 (`multiserver-scheduling`, section 3.1). What a component does not count stays 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// tcp, udp: payload.
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// tcp: segments as on the wire; udp: datagrams.
    pub received_segments: u64,
    pub sent_segments: u64,
    /// tcp: segments sent without payload.
    pub sent_empty_segments: u64,
    /// tcp: segments received without payload.
    #[serde(default)]
    pub received_empty_segments: u64,
    pub outbound_connections: u64,
    pub accepted_connections: u64,
    pub closed_connections: u64,
    /// udp.
    pub opened_sockets: u64,
    pub closed_sockets: u64,
    /// ip: bytes with headers, and packets of the protocols that it handles itself.
    pub ip_received_bytes: u64,
    pub ip_sent_bytes: u64,
    pub arp_packets: u64,
    pub icmp_packets: u64,
    /// tcp: connections that may still carry data, now. Those in TIME-WAIT have ended.
    pub connections_open: u64,
}

/// Per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareCounters {
    pub instructions: u64,
    pub cycles: u64,
    pub cache_misses: u64,
    pub cache_references: u64,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSample {
    pub cpu: CpuId,
    pub online: bool,
    pub managed: bool,
    pub parked: bool,
    /// Share of full speed that it is set to.
    pub speed: Share,
    /// Busy and idle time as the kernel accounts it; the time of eft's burner is not in `busy`.
    #[serde(rename = "busy_ns", with = "time::nanos")]
    pub busy: Duration,
    #[serde(rename = "idle_ns", with = "time::nanos")]
    pub idle: Duration,
    /// Time in which a task was ready and a hypervisor had given the CPU to another virtual machine (proc_stat(5),
    /// `steal`).
    #[serde(rename = "stolen_ns", with = "time::nanos")]
    pub stolen: Duration,
}

#[cfg(test)]
mod tests;

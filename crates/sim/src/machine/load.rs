//! Loads: a message's cost to each component, its traffic, and the rate of messages.

use eft_cores::sample::Traffic;
use eft_machine::CpuId;

/// Cost of one message to a component on the largest core at full speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub component: &'static str,
    /// Scales with the clock.
    pub cpu_ns: f64,
    /// Waiting for memory: a lower frequency does not lengthen it.
    pub memory_ns: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub name: String,
    /// In the order in which a message passes the components.
    pub costs: Vec<Cost>,
    /// Most messages in flight: a window, or connections that each wait for an answer.
    pub window: f64,
    /// Time outside of the stack between a message and the next one in its place in the window.
    pub outside_ns: f64,
    /// Messages per second, if fewer than the stack could do.
    pub offered: Option<f64>,
    /// Counted per thousand messages.
    pub per_thousand: Traffic,
    pub connections_open: u64,
    /// `None`: on CPUs that the stack may not use.
    pub ends: Option<Ends>,
}

/// The stack's program and its peer, if they run on CPUs that the stack may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    pub program: CpuId,
    pub peer: CpuId,
    /// What a message costs each of them.
    pub program_ns: f64,
    pub peer_ns: f64,
    /// Additional time of tcp's copy if the program's data is in another core's cache.
    pub far_copy_ns: f64,
    /// The receiver's cost of a message from another CPU, where it waits for its turn behind program or peer.
    pub crossing_ns: f64,
}

/// The load over time.
#[derive(Clone, Debug)]
pub enum Schedule {
    Constant(Option<Load>),
    Flips {
        loads: [Option<Load>; 2],
        every_ns: u64,
    },
    /// From each time on, until the next.
    Steps(Vec<(u64, Option<Load>)>),
}

impl Schedule {
    pub fn at(&self, now_ns: u64) -> Option<&Load> {
        match self {
            Self::Constant(load) => load.as_ref(),
            Self::Flips { loads, every_ns } => loads[(now_ns / every_ns.max(&1) % 2) as usize].as_ref(),
            Self::Steps(steps) => {
                steps.iter().rev().find(|(from_ns, _)| *from_ns <= now_ns).and_then(|(_, load)| load.as_ref())
            }
        }
    }
}

/// The part of all costs that is spent waiting for memory.
const MEMORY_SHARE: f64 = 0.2;
const HEADER_BYTES: u64 = 66;
const SEGMENT_BYTES: u64 = 1448;

fn costs(ns: [(&'static str, f64); 5]) -> Vec<Cost> {
    let cost =
        |(component, ns)| Cost { component, cpu_ns: ns * (1.0 - MEMORY_SHARE), memory_ns: ns * MEMORY_SHARE };
    ns.into_iter().map(cost).collect()
}

/// Bytes with headers of both directions.
fn with_headers(mut traffic: Traffic) -> Traffic {
    traffic.ip_received_bytes = traffic.received_bytes + traffic.received_segments * HEADER_BYTES;
    traffic.ip_sent_bytes = traffic.sent_bytes + traffic.sent_segments * HEADER_BYTES;
    traffic
}

impl Load {
    /// A transfer to the peer; messages of 16 kB.
    pub fn bulk_out() -> Self {
        Self {
            name: "bulk out".into(),
            costs: costs([
                ("tcp", 5000.0),
                ("ip", 2500.0),
                ("filter", 1200.0),
                ("nic0", 3500.0),
                ("sockets", 0.0),
            ]),
            window: 64.0,
            outside_ns: 60_000.0,
            offered: None,
            per_thousand: with_headers(Traffic {
                sent_bytes: 16_000_000,
                sent_segments: 11_000,
                received_segments: 5_500,
                received_empty_segments: 5_500,
                ..Traffic::default()
            }),
            connections_open: 4,
            ends: None,
        }
    }

    /// A transfer whose connections cost tcp more than all other components together.
    pub fn bulk_with_costly_tcp() -> Self {
        Self {
            name: "bulk out, costly tcp".into(),
            costs: costs([
                ("tcp", 9000.0),
                ("ip", 2500.0),
                ("filter", 1200.0),
                ("nic0", 3500.0),
                ("sockets", 0.0),
            ]),
            ..Self::bulk_out()
        }
    }

    /// A transfer from the peer; tcp copies more, the driver has more to do.
    pub fn bulk_in() -> Self {
        Self {
            name: "bulk in".into(),
            costs: costs([
                ("nic0", 5000.0),
                ("ip", 3000.0),
                ("filter", 1500.0),
                ("tcp", 8000.0),
                ("sockets", 0.0),
            ]),
            per_thousand: with_headers(Traffic {
                received_bytes: 16_000_000,
                received_segments: 11_000,
                sent_segments: 5_500,
                sent_empty_segments: 5_500,
                ..Traffic::default()
            }),
            ..Self::bulk_out()
        }
    }

    /// A web server: short requests, answers of `answer_bytes`, ten on a connection; each of `clients` waits for its
    /// answer (closed loop).
    pub fn requests(answer_bytes: u64, clients: u32) -> Self {
        let segments = answer_bytes.div_ceil(SEGMENT_BYTES).max(1);
        // Segmentation is the device's work, so a further segment costs less than the first.
        let more = (segments - 1) as f64;
        Self {
            name: format!("requests of {answer_bytes} B"),
            costs: costs([
                ("nic0", 2500.0 + 220.0 * more),
                ("ip", 2200.0 + 130.0 * more),
                ("filter", 1300.0 + 60.0 * more),
                ("tcp", 4200.0 + 330.0 * more),
                ("sockets", 500.0),
            ]),
            window: f64::from(clients),
            outside_ns: 90_000.0,
            offered: None,
            per_thousand: with_headers(Traffic {
                received_bytes: 120_000,
                received_segments: 1_100 + segments * 500,
                received_empty_segments: 100 + segments * 500,
                sent_bytes: answer_bytes * 1000,
                sent_segments: segments * 1000 + 100,
                sent_empty_segments: 100,
                accepted_connections: 100,
                closed_connections: 100,
                ..Traffic::default()
            }),
            connections_open: u64::from(clients),
            ends: None,
        }
    }

    /// Transfers and requests at the same time: `requests` to each message of a transfer.
    pub fn mixed(requests: u64) -> Self {
        let (bulk, small) = (Self::bulk_out(), Self::requests(200, 32));
        let whole = requests as f64 + 1.0;
        let share = 1.0 / whole;
        let cost = |component: &'static str| {
            let of = |load: &Self| load.costs.iter().find(|cost| cost.component == component).copied();
            let (b, s) = (of(&bulk), of(&small));
            let blend = |part: fn(&Cost) -> f64| {
                b.as_ref().map_or(0.0, part) * share + s.as_ref().map_or(0.0, part) * (1.0 - share)
            };
            Cost { component, cpu_ns: blend(|cost| cost.cpu_ns), memory_ns: blend(|cost| cost.memory_ns) }
        };
        let blend = |bulk: u64, small: u64| (bulk + small * requests) / (requests + 1);
        let (b, s) = (bulk.per_thousand, small.per_thousand);
        Self {
            name: format!("mixed, {requests} requests to a message"),
            costs: ["nic0", "ip", "filter", "tcp", "sockets"].map(cost).to_vec(),
            window: 64.0,
            outside_ns: 80_000.0,
            offered: None,
            per_thousand: with_headers(Traffic {
                received_bytes: blend(b.received_bytes, s.received_bytes),
                received_segments: blend(b.received_segments, s.received_segments),
                received_empty_segments: blend(b.received_empty_segments, s.received_empty_segments),
                sent_bytes: blend(b.sent_bytes, s.sent_bytes),
                sent_segments: blend(b.sent_segments, s.sent_segments),
                sent_empty_segments: blend(b.sent_empty_segments, s.sent_empty_segments),
                accepted_connections: blend(0, s.accepted_connections),
                closed_connections: blend(0, s.closed_connections),
                ..Traffic::default()
            }),
            connections_open: 36,
            ends: None,
        }
    }

    /// Puts program and peer on these CPUs. The costs make plans compare as measured on two quiet CPUs: the stack on
    /// the peer's CPU does two thirds of what it does on the program's, and on both half to nine tenths of it.
    pub fn between(self, program: CpuId, peer: CpuId) -> Self {
        let ends = Ends {
            program,
            peer,
            program_ns: 4000.0,
            peer_ns: 6000.0,
            far_copy_ns: 4000.0,
            crossing_ns: 8000.0,
        };
        Self { name: format!("{} from {program} to {peer}", self.name), ends: Some(ends), ..self }
    }

    /// Limits the load to `offered` messages a second.
    pub fn at_rate(self, offered: f64) -> Self {
        Self { name: format!("{} at {offered}/s", self.name), offered: Some(offered), ..self }
    }
}

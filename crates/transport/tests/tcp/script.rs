//! A peer that sends exactly what the test wants: its packets go to side 1, whose answers are
//! checked and go nowhere.

use crate::app::{App, Plan};
use crate::world::{Conditions, Packet, World};
use eft_base::{SocketId, WireAddress};
use std::time::Duration;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
pub const ECE: u8 = 64;
pub const CWR: u8 = 128;

pub const PORT: u16 = 80;

pub struct Script {
    pub world: World,
    pub source: WireAddress,
    pub source_port: u16,
    /// Our next sequence number, and what we acknowledge.
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    /// TSval to send, if timestamps are used, and the last TSval received.
    pub timestamp: Option<u32>,
    pub echo: u32,
    /// How long our answer to the SYN-ACK takes.
    pub rtt: Duration,
    seen: usize,
}

/// A segment that side 1 sent.
#[derive(Clone, Debug)]
pub struct Heard {
    pub at: eft_base::Instant,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub len: usize,
    pub ecn: u8,
    pub options: Vec<u8>,
}

pub fn quiet_plan() -> Plan {
    Plan { send: 0, receive: u64::MAX / 4, read_max: 0, write_max: 0, shutdown: false, no_delay: false }
}

impl Script {
    /// A world with a listener on side 1 that follows `plan`.
    pub fn new(plan: Plan) -> Script {
        Script::under(Conditions::default(), plan, 16)
    }

    pub fn under(conditions: Conditions, plan: Plan, backlog: u32) -> Script {
        let mut world = World::new(1, conditions);
        world.capture = Some(Vec::new());
        world.blackhole[0] = true;
        App::listen(&mut world, 1, PORT, backlog, plan);
        let source = world.sides[0].address;
        Script {
            world,
            source,
            source_port: 40_000,
            seq: 1_000_000,
            ack: 0,
            window: 65_000,
            timestamp: None,
            echo: 0,
            rtt: Duration::ZERO,
            seen: 0,
        }
    }

    /// A script that went through the handshake, and side 1's socket.
    pub fn connected(plan: Plan) -> (Script, SocketId) {
        let mut s = Script::new(plan);
        let socket = s.handshake(&[4, 2, 1, 1]);
        (s, socket)
    }

    /// SYN with an MSS of 1000 and `options`, SYN-ACK, ACK.
    pub fn handshake(&mut self, options: &[u8]) -> SocketId {
        let mut all = vec![2, 4, 1000u16.to_be_bytes()[0], 1000u16.to_be_bytes()[1]];
        all.extend_from_slice(options);
        self.say_with(SYN, &[], &all);
        let heard = self.hear();
        let syn_ack = heard.iter().find(|h| h.flags == SYN | ACK).expect("a SYN-ACK");
        self.ack = syn_ack.seq.wrapping_add(1);
        self.world.run_for(self.rtt);
        self.say(ACK, &[]);
        self.world.sides[1].app.streams.last().expect("accepted").socket
    }

    pub fn packet(&self, flags: u8, payload: &[u8], options: &[u8]) -> Packet {
        let destination = self.world.sides[1].address;
        segment(
            (self.source, self.source_port),
            (destination, PORT),
            (self.seq, self.ack),
            flags,
            self.window,
            options,
            payload,
        )
    }

    /// Sends a segment and moves on behind it.
    pub fn say(&mut self, flags: u8, payload: &[u8]) {
        let options = match self.timestamp {
            Some(value) => timestamps(value, self.echo),
            None => Vec::new(),
        };
        self.say_with(flags, payload, &options);
    }

    pub fn say_with(&mut self, flags: u8, payload: &[u8], options: &[u8]) {
        let packet = self.packet(flags, payload, options);
        self.seq = self.seq.wrapping_add(payload.len() as u32);
        if flags & (SYN | FIN) != 0 {
            self.seq = self.seq.wrapping_add(1);
        }
        self.world.deliver(1, &packet);
        self.world.turn(1);
    }

    /// A segment whose IP header has these ECN bits.
    pub fn say_marked(&mut self, flags: u8, payload: &[u8], ecn: u8) {
        let mut packet = self.packet(flags, payload, &[]);
        packet.bytes[1] |= ecn;
        self.seq = self.seq.wrapping_add(payload.len() as u32);
        self.world.deliver(1, &packet);
        self.world.turn(1);
    }

    /// Several segments in one batch.
    pub fn say_batch(&mut self, payloads: &[&[u8]]) {
        for payload in payloads {
            let packet = self.packet(ACK, payload, &[]);
            self.seq = self.seq.wrapping_add(payload.len() as u32);
            self.world.deliver(1, &packet);
        }
        self.world.turn(1);
    }

    /// A segment at some other place of the sequence space; ours stays.
    pub fn say_at(&mut self, seq: u32, flags: u8, payload: &[u8]) {
        let mine = std::mem::replace(&mut self.seq, seq);
        self.say(flags, payload);
        self.seq = mine;
    }

    /// What side 1 sent since the last call.
    pub fn hear(&mut self) -> Vec<Heard> {
        let capture = self.world.capture.as_ref().unwrap();
        let heard: Vec<Heard> = capture[self.seen..]
            .iter()
            .filter(|(_, side, _)| *side == 1)
            .map(|(at, _, p)| Heard {
                at: *at,
                flags: p.flags(),
                seq: p.seq(),
                ack: p.ack(),
                window: p.window(),
                len: p.payload().len(),
                ecn: p.ecn(),
                options: p.bytes[40..20 + p.header_len()].to_vec(),
            })
            .collect();
        self.seen = capture.len();
        if let Some(value) = heard.iter().rev().find_map(|h| tsval(&h.options)) {
            self.echo = value;
        }
        heard
    }

    /// Lets time pass, and returns what side 1 sent meanwhile.
    pub fn wait(&mut self, time: Duration) -> Vec<Heard> {
        self.world.run_for(time);
        self.hear()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.world.sides[1].counter(name)
    }
}

pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut o = vec![1, 1, 8, 10];
    o.extend(value.to_be_bytes());
    o.extend(echo.to_be_bytes());
    o
}

pub fn tsval(options: &[u8]) -> Option<u32> {
    find_option(options, 8).map(|o| u32::from_be_bytes([o[0], o[1], o[2], o[3]]))
}

/// The data of an option.
pub fn find_option(mut options: &[u8], kind: u8) -> Option<&[u8]> {
    while let [k, rest @ ..] = options {
        match *k {
            0 => return None,
            1 => options = rest,
            k => {
                let len = *rest.first()? as usize;
                if k == kind {
                    return Some(&options[2..len]);
                }
                options = &options[len..];
            }
        }
    }
    None
}

/// A packet as it lies on the wire, checksum included.
pub fn segment(
    from: (WireAddress, u16),
    to: (WireAddress, u16),
    (seq, ack): (u32, u32),
    flags: u8,
    window: u16,
    options: &[u8],
    payload: &[u8],
) -> Packet {
    let segment = eft_harness::WireSegment { from, to, seq, ack, flags, window, options };
    Packet { bytes: segment.packet(payload), segment_size: 0 }
}

/// What the script's stream carries: as the application expects from that port.
pub fn stream_bytes(port: u16, offset: u64, len: usize) -> Vec<u8> {
    let salt = eft_harness::salt(port, PORT);
    (0..len as u64).map(|i| eft_harness::byte_at(salt, offset + i)).collect()
}

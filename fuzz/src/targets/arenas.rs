//! Durable arenas that a stray write has hit: the successor sorts out what is damaged and goes on.

use super::Target;
use super::filter::FilterBench;
use super::segments::Segments;
use super::transport_bench::Engine;
use crate::mutate::{hostile_u64, write_edge};
use eft_base::Random;
use eft_channel::Segment;
use eft_transport::tcp::Tcp;
use eft_transport::udp::Udp;
use std::time::Duration;

/// Damages a few places, seldom many.
fn damage(arena: &Segment, random: &mut Random) {
    let hits = if random.chance(0.05) { 2000 } else { 1 + random.below(6) };
    for _ in 0..hits {
        let mut bytes = [0; 8];
        let mut n = 8;
        if random.chance(0.5) {
            // A whole number, where numbers lie.
            bytes = hostile_u64(random.below(100_000), random).to_le_bytes();
        } else {
            write_edge(&mut bytes, 0, random);
            n = 1 + random.below(8) as usize;
        }
        // The beginning holds what all of it depends on.
        let reach = if random.chance(0.3) { 256.min(arena.len()) } else { arena.len() };
        let mut at = random.below((reach - n) as u64) as usize;
        if n == 8 {
            at -= at % 8;
        }
        arena.write(at, &bytes[..n]).expect("within the arena");
    }
}

pub struct TransportArena<E: Engine> {
    traffic: Segments<E>,
}

impl TransportArena<Tcp> {
    pub fn tcp(random: &mut Random) -> Self {
        TransportArena { traffic: Segments::tcp_unchecked(random) }
    }
}

impl TransportArena<Udp> {
    pub fn udp(random: &mut Random) -> Self {
        TransportArena { traffic: Segments::udp_unchecked(random) }
    }
}

impl<E: Engine> Target for TransportArena<E> {
    fn feed(&mut self, random: &mut Random) {
        for _ in 0..random.below(12) {
            self.traffic.feed(random);
        }
        let bench = &mut self.traffic.bench;
        damage(&bench.durable, random);
        bench.die(random);
        for at in (0..bench.sockets.len()).rev() {
            match random.below(12) {
                0 => bench.close(at, random),
                _ => bench.use_socket(bench.sockets[at], random),
            }
        }
        bench.host.pass(Duration::from_micros(random.below(3_000_000)));
        bench.settle(random);
    }
}

pub struct FilterArena {
    bench: FilterBench,
}

impl FilterArena {
    pub fn new(random: &mut Random) -> FilterArena {
        FilterArena { bench: FilterBench::new(random) }
    }
}

impl Target for FilterArena {
    fn feed(&mut self, random: &mut Random) {
        self.bench.load("pass keep state");
        for _ in 0..10 {
            self.bench.ask(random);
        }
        damage(&self.bench.arena, random);
        self.bench.die(random);
        self.bench.load("pass keep state");
        for _ in 0..10 {
            self.bench.ask(random);
        }
        self.bench.host.pass(Duration::from_secs(random.below(30)));
    }
}

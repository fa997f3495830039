//! Durable arenas that a stray write has hit: the successor sorts out what is damaged and goes on.

use super::Target;
use super::filter::FilterBench;
use super::segments::Segments;
use super::transport_bench::Engine;
use crate::mutate::{hostile_u64, write_edge};
use crate::source::Source;
use eft_channel::Segment;
use eft_transport::tcp::Tcp;
use eft_transport::udp::Udp;
use std::time::Duration;

/// Damages a few places, seldom many.
fn damage(arena: &Segment, source: &mut Source) {
    let hits = if source.chance(0.05) { 2000 } else { 1 + source.below(6) };
    for _ in 0..hits {
        let mut bytes = [0; 8];
        let mut n = 8;
        if source.chance(0.5) {
            // A whole number, where numbers lie.
            bytes = hostile_u64(source.below(100_000), source).to_le_bytes();
        } else {
            write_edge(&mut bytes, 0, source);
            n = 1 + source.below(8) as usize;
        }
        // The beginning holds what all of it depends on.
        let reach = if source.chance(0.3) { 256.min(arena.len()) } else { arena.len() };
        let mut at = source.below((reach - n) as u64) as usize;
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
    pub fn tcp(source: &mut Source) -> Self {
        TransportArena { traffic: Segments::tcp_unchecked(source) }
    }
}

impl TransportArena<Udp> {
    pub fn udp(source: &mut Source) -> Self {
        TransportArena { traffic: Segments::udp_unchecked(source) }
    }
}

impl<E: Engine> Target for TransportArena<E> {
    fn feed(&mut self, source: &mut Source) {
        for _ in 0..source.below(12) {
            self.traffic.feed(source);
        }
        let bench = &mut self.traffic.bench;
        damage(&bench.transport.durable, source);
        bench.die(source);
        for at in (0..bench.sockets.len()).rev() {
            match source.below(12) {
                0 => bench.close(at, source),
                _ => bench.use_socket(bench.sockets[at], source),
            }
        }
        bench.transport.host.pass(Duration::from_micros(source.below(3_000_000)));
        bench.settle(source);
    }
}

pub struct FilterArena {
    bench: FilterBench,
}

impl FilterArena {
    pub fn new(source: &mut Source) -> FilterArena {
        FilterArena { bench: FilterBench::new(source) }
    }
}

impl Target for FilterArena {
    fn feed(&mut self, source: &mut Source) {
        self.bench.load("pass keep state");
        for _ in 0..10 {
            self.bench.ask(source);
        }
        damage(&self.bench.arena, source);
        self.bench.die(source);
        self.bench.load("pass keep state");
        for _ in 0..10 {
            self.bench.ask(source);
        }
        self.bench.host.pass(Duration::from_secs(source.below(30)));
    }
}

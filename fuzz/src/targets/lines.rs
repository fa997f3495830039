//! Source queue lines into each engine as from each neighbour: its decoder, then its code.

use super::Target;
use super::filter::FilterBench;
use super::ip_bench::IpBench;
use super::transport_bench::TransportBench;
use super::{nic, requests};
use crate::source::Source;
use eft_component::{Component, Output};
use eft_harness::Host;
use eft_messages::{ComponentId, Encoded};
use eft_transport::tcp::Tcp;
use eft_transport::udp::Udp;
use std::time::Duration;

/// Lines of the engine itself that are remembered: what names something real.
const RECENT: usize = 64;

pub struct Lines<C: Component> {
    host: Host<C>,
    recent: Vec<Encoded>,
}

fn lines<C: Component + 'static>(host: Host<C>) -> Box<dyn Target> {
    Box::new(Lines { host, recent: Vec::new() })
}

pub fn ip(source: &mut Source) -> Box<dyn Target> {
    let with_filter = source.chance(0.5);
    lines(IpBench::new(with_filter, source).host)
}

pub fn tcp(source: &mut Source) -> Box<dyn Target> {
    lines(connected::<Tcp>(source).transport.host)
}

pub fn udp(source: &mut Source) -> Box<dyn Target> {
    lines(connected::<Udp>(source).transport.host)
}

fn connected<E: super::transport_bench::Engine>(source: &mut Source) -> TransportBench<E> {
    let mut bench = TransportBench::new(false, source);
    for _ in 0..4 {
        bench.connect(source);
    }
    bench
}

pub fn filter(source: &mut Source) -> Box<dyn Target> {
    let mut bench = FilterBench::new(source);
    bench.load("block in proto tcp\npass keep state");
    lines(bench.host)
}

pub fn nic(source: &mut Source) -> Box<dyn Target> {
    lines(nic::host(source))
}

pub fn sockets(source: &mut Source) -> Box<dyn Target> {
    lines(requests::host(source))
}

/// Bytes, most of them small: they hit valid tags, ids, slots and generations often. Some come from
/// what the engine said itself.
fn line(recent: &[Encoded], source: &mut Source) -> Encoded {
    let mut bytes = [0u8; 56];
    for b in &mut bytes {
        *b = match source.byte() {
            n @ 0..=229 => n % 6,
            _ => source.byte(),
        };
    }
    if !recent.is_empty() && source.chance(0.7) {
        let real = recent[source.below(recent.len() as u64) as usize];
        let real: Vec<u8> = real.iter().flat_map(|w| w.to_le_bytes()).collect();
        // The request, a packet reference after it, or all of it.
        let (from, to) = [(1, 9), (9, 25), (1, 17), (1, 56)][source.below(4) as usize];
        let at = [from, 1][source.below(2) as usize];
        bytes[at..at + (to - from)].copy_from_slice(&real[from..to]);
    }
    let word = |i: usize| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
    core::array::from_fn(word)
}

impl<C: Component> Target for Lines<C> {
    fn feed(&mut self, source: &mut Source) {
        let peers = self.host.peers();
        let peer = match source.below(20) {
            // No neighbour has one of these names.
            0 => [ComponentId::SOCKETS, ComponentId::FILTER, ComponentId::nic(255)][source.below(3) as usize],
            n => peers[n as usize % peers.len()],
        };
        let line = line(&self.recent, source);
        self.host.line(peer, &line);
        match source.below(300) {
            0 => {
                let peers = self.host.peers();
                let peer = peers[source.below(peers.len() as u64) as usize];
                self.host.reborn(peer);
            }
            1 => self.host.set_room(source.below(5) as usize),
            2..8 => self.host.set_room(1024),
            8 => self.host.pass(Duration::from_secs(source.below(100))),
            _ => {}
        }
        self.host.pass(Duration::from_micros(source.below(20_000)));
        for m in self.host.take() {
            if m.peer().is_some() {
                if self.recent.len() >= RECENT {
                    self.recent.remove(0);
                }
                self.recent.push(m.encode());
            }
        }
    }
}

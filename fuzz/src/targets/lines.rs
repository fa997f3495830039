//! Random queue lines into each engine as from each neighbour: its decoder, then its code.

use super::Target;
use super::filter::FilterBench;
use super::ip_bench::IpBench;
use super::transport_bench::TransportBench;
use super::{nic, requests};
use crate::host::Host;
use eft_base::Random;
use eft_component::{Component, Output};
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

pub fn ip(random: &mut Random) -> Box<dyn Target> {
    let with_filter = random.chance(0.5);
    lines(IpBench::new(with_filter, random).host)
}

pub fn tcp(random: &mut Random) -> Box<dyn Target> {
    lines(connected::<Tcp>(random).host)
}

pub fn udp(random: &mut Random) -> Box<dyn Target> {
    lines(connected::<Udp>(random).host)
}

fn connected<E: super::transport_bench::Engine>(random: &mut Random) -> TransportBench<E> {
    let mut bench = TransportBench::new(false, random);
    for _ in 0..4 {
        bench.connect(random);
    }
    bench
}

pub fn filter(random: &mut Random) -> Box<dyn Target> {
    let mut bench = FilterBench::new(random);
    bench.load("block in proto tcp\npass keep state");
    lines(bench.host)
}

pub fn nic(random: &mut Random) -> Box<dyn Target> {
    lines(nic::host(random))
}

pub fn sockets(random: &mut Random) -> Box<dyn Target> {
    lines(requests::host(random))
}

/// Bytes, most of them small: they hit valid tags, ids, slots and generations often. Some come from
/// what the engine said itself.
fn line(recent: &[Encoded], random: &mut Random) -> Encoded {
    let mut bytes = [0u8; 56];
    for b in &mut bytes {
        *b = if random.chance(0.9) { random.below(6) } else { random.below(256) } as u8;
    }
    if !recent.is_empty() && random.chance(0.7) {
        let real = recent[random.below(recent.len() as u64) as usize];
        let real: Vec<u8> = real.iter().flat_map(|w| w.to_le_bytes()).collect();
        // The request, a packet reference after it, or all of it.
        let (from, to) = [(1, 9), (9, 25), (1, 17), (1, 56)][random.below(4) as usize];
        let at = [from, 1][random.below(2) as usize];
        bytes[at..at + (to - from)].copy_from_slice(&real[from..to]);
    }
    let word = |i: usize| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
    core::array::from_fn(word)
}

impl<C: Component> Target for Lines<C> {
    fn feed(&mut self, random: &mut Random) {
        let peers = self.host.peers();
        let peer = match random.below(20) {
            // Nobody of that name is a neighbour.
            0 => [ComponentId::SOCKETS, ComponentId::FILTER, ComponentId::nic(255)][random.below(3) as usize],
            n => peers[n as usize % peers.len()],
        };
        let line = line(&self.recent, random);
        self.host.line(peer, &line);
        match random.below(300) {
            0 => {
                let peers = self.host.peers();
                let peer = peers[random.below(peers.len() as u64) as usize];
                self.host.reborn(peer);
            }
            1 => self.host.set_room(random.below(5) as usize),
            2..8 => self.host.set_room(1024),
            8 => self.host.pass(Duration::from_secs(random.below(100))),
            _ => {}
        }
        self.host.pass(Duration::from_micros(random.below(20_000)));
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

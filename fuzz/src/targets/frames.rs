//! Frames from the network into ip: Ethernet, ARP, IPv4 with fragments, ICMP, and the same of IPv6.

use super::Target;
use super::ip_bench::IpBench;
use super::packets::{ETHERNET_LEN, fix_ip, frames};
use crate::mutate::Examples;
use crate::source::Source;
use eft_messages::ComponentId;
use std::time::Duration;

pub struct Frames {
    bench: IpBench,
    examples: Examples,
}

impl Frames {
    pub fn new(with_filter: bool, source: &mut Source) -> Frames {
        Frames { bench: IpBench::new(with_filter, source), examples: Examples::new(frames(source), 66000) }
    }
}

impl Target for Frames {
    fn feed(&mut self, source: &mut Source) {
        let mut frame = self.examples.mutated(source);
        if frame.len() > ETHERNET_LEN && source.chance(0.8) {
            fix_ip(&mut frame[ETHERNET_LEN..]);
        }
        self.bench.arrive(&frame, source);
        if source.chance(0.8) {
            self.bench.settle(source, true);
        }
        self.bench.host.pass(Duration::from_micros(source.below(400_000)));
        match source.below(400) {
            0 => self.bench.host.set_room(source.below(4) as usize),
            1..10 => self.bench.host.set_room(1024),
            10 => self.bench.host.reborn(ComponentId::FILTER),
            _ => {}
        }
    }

    fn finish(&mut self, source: &mut Source) {
        self.bench.finish(source);
    }
}

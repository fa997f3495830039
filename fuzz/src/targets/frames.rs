//! Frames from the network into ip: Ethernet, ARP, IPv4 with fragments, ICMP.

use super::Target;
use super::ip_bench::IpBench;
use super::packets::{ETHERNET_LEN, fix_ip, frames};
use crate::mutate::Corpus;
use eft_base::Random;
use eft_messages::ComponentId;
use std::time::Duration;

pub struct Frames {
    bench: IpBench,
    corpus: Corpus,
}

impl Frames {
    pub fn new(with_filter: bool, random: &mut Random) -> Frames {
        Frames { bench: IpBench::new(with_filter, random), corpus: Corpus::new(frames(random), 66000) }
    }
}

impl Target for Frames {
    fn feed(&mut self, random: &mut Random) {
        let mut frame = self.corpus.mutated(random);
        if frame.len() > ETHERNET_LEN && random.chance(0.8) {
            fix_ip(&mut frame[ETHERNET_LEN..]);
        }
        self.bench.arrive(&frame, random);
        if random.chance(0.8) {
            self.bench.settle(random, true);
        }
        self.bench.host.pass(Duration::from_micros(random.below(400_000)));
        match random.below(400) {
            0 => self.bench.host.set_room(random.below(4) as usize),
            1..10 => self.bench.host.set_room(1024),
            10 => self.bench.host.reborn(ComponentId::FILTER),
            _ => {}
        }
    }

    fn finish(&mut self, random: &mut Random) {
        self.bench.finish(random);
    }
}

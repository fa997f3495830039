//! Send descriptors of a hostile transport into ip: every byte of the header pool may change at any
//! time, and requests may name anything.

use super::Target;
use super::ip_bench::{HEADERS, IpBench, PAYLOAD};
use super::packets::{THEM, US};
use crate::mutate::{hostile_u64, write_edge};
use eft_base::wire::*;
use eft_base::{PacketRef, PoolId, Random, RequestId, WireAddress};
use eft_messages::ComponentId;
use eft_messages::transport::{SEND_SLOT_LEN, SendDescriptor, TransportToIp};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

pub struct Sends {
    bench: IpBench,
    next: u32,
}

impl Sends {
    pub fn new(random: &mut Random) -> Sends {
        let with_filter = random.chance(0.5);
        Sends { bench: IpBench::new(with_filter, random), next: 0 }
    }
}

/// A descriptor as tcp or udp writes it.
fn descriptor(random: &mut Random) -> (ComponentId, SendDescriptor) {
    let mut d = SendDescriptor::new_zeroed();
    let to = [THEM, US, Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::BROADCAST][random.below(4) as usize];
    d.source = IpAddr::V4(US).into();
    d.destination = IpAddr::V4(to).into();
    let is_tcp = random.chance(0.5);
    let header_len = if is_tcp { 20 } else { 8 };
    d.header_len = header_len;
    d.protocol = if is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
    d.checksum_offset = if is_tcp { 16 } else { 6 };
    d.header[12] = 0x50;
    let len = random.below(66000) as u32;
    if is_tcp && len > 1460 || random.chance(0.1) {
        d.segment_size = 1 + random.below(1460) as u16;
    }
    d.payload_count = random.below(5) as u16;
    for r in &mut d.payload {
        let len = len + random.below(3) as u32;
        *r = PacketRef { pool: PAYLOAD, generation: 0, slot: random.below(2) as u32, offset: 0, len };
    }
    (if is_tcp { ComponentId::TCP } else { ComponentId::UDP }, d)
}

impl Target for Sends {
    fn feed(&mut self, random: &mut Random) {
        let (peer, mut d) = descriptor(random);
        for _ in 0..random.below(4) {
            let bytes = d.as_mut_bytes();
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => write_edge(bytes, at, random),
                _ => bytes[at] = random.next_u32() as u8,
            }
        }
        let slot = random.below(64) as u32;
        let at = slot as usize * SEND_SLOT_LEN;
        self.bench.headers().write(at, d.as_bytes()).expect("slot lies in the pool");
        let mut descriptor =
            PacketRef { pool: HEADERS, generation: 1, slot, offset: 0, len: SEND_SLOT_LEN as u32 };
        if random.chance(0.05) {
            descriptor.len = hostile_u64(192, random) as u32;
            descriptor.offset = hostile_u64(0, random) as u32;
            descriptor.pool = PoolId(random.below(9) as u16);
        }
        self.next += 1;
        let request = RequestId { index: self.next, generation: random.below(3) as u32 };
        self.bench.unanswered.insert((peer, request));
        self.bench.transport_says(peer, TransportToIp::Send { request, descriptor });
        // The transport changes its mind while ip works with it.
        for _ in 0..random.below(3) {
            let at = random.below(64 * SEND_SLOT_LEN as u64) as usize;
            self.bench.headers().write(at, &[random.next_u32() as u8]).expect("within the pool");
        }
        if random.chance(0.05) {
            let mut address = WireAddress::from(IpAddr::V4(THEM));
            address.0[random.below(16) as usize] = random.next_u32() as u8;
            let route = TransportToIp::Route { request, source: address, destination: address };
            self.bench.transport_says(peer, route);
        }
        if random.chance(0.8) {
            self.bench.settle(random, true);
        }
        self.bench.host.pass(Duration::from_micros(random.below(2_000_000)));
    }

    fn finish(&mut self, random: &mut Random) {
        self.bench.finish(random);
    }
}

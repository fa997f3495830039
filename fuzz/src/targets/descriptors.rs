//! Send descriptors of a hostile transport into ip: every byte of the header pool may change at any
//! time, and requests may name anything.

use super::Target;
use super::ip_bench::{HEADERS, IpBench, PAYLOAD};
use super::packets::{THEM, THEM6, US, US6};
use crate::mutate::{hostile_u64, write_edge};
use crate::source::Source;
use eft_base::wire::*;
use eft_base::{PacketRef, PoolId, RequestId, WireAddress};
use eft_messages::ComponentId;
use eft_messages::transport::{SEND_SLOT_LEN, SendDescriptor, TransportToIp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

pub struct Sends {
    bench: IpBench,
    next: u32,
}

impl Sends {
    pub fn new(source: &mut Source) -> Sends {
        let with_filter = source.chance(0.5);
        Sends { bench: IpBench::new(with_filter, source), next: 0 }
    }
}

/// A descriptor as tcp or udp writes it.
fn descriptor(source: &mut Source) -> (ComponentId, SendDescriptor) {
    let mut d = SendDescriptor::new_zeroed();
    let to = [THEM, US, Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::BROADCAST][source.below(4) as usize];
    d.source = IpAddr::V4(US).into();
    d.destination = IpAddr::V4(to).into();
    if source.chance(0.4) {
        // One of ours is no packet's source unless the versions are the same.
        let group = Ipv6Addr::new(0xff02, 2, 0, 0, 0, 0, 0, 1);
        let to =
            [THEM6, US6, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 8), group][source.below(4) as usize];
        d.source = if source.chance(0.9) { IpAddr::V6(US6).into() } else { d.source };
        d.destination = IpAddr::V6(to).into();
    }
    let is_tcp = source.chance(0.5);
    let header_len = if is_tcp { 20 } else { 8 };
    d.header_len = header_len;
    d.protocol = if is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
    d.checksum_offset = if is_tcp { 16 } else { 6 };
    d.header[12] = 0x50;
    let len = source.below(66000) as u32;
    if is_tcp && len > 1460 || source.chance(0.1) {
        d.segment_size = 1 + source.below(1460) as u16;
    }
    d.payload_count = source.below(5) as u16;
    for r in &mut d.payload {
        let len = len + source.below(3) as u32;
        *r = PacketRef { pool: PAYLOAD, generation: 0, slot: source.below(2) as u32, offset: 0, len };
    }
    (if is_tcp { ComponentId::TCP } else { ComponentId::UDP }, d)
}

impl Target for Sends {
    fn feed(&mut self, source: &mut Source) {
        let (peer, mut d) = descriptor(source);
        for _ in 0..source.below(4) {
            let bytes = d.as_mut_bytes();
            let at = source.below(bytes.len() as u64) as usize;
            match source.below(3) {
                0 => write_edge(bytes, at, source),
                _ => bytes[at] = source.byte(),
            }
        }
        let slot = source.below(64) as u32;
        let at = slot as usize * SEND_SLOT_LEN;
        self.bench.headers().write(at, d.as_bytes()).expect("slot lies in the pool");
        self.next += 1;
        let (generation, len) = (self.next as u16, SEND_SLOT_LEN as u32);
        let mut descriptor = PacketRef { pool: HEADERS, generation, slot, offset: 0, len };
        if source.chance(0.05) {
            descriptor.len = hostile_u64(192, source) as u32;
            descriptor.offset = hostile_u64(0, source) as u32;
            descriptor.pool = PoolId(source.below(9) as u16);
        }
        let request = RequestId { index: self.next, generation: source.below(3) as u32 };
        self.bench.unanswered.insert((peer, request));
        self.bench.transport_says(peer, TransportToIp::Send { request, descriptor });
        // The transport changes its mind while ip works with it.
        for _ in 0..source.below(3) {
            let at = source.below(64 * SEND_SLOT_LEN as u64) as usize;
            self.bench.headers().write(at, &[source.byte()]).expect("within the pool");
        }
        if source.chance(0.05) {
            let mut address = WireAddress::from(IpAddr::V4(THEM));
            address.0[source.below(16) as usize] = source.byte();
            let route = TransportToIp::Route { request, source: address, destination: address };
            self.bench.transport_says(peer, route);
        }
        if source.chance(0.05) {
            let group = WireAddress::from(IpAddr::from([239, 0, 0, source.byte()]));
            let (order, step, interface) = (self.next, source.byte() % 7, source.byte() % 3);
            let listed = WireAddress::from(IpAddr::from([10, 0, 0, source.byte()]));
            let step = TransportToIp::Group { order, step, interface, group, source: listed };
            self.bench.transport_says(ComponentId::UDP, step);
        }
        if source.chance(0.8) {
            self.bench.settle(source, true);
        }
        self.bench.host.pass(Duration::from_micros(source.below(2_000_000)));
    }

    fn finish(&mut self, source: &mut Source) {
        self.bench.finish(source);
    }
}

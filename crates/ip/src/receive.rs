//! Toward the applications: a frame is checked from the outside in (RFC 1122 §3.2.1, RFC 8200 §4).
//!
//! Headers are copied out of the NIC's pool once, then checked. Lengths are believed only as far as the frame
//! reaches.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::given::Admission;
use crate::pending::ETHERNET_LEN;
use eft_base::PacketRef;
use eft_base::wire::{ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader};
use eft_component::Context;
use zerocopy::FromBytes;

/// IPv4 header with all its options, or IPv6 header without extensions, and a transport header without options.
const HEAD_LEN: usize = 60 + 20;

impl Ip {
    pub(crate) fn receive_frame(
        &mut self,
        cx: &mut Context,
        nic: u8,
        packet: PacketRef,
        checksum_ok: bool,
        segment_size: u16,
        out: &mut Out,
    ) {
        match self.given.admit(cx.memory, nic, packet) {
            Admission::New => {}
            Admission::Repeated => return self.receive_repeated(cx, nic, packet, out),
            Admission::Malformed => return cx.count(Counter::DropMalformed),
        }
        let mut head = [0u8; ETHERNET_LEN + HEAD_LEN];
        let Some(head) = self.read_head(cx.memory, packet, &mut head) else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        let Ok((ethernet, body)) = EthernetHeader::ref_from_prefix(head) else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        if !self.enter_arrival(body) {
            return self.drop_packet(cx, packet, Counter::DropFatal, out);
        }
        let ours = self.link(nic).map(|l| l.mac);
        if ethernet.source.is_multicast()
            || !(ethernet.destination.is_multicast() || Some(ethernet.destination) == ours)
        {
            return self.drop_packet(cx, packet, Counter::DropNotOurs, out);
        }
        match ethernet.ethertype.get() {
            ETHERTYPE_IPV4 => {
                let group = ethernet.destination.is_multicast();
                let ip_packet = packet.skip(ETHERNET_LEN as u32);
                self.receive_ipv4(cx, nic, ip_packet, body, group, checksum_ok, segment_size, out);
            }
            ETHERTYPE_ARP => {
                self.receive_arp(cx, nic, ethernet, body, out);
                self.release(packet, out);
            }
            ETHERTYPE_IPV6 => {
                let ip_packet = packet.skip(ETHERNET_LEN as u32);
                self.receive_ipv6(cx, nic, ip_packet, ethernet, body, checksum_ok, segment_size, out);
            }
            _ => self.drop_packet(cx, packet, Counter::DropEthertype, out),
        }
    }
}

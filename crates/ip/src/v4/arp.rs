//! ARP (RFC 826): asking, answering, learning.
//!
//! An entry is learned from an answer of a host that we have an entry for, or from a question to us;
//! always from an address of the link's own network, and only if the Ethernet source is the packet's
//! sender. No packet makes us give up our own address.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::link::Link;
use crate::neighbour::Learned;
use crate::pending::{ETHERNET_LEN, Hop, Next, Origin, Question, Reach, Stage, ToPeer, Transmission};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::MacAddress;
use eft_base::wire::{ARP_REPLY, ARP_REQUEST, ArpPacket, ETHERTYPE_ARP, ETHERTYPE_IPV4, EthernetHeader};
use eft_component::Context;
use eft_messages::nic::{FrameDescriptor, IpToNic};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const HARDWARE_ETHERNET: u16 = 1;

impl Ip {
    /// Asks the link who has `address`, or, if `mac` is given, that one host whether it still has it
    /// (RFC 1122 §2.3.2.1).
    pub(crate) fn ask_by_arp(
        &mut self,
        cx: &mut Context,
        interface: u8,
        address: Ipv4Addr,
        mac: Option<MacAddress>,
        out: &mut Out,
    ) {
        let Some(link) = self.link(interface).copied() else {
            return;
        };
        let hop = Hop::to(interface, Next::Neighbour(address.into()));
        let Some(IpAddr::V4(source)) = self.routes.source_for(hop, address.into()) else {
            return;
        };
        let target = mac.unwrap_or(MacAddress::BROADCAST);
        let packet = arp(ARP_REQUEST, link.mac, source, mac.unwrap_or_default(), address);
        self.send_arp(cx, interface, target, link.mac, packet, out);
    }

    /// Announces an address of ours on the link (RFC 5227 §2.3), so that old entries are refreshed.
    pub(crate) fn announce_by_arp(
        &mut self,
        cx: &mut Context,
        interface: u8,
        link: &Link,
        a: Ipv4Addr,
        out: &mut Out,
    ) {
        let packet = arp(ARP_REQUEST, link.mac, a, MacAddress::default(), a);
        self.send_arp(cx, interface, MacAddress::BROADCAST, link.mac, packet, out);
    }

    /// Asks the link whether another host has an address that we do not use yet (RFC 5227 §2.1.1).
    pub(crate) fn probe_by_arp(&mut self, cx: &mut Context, interface: u8, a: Ipv4Addr, out: &mut Out) {
        if let Some(mac) = self.link(interface).map(|link| link.mac) {
            let packet = arp(ARP_REQUEST, mac, Ipv4Addr::UNSPECIFIED, MacAddress::default(), a);
            self.send_arp(cx, interface, MacAddress::BROADCAST, mac, packet, out);
        }
    }

    fn send_arp(
        &mut self,
        cx: &mut Context,
        interface: u8,
        to: MacAddress,
        from: MacAddress,
        packet: ArpPacket,
        out: &mut Out,
    ) {
        let Some(frame) = self.frames.allocate() else {
            return cx.count(Counter::DropNoSlot);
        };
        let ethernet = EthernetHeader { destination: to, source: from, ethertype: ETHERTYPE_ARP.into() };
        let mut d = FrameDescriptor::new_zeroed();
        let len = ETHERNET_LEN + size_of::<ArpPacket>();
        d.header[..ETHERNET_LEN].copy_from_slice(ethernet.as_bytes());
        d.header[ETHERNET_LEN..len].copy_from_slice(packet.as_bytes());
        d.header_len = len as u16;
        self.frames.write(frame, 0, d.as_bytes());
        let transmission = Transmission {
            origin: Origin::Nobody,
            stage: Stage::Nic,
            hop: Hop::to(interface, Next::Group(to)),
            frame,
            packet: None,
            reach: Reach::Link,
            // The filter is not asked about ARP: it judges IP.
            question: Question {
                source: Ipv4Addr::UNSPECIFIED.into(),
                destination: Ipv4Addr::UNSPECIFIED.into(),
                protocol: 0,
                tcp_flags: 0,
                source_port: 0,
                destination_port: 0,
                quoted: None,
                bare: false,
            },
            len: 0,
            segment_size: 0,
        };
        let Ok(request) = self.transmissions.insert(transmission) else {
            self.frames.free(frame);
            return cx.count(Counter::DropNoSlot);
        };
        cx.count(Counter::ArpOut);
        let send = IpToNic::Send { request, descriptor: frame };
        out.push(ToPeer::Nic(interface, send));
    }

    /// `body` follows the Ethernet header.
    pub(crate) fn receive_arp(
        &mut self,
        cx: &mut Context,
        interface: u8,
        ethernet: &EthernetHeader,
        body: &[u8],
        out: &mut Out,
    ) {
        cx.count(Counter::ArpIn);
        let Ok((p, _)) = ArpPacket::read_from_prefix(body) else {
            return cx.count(Counter::DropArp);
        };
        let operation = p.operation.get();
        if p.hardware_type.get() != HARDWARE_ETHERNET
            || p.protocol_type.get() != ETHERTYPE_IPV4
            || (p.hardware_len, p.protocol_len) != (6, 4)
            || !(operation == ARP_REQUEST || operation == ARP_REPLY)
        {
            return cx.count(Counter::DropArp);
        }
        let (sender, target) = (Ipv4Addr::from(p.sender_ip), Ipv4Addr::from(p.target_ip));
        let Some(our_mac) = self.link(interface).map(|l| l.mac) else {
            return cx.count(Counter::DropArp);
        };
        if p.sender_mac == our_mac {
            // Our own frame, returned by a bridge.
            return cx.count(Counter::DropArp);
        }
        if p.sender_mac != ethernet.source || p.sender_mac.is_multicast() {
            return cx.count(Counter::DropArpSpoofed);
        }
        // Another host has the address that we try out, or tries it out, too (RFC 5227 §2.1.1).
        let claimed = if sender.is_unspecified() { target } else { sender };
        if self.is_probed(interface, claimed) {
            cx.count(Counter::AddressesGivenUp);
            return self.autoconf_conflict(cx, interface, claimed.into(), out);
        }
        if self.routes.is_ours(sender.into()) {
            return cx.count(Counter::AddressConflicts);
        }
        let for_us = self.routes.addresses_of(interface).any(|a| a == IpAddr::V4(target));
        let asked_us = for_us && operation == ARP_REQUEST;
        // A probe (RFC 5227 §1.1) has no sender address: answered, not learned.
        if !sender.is_unspecified() {
            if !self.routes.is_on_link(interface, sender.into()) {
                return cx.count(Counter::DropArpSpoofed);
            }
            if asked_us || self.neighbours.knows(interface, sender.into()) {
                let learned = Learned { mac: p.sender_mac, confirmed: true };
                let waiting = self.neighbours.learn(cx.now, interface, sender.into(), learned);
                self.release_waiting(cx, waiting, p.sender_mac, out);
            }
        }
        if asked_us {
            let reply = arp(ARP_REPLY, our_mac, target, p.sender_mac, sender);
            self.send_arp(cx, interface, p.sender_mac, our_mac, reply, out);
        }
    }
}

fn arp(
    operation: u16,
    sender_mac: MacAddress,
    sender: Ipv4Addr,
    target_mac: MacAddress,
    target: Ipv4Addr,
) -> ArpPacket {
    ArpPacket {
        hardware_type: HARDWARE_ETHERNET.into(),
        protocol_type: ETHERTYPE_IPV4.into(),
        hardware_len: 6,
        protocol_len: 4,
        operation: operation.into(),
        sender_mac,
        sender_ip: sender.octets(),
        target_mac,
        target_ip: target.octets(),
    }
}

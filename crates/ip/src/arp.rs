//! ARP (RFC 826): asking, answering, believing.
//!
//! What is believed: an answer from a host that we have an entry for, or a question put to us;
//! always from an address of the link's own network, and only if the Ethernet sender says the same
//! as the packet. Nobody can talk us out of our own address.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::neighbour::{Due, Lookup};
use crate::pending::{Hop, Next, Origin, Question, Stage, ToPeer, Transmission};
use crate::send::ETHERNET_LEN;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::net::Ipv4Addr;
use eft_base::errno::{EHOSTUNREACH, ENOBUFS};
use eft_base::wire::{ARP_REPLY, ARP_REQUEST, ArpPacket, ETHERTYPE_ARP, ETHERTYPE_IPV4, EthernetHeader};
use eft_base::{MacAddress, RequestId};
use eft_component::Context;
use eft_messages::nic::{FrameDescriptor, IpToNic};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const HARDWARE_ETHERNET: u16 = 1;

impl Ip {
    /// Puts the link address into a transmission's frame and submits it, or lets it wait for an answer.
    pub(crate) fn address(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        d: &mut FrameDescriptor,
        out: &mut Out,
    ) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        let interface = transmission.hop.interface;
        let neighbour = match transmission.hop.next {
            Next::Neighbour(a) => a,
            Next::Group(mac) => return self.submit_to(cx, id, d, mac, out),
            Next::Local => return,
        };
        match self.neighbours.lookup(cx.now, interface, neighbour, id) {
            Lookup::Send(mac) => self.submit_to(cx, id, d, mac, out),
            Lookup::SendAndProbe(mac) => {
                self.submit_to(cx, id, d, mac, out);
                self.ask_neighbour(cx, interface, neighbour, Some(mac), out);
            }
            Lookup::Wait { ask } => {
                self.frames.write(transmission.frame, 0, d.as_bytes());
                if let Some(f) = self.transmissions.get_mut(id) {
                    f.stage = Stage::Neighbour;
                }
                if ask {
                    self.ask_neighbour(cx, interface, neighbour, None, out);
                }
            }
            Lookup::Unreachable => self.finish(id, EHOSTUNREACH, out),
            Lookup::Full => {
                cx.count(Counter::NeighbourFull);
                self.finish(id, ENOBUFS, out);
            }
        }
    }

    fn submit_to(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        d: &mut FrameDescriptor,
        mac: MacAddress,
        out: &mut Out,
    ) {
        d.header[..6].copy_from_slice(&mac.0);
        if let Some(f) = self.transmissions.get(id) {
            self.frames.write(f.frame, 0, d.as_bytes());
            self.submit(cx, id, out);
        }
    }

    /// Submits what waited for `mac`, in order.
    fn release_waiting(
        &mut self,
        cx: &mut Context,
        waiting: VecDeque<RequestId>,
        mac: MacAddress,
        out: &mut Out,
    ) {
        for id in waiting {
            if let Some(f) = self.transmissions.get(id) {
                let header = offset_of!(FrameDescriptor, header);
                self.frames.write(f.frame, header, &mac.0);
                self.submit(cx, id, out);
            }
        }
    }

    pub(crate) fn expire_neighbours(&mut self, cx: &mut Context, out: &mut Out) {
        for due in self.neighbours.expire(cx.now) {
            match due {
                Due::Ask { interface, address, mac } => self.ask_neighbour(cx, interface, address, mac, out),
                Due::GiveUp(waiting) => {
                    cx.count(Counter::NeighbourTimeouts);
                    for id in waiting {
                        self.finish(id, EHOSTUNREACH, out);
                    }
                }
            }
        }
    }

    /// Who has `address`? Asks one host whether it still has, if `mac` is given (RFC 1122 §2.3.2.1).
    fn ask_neighbour(
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
        let hop = Hop { interface, next: Next::Neighbour(address) };
        let Some(source) = self.routes.source_for(hop, address) else {
            return;
        };
        let target = mac.unwrap_or(MacAddress::BROADCAST);
        let packet = arp(ARP_REQUEST, link.mac, source, mac.unwrap_or_default(), address);
        self.send_arp(cx, interface, target, link.mac, packet, out);
    }

    /// Tells the link about our addresses (RFC 5227 §2.3), so that old entries are refreshed.
    pub(crate) fn announce(&mut self, cx: &mut Context, interface: u8, out: &mut Out) {
        let Some(link) = self.link(interface).copied() else {
            return;
        };
        let addresses: Vec<Ipv4Addr> = self.routes.addresses_of(interface).collect();
        for a in addresses {
            let packet = arp(ARP_REQUEST, link.mac, a, MacAddress::default(), a);
            self.send_arp(cx, interface, MacAddress::BROADCAST, link.mac, packet, out);
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
            hop: Hop { interface, next: Next::Group(to) },
            frame,
            packet: None,
            // ARP is not asked about: the filter judges IP.
            question: Question {
                source: Ipv4Addr::UNSPECIFIED,
                destination: Ipv4Addr::UNSPECIFIED,
                protocol: 0,
                tcp_flags: 0,
                source_port: 0,
                destination_port: 0,
                quoted: None,
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
            // Our own frame, come back by a bridge.
            return cx.count(Counter::DropArp);
        }
        if p.sender_mac != ethernet.source || p.sender_mac.is_multicast() {
            return cx.count(Counter::DropArpSpoofed);
        }
        if self.routes.is_ours(sender) {
            return cx.count(Counter::ArpConflicts);
        }
        let for_us = self.routes.addresses_of(interface).any(|a| a == target);
        let asked_us = for_us && operation == ARP_REQUEST;
        // A probe (RFC 5227 §1.1) has no sender address: answered, not learned.
        if !sender.is_unspecified() {
            if !self.routes.is_on_link(interface, sender) {
                return cx.count(Counter::DropArpSpoofed);
            }
            if asked_us || self.neighbours.knows(interface, sender) {
                let waiting = self.neighbours.learn(cx.now, interface, sender, p.sender_mac);
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

//! Datagrams of DHCP clients. As with ARP and neighbour discovery, the filter is not asked about them: without an address there
//! is no traffic that it could judge. They pass only between a client that waits and the ports of the protocol.

use crate::bytes::PieceSum;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Hop, Next, Origin, Outgoing, Reach};
use crate::v6;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use eft_autoconf::dhcp4::{self, To};
use eft_base::address::zone_of_nic;
use eft_base::wire::{PROTOCOL_UDP, UdpHeader};
use eft_base::{MacAddress, PacketRef};
use eft_component::Context;
use zerocopy::{FromBytes, IntoBytes};

const SERVER_PORT4: u16 = 67;
const CLIENT_PORT4: u16 = 68;
const SERVER_PORT6: u16 = 547;
const CLIENT_PORT6: u16 = 546;
const UDP_LEN: usize = size_of::<UdpHeader>();
/// Longer datagrams are ignored: no client asks for such.
const DATAGRAM_MAX: usize = 1500;

/// Where a client's datagram comes from and goes to.
struct Ends {
    source: IpAddr,
    destination: IpAddr,
    /// Of the client, and of the server.
    ports: (u16, u16),
}

/// Whether UDP of this packet goes from a DHCPv4 server's port to a client's.
pub(crate) fn is_to_client4(protocol: u8, transport: &[u8]) -> bool {
    let ports = UdpHeader::ref_from_prefix(transport)
        .map(|(udp, _)| (udp.source_port.get(), udp.destination_port.get()));
    protocol == PROTOCOL_UDP && ports.is_ok_and(|ports| ports == (SERVER_PORT4, CLIENT_PORT4))
}

/// Whether UDP of this packet goes from a DHCPv6 server's port to a client's.
pub(crate) fn is_to_client6(protocol: u8, transport: &[u8]) -> bool {
    let ports = UdpHeader::ref_from_prefix(transport)
        .map(|(udp, _)| (udp.source_port.get(), udp.destination_port.get()));
    protocol == PROTOCOL_UDP && ports.is_ok_and(|ports| ports == (SERVER_PORT6, CLIENT_PORT6))
}

impl Ip {
    /// To all servers and relays on the link (RFC 8415 §7.1), from the interface's link-local address (§17.2).
    pub(crate) fn send_by_client6(&mut self, cx: &mut Context, nic: u8, bytes: &[u8], out: &mut Out) {
        let to = v6::address::all_servers(zone_of_nic(nic));
        let (Some(group), Some(from)) = (v6::address::link_group(to), self.sure_link_local(nic)) else {
            return cx.count(Counter::NoRoute);
        };
        let hop = Hop::to(nic, Next::Group(group));
        let ports = (CLIENT_PORT6, SERVER_PORT6);
        self.send_by_client(cx, hop, Ends { source: from.into(), destination: to.into(), ports }, bytes, out);
    }

    pub(crate) fn send_by_client4(&mut self, cx: &mut Context, nic: u8, send: dhcp4::Send, out: &mut Out) {
        let (to, bytes) = match send {
            dhcp4::Send::Message { to, bytes } => (to, bytes),
            dhcp4::Send::Probe(address) => return self.probe_by_arp(cx, nic, address, out),
        };
        let (source, destination) = match to {
            To::All => (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST),
            To::AllFrom(from) => (from, Ipv4Addr::BROADCAST),
            To::Server { server, from } => (from, server),
        };
        let ports = (CLIENT_PORT4, SERVER_PORT4);
        let ends = Ends { source: source.into(), destination: destination.into(), ports };
        let hop = match to {
            To::Server { .. } => self.routes.hop(ends.source, ends.destination),
            To::All | To::AllFrom(_) => Some(Hop::to(nic, Next::Group(MacAddress::BROADCAST))),
        };
        match hop.filter(|hop| hop.interface == nic) {
            Some(hop) => self.send_by_client(cx, hop, ends, &bytes, out),
            None => cx.count(Counter::NoRoute),
        }
    }

    fn send_by_client(&mut self, cx: &mut Context, hop: Hop, ends: Ends, bytes: &[u8], out: &mut Out) {
        let Some(slot) = self.packets.allocate() else { return cx.count(Counter::DropNoSlot) };
        let length = (UDP_LEN + bytes.len()) as u16;
        let (source_port, destination_port) = (ends.ports.0.into(), ends.ports.1.into());
        let mut header =
            UdpHeader { source_port, destination_port, length: length.into(), checksum: 0.into() };
        let mut sum = PieceSum::default();
        sum.add_pseudo_header(ends.source, ends.destination, PROTOCOL_UDP, length.into());
        sum.add(header.as_bytes());
        sum.add(bytes);
        // RFC 768: zero would mean "no checksum".
        header.checksum = match sum.finish() {
            0 => 0xffff.into(),
            sum => sum.into(),
        };
        self.packets.write(slot, 0, bytes);
        let payload = PacketRef { len: bytes.len() as u32, ..slot };
        let outgoing = Outgoing {
            source: ends.source,
            destination: ends.destination,
            protocol: PROTOCOL_UDP,
            ttl: 0,
            tos: 0,
            dont_fragment: false,
            header: header.as_bytes(),
            payload: &[payload],
            segment_size: 0,
            checksum_offset: None,
            seal: 0,
            ordered: true,
            reach: Reach::Link,
            label: None,
        };
        match self.launch(cx, Origin::Nobody, hop, outgoing, Some(slot), out) {
            Ok(()) => cx.count(Counter::DhcpOut),
            Err((why, _)) => {
                cx.count(why);
                self.packets.free(slot);
            }
        }
    }

    /// The payload of a datagram for a client; `None`: it is damaged. `datagram` covers it from its UDP header on.
    pub(crate) fn read_for_client(
        &self,
        cx: &Context,
        (source, destination): (IpAddr, IpAddr),
        datagram: PacketRef,
        checksum_ok: bool,
    ) -> Option<Vec<u8>> {
        let mut bytes = [0; DATAGRAM_MAX];
        let all = self.read_head(cx.memory, datagram, &mut bytes)?;
        let (header, _) = UdpHeader::ref_from_prefix(all).ok()?;
        let length = usize::from(header.length.get());
        // Bytes beyond its length are padding.
        let udp = all.get(..length)?;
        let mut sum = PieceSum::default();
        sum.add_pseudo_header(source, destination, PROTOCOL_UDP, length as u32);
        sum.add(udp);
        // Over IPv4 it may have none (RFC 768).
        let has_none = header.checksum.get() == 0 && source.is_ipv4();
        (checksum_ok || has_none || sum.finish() == 0).then(|| udp.get(UDP_LEN..).map(Vec::from))?
    }
}

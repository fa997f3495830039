//! ICMP errors about datagrams of ours: a connected socket's next call fails (RFC 1122 §4.1.3.3); a socket with
//! IP_RECVERR has them in its error queue as well, connected or not (Linux, ip(7)).

use super::asked::IcmpError;
use super::counters::Counter;
use super::durable::bit;
use super::engine::Udp;
use super::receive::{Ends, HEADERS_MAX};
use crate::addresses::ip_addresses;
use eft_base::PacketRef;
use eft_base::errno::{
    EACCES, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETUNREACH, ENONET, ENOPROTOOPT, EOPNOTSUPP,
    EPROTO,
};
use eft_base::wire::{
    ICMP_PARAMETER_PROBLEM, ICMP_UNREACHABLE, ICMPV6_PARAMETER_PROBLEM, ICMPV6_TOO_BIG, ICMPV6_UNREACHABLE,
    UdpHeader,
};
use eft_channel::socket::{ErrorRecord, Opt, QUOTE_MAX, SocketInfo, fragment};
use eft_component::Context;
use zerocopy::FromBytes;

const FRAGMENTATION_NEEDED: (u8, u8) = (ICMP_UNREACHABLE, 4);

impl IcmpError {
    fn is_too_big(&self, ends: &Ends) -> bool {
        match ends.is_ipv6() {
            true => self.kind == ICMPV6_TOO_BIG,
            false => (self.kind, self.code) == FRAGMENTATION_NEEDED,
        }
    }

    /// The errno for a connected socket without IP_RECVERR; `None`: the error is not reported to it.
    fn hard(&self, ipv6: bool) -> Option<i32> {
        if ipv6 {
            let told = matches!(self.kind, ICMPV6_UNREACHABLE | ICMPV6_TOO_BIG);
            return told.then(|| self.queued6());
        }
        match (self.kind, self.code) {
            (ICMP_UNREACHABLE, 2 | 3) => Some(ECONNREFUSED),
            FRAGMENTATION_NEEDED => Some(EMSGSIZE),
            (ICMP_UNREACHABLE, 0 | 6 | 9 | 11) => Some(ENETUNREACH),
            (ICMP_UNREACHABLE, _) => Some(EHOSTUNREACH),
            _ => None,
        }
    }

    /// The errno in an error queue: Linux's, for ICMPv6.
    fn queued6(&self) -> i32 {
        match (self.kind, self.code) {
            (ICMPV6_UNREACHABLE, 0) => ENETUNREACH,
            (ICMPV6_UNREACHABLE, 1 | 5 | 6) => EACCES,
            (ICMPV6_UNREACHABLE, 4) => ECONNREFUSED,
            (ICMPV6_TOO_BIG, _) => EMSGSIZE,
            (ICMPV6_PARAMETER_PROBLEM, _) => EPROTO,
            _ => EHOSTUNREACH,
        }
    }

    /// The errno in an error queue: Linux's.
    fn queued(&self) -> i32 {
        match (self.kind, self.code) {
            (ICMP_UNREACHABLE, 0 | 6 | 9 | 11) => ENETUNREACH,
            (ICMP_UNREACHABLE, 2) => ENOPROTOOPT,
            (ICMP_UNREACHABLE, 3) => ECONNREFUSED,
            FRAGMENTATION_NEEDED => EMSGSIZE,
            (ICMP_UNREACHABLE, 5) => EOPNOTSUPP,
            (ICMP_UNREACHABLE, 7) => EHOSTDOWN,
            (ICMP_UNREACHABLE, 8) => ENONET,
            (ICMP_PARAMETER_PROBLEM, _) => EPROTO,
            _ => EHOSTUNREACH,
        }
    }
}

impl Udp {
    pub(super) fn receive_error(
        &mut self,
        cx: &Context,
        (packet, header_len, zone): (PacketRef, u16, u16),
        error: &IcmpError,
    ) {
        let applied = self.quoted(cx, packet, header_len, zone).and_then(|(i, ends)| {
            self.note_path(i, &ends, error);
            let queues =
                self.live[i as usize].page.as_ref().is_some_and(|p| p.option(Opt::ReceiveErrors) != 0);
            let errno = match queues {
                true => {
                    let data = packet.skip(header_len as u32 + size_of::<UdpHeader>() as u32);
                    self.queue_error(cx, i, &ends, data, error)?
                }
                false => error.hard(ends.is_ipv6()).filter(|_| self.blocks[i].has(bit::CONNECTED))?,
            };
            Some((i, errno))
        });
        match applied {
            Some((i, errno)) => {
                cx.count(Counter::IcmpApplied);
                self.set_error(i, errno);
            }
            None => cx.count(Counter::DropIcmp),
        }
    }

    /// What fits the way to a connected socket's peer, for IP_MTU and IPV6_MTU.
    fn note_path(&self, i: u32, ends: &Ends, error: &IcmpError) {
        let block = &self.blocks[i];
        let is_peer = block.has(bit::CONNECTED) && block.remote == ends.remote;
        if let Some(page) = self.live[i as usize].page.as_ref().filter(|_| is_peer && error.is_too_big(ends))
        {
            page.set_info(&SocketInfo { mss: error.info.into(), ..SocketInfo::default() });
        }
    }

    /// Puts an error into a socket's queue. `None` if it is not for this socket, or if there is no room.
    fn queue_error(
        &self,
        cx: &Context,
        i: u32,
        ends: &Ends,
        data: PacketRef,
        error: &IcmpError,
    ) -> Option<i32> {
        let page = self.live[i as usize].page.as_ref()?;
        // A socket whose datagrams may be fragmented is not affected.
        if error.is_too_big(ends) && page.option(Opt::DontFragment) & fragment::NEVER == 0 {
            return None;
        }
        let mut quote = [0; QUOTE_MAX];
        let quote = &mut quote[..(data.len as usize).min(QUOTE_MAX)];
        cx.memory.read(data, quote)?;
        let record = ErrorRecord {
            destination: ends.remote,
            offender: error.offender,
            local: ends.local,
            port: ends.remote_port,
            len: 0,
            errno: if ends.is_ipv6() { error.queued6() } else { error.queued() },
            info: error.info as u32,
            kind: error.kind,
            code: error.code,
            ttl: error.ttl,
            tos: error.tos,
        };
        page.put_error(&record, quote).then_some(record.errno)
    }

    /// The socket whose datagram is quoted, and the datagram's ends.
    fn quoted(&self, cx: &Context, packet: PacketRef, header_len: u16, zone: u16) -> Option<(u32, Ends)> {
        let ip_len = header_len as usize;
        let mut bytes = [0; HEADERS_MAX];
        let bytes = bytes.get_mut(..ip_len + size_of::<UdpHeader>())?;
        cx.memory.read(packet, bytes)?;
        if !self.enter_packet(bytes) {
            cx.count(Counter::DropFatal);
            return None;
        }
        let (local, remote) = ip_addresses(&bytes[..ip_len], zone)?;
        let header = UdpHeader::read_from_bytes(&bytes[ip_len..]).ok()?;
        let ends = Ends {
            local,
            remote,
            local_port: header.source_port.get(),
            remote_port: header.destination_port.get(),
        };
        Some((self.find(&ends)?, ends))
    }
}

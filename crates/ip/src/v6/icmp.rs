//! ICMPv6 (RFC 4443), for [`crate::icmp`]. Neighbour discovery has been dealt with before ([`super::discovery`]).

use super::address::is_unicast;
use super::header::HEADER_LEN;
use super::path::MTU_MIN;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::icmp::ErrorDetails;
use crate::pending::Arrival;
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::wire::{
    ICMPV6_ECHO_REPLY, ICMPV6_ECHO_REQUEST, ICMPV6_PARAMETER_PROBLEM, ICMPV6_TIME_EXCEEDED, ICMPV6_TOO_BIG,
    ICMPV6_UNREACHABLE, IcmpHeader, Ipv6Header,
};
use eft_component::Context;
use zerocopy::FromBytes;

impl Ip {
    /// The message's checksum is right.
    pub(crate) fn receive_icmpv6(
        &mut self,
        cx: &mut Context,
        a: Arrival,
        header: IcmpHeader,
        message: PacketRef,
        out: &mut Out,
    ) {
        let from_one = matches!(a.question.source, IpAddr::V6(a) if is_unicast(a));
        match header.kind {
            // RFC 4443 §4.1; §4.2 lets a host ignore multicast echo requests.
            ICMPV6_ECHO_REQUEST if !a.group && from_one => {
                self.reply_to_echo(cx, &a, header, ICMPV6_ECHO_REPLY, message, out);
                self.release(a.packet, out);
            }
            ICMPV6_UNREACHABLE | ICMPV6_TOO_BIG | ICMPV6_TIME_EXCEEDED | ICMPV6_PARAMETER_PROBLEM => {
                let details = self.icmpv6_details(cx, &a, &header);
                self.receive_error(cx, &a, header, message, details, out)
            }
            ICMPV6_ECHO_REPLY => self.release(a.packet, out),
            // Neighbour discovery that came in fragments (RFC 6980 §5), and types that we do not handle.
            _ => self.drop_packet(cx, a.packet, Counter::DropIcmp, out),
        }
    }

    fn icmpv6_details(&self, cx: &Context, a: &Arrival, header: &IcmpHeader) -> Option<ErrorDetails> {
        let rest = u32::from_be_bytes(header.rest).min(u16::MAX as u32) as u16;
        // RFC 8201 §4: no path has a smaller MTU.
        if header.kind == ICMPV6_TOO_BIG && rest < MTU_MIN {
            return None;
        }
        let mut outer = [0; HEADER_LEN];
        self.read(cx.memory, a.packet, &mut outer)?;
        let outer = Ipv6Header::read_from_bytes(&outer).ok()?;
        let info = match header.kind {
            ICMPV6_TOO_BIG | ICMPV6_PARAMETER_PROBLEM => rest,
            _ => 0,
        };
        Some(ErrorDetails { info, ttl: outer.hop_limit, tos: outer.traffic_class() })
    }
}

//! ICMP for IPv4 (RFC 792), used by [`crate::icmp`].

use super::header::HEADER_LEN;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::icmp::ErrorDetails;
use crate::pending::Arrival;
use eft_base::PacketRef;
use eft_base::wire::{
    ICMP_ECHO_REPLY, ICMP_ECHO_REQUEST, ICMP_PARAMETER_PROBLEM, ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE,
    IcmpHeader, Ipv4Header,
};
use eft_component::Context;
use zerocopy::FromBytes;

const CODE_FRAGMENTATION_NEEDED: u8 = 4;
/// Smaller MTUs do not exist (RFC 791 §3.2).
const MTU_MIN: u16 = 68;

impl Ip {
    /// The message's checksum is right.
    pub(crate) fn receive_icmpv4(
        &mut self,
        cx: &mut Context,
        a: Arrival,
        header: IcmpHeader,
        message: PacketRef,
        out: &mut Out,
    ) {
        match header.kind {
            // RFC 1122 §3.2.2.6 lets a host ignore broadcast and multicast echo requests.
            ICMP_ECHO_REQUEST if !a.group => {
                self.reply_to_echo(cx, &a, header, ICMP_ECHO_REPLY, message, out);
                self.release(a.packet, out);
            }
            ICMP_UNREACHABLE | ICMP_TIME_EXCEEDED | ICMP_PARAMETER_PROBLEM => {
                let details = self.icmpv4_details(cx, &a, &header);
                self.receive_error(cx, &a, header, message, details, out)
            }
            ICMP_ECHO_REPLY => self.release(a.packet, out),
            _ => self.drop_packet(cx, a.packet, Counter::DropIcmp, out),
        }
    }

    fn icmpv4_details(&self, cx: &Context, a: &Arrival, header: &IcmpHeader) -> Option<ErrorDetails> {
        let needed = header.kind == ICMP_UNREACHABLE && header.code == CODE_FRAGMENTATION_NEEDED;
        let mtu = u16::from_be_bytes([header.rest[2], header.rest[3]]);
        if needed && mtu != 0 && mtu < MTU_MIN {
            return None;
        }
        let mut outer = [0; HEADER_LEN];
        self.read(cx.memory, a.packet, &mut outer)?;
        let outer = Ipv4Header::read_from_bytes(&outer).ok()?;
        let info = match header.kind {
            _ if needed => mtu,
            ICMP_PARAMETER_PROBLEM => header.rest[0] as u16,
            _ => 0,
        };
        Some(ErrorDetails { info, ttl: outer.ttl, tos: outer.tos })
    }
}

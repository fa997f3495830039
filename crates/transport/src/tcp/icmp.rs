//! Errors about our packets (RFC 9293 §3.9.2.2): ICMP (RFC 1122 §4.2.3.9, RFC 5461, RFC 5927 against forged ones; RFC
//! 1191 for "fragmentation needed"), ICMPv6 (RFC 4443; RFC 8201 for "packet too big") and ip's own refusals.

use super::asked::Report;
use super::block::{State, Tuple, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::route::fixed_headers;
use crate::addresses::{IP_HEADERS_MAX, ip_addresses};
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::errno::{EACCES, ECONNREFUSED, EHOSTUNREACH, EMSGSIZE, ENETUNREACH, EPERM, EPROTO};
use eft_base::wire::{
    ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE, ICMPV6_PARAMETER_PROBLEM, ICMPV6_TIME_EXCEEDED, ICMPV6_TOO_BIG,
    ICMPV6_UNREACHABLE,
};
use eft_channel::socket::{ErrorRecord, Opt, QUOTE_MAX as QUEUED_QUOTE_MAX};
use eft_component::Context;

const FRAGMENTATION_NEEDED: u8 = 4;
/// Below this a report is forged or the path is hopeless (as Linux's min_pmtu).
const PATH_MTU_MIN: u16 = 552;
/// The least MTU of an IPv6 link (RFC 8201 §4).
const MTU6_MIN: u16 = 1280;
/// IP header and 8 bytes of TCP.
const QUOTE_MAX: usize = IP_HEADERS_MAX + 8;

/// What an ICMP error means to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    TooBig {
        mtu: u16,
    },
    /// `fatal`: to a connection that is being opened.
    Unreachable {
        errno: i32,
        fatal: bool,
    },
}

fn meaning4(kind: u8, code: u8, info: u16) -> Option<Meaning> {
    let errno = match (kind, code) {
        (ICMP_UNREACHABLE, FRAGMENTATION_NEEDED) => return Some(Meaning::TooBig { mtu: info }),
        (ICMP_UNREACHABLE, 2 | 3) => ECONNREFUSED,
        (ICMP_UNREACHABLE, 0 | 6 | 9 | 11) => ENETUNREACH,
        (ICMP_UNREACHABLE, _) => EHOSTUNREACH,
        (ICMP_TIME_EXCEEDED, _) => EHOSTUNREACH,
        _ => return None,
    };
    Some(Meaning::Unreachable { errno, fatal: kind == ICMP_UNREACHABLE })
}

/// RFC 4443 §3; errnos as on Linux.
fn meaning6(kind: u8, code: u8, info: u16) -> Option<Meaning> {
    let errno = match (kind, code) {
        (ICMPV6_TOO_BIG, _) => return Some(Meaning::TooBig { mtu: info.max(MTU6_MIN) }),
        (ICMPV6_UNREACHABLE, 0) => ENETUNREACH,
        (ICMPV6_UNREACHABLE, 1 | 5 | 6) => EACCES,
        (ICMPV6_UNREACHABLE, 4) => ECONNREFUSED,
        (ICMPV6_UNREACHABLE, _) => EHOSTUNREACH,
        (ICMPV6_TIME_EXCEEDED, _) => EHOSTUNREACH,
        (ICMPV6_PARAMETER_PROBLEM, 1) => EPROTO,
        _ => return None,
    };
    Some(Meaning::Unreachable { errno, fatal: kind == ICMPV6_UNREACHABLE })
}

impl Connection<'_> {
    /// RFC 9293 §3.7.2, RFC 1191 §3 and §6.5: segments that were too large are sent again in smaller ones; they were not lost by congestion.
    fn lower_mtu(&mut self, mtu: u16) {
        let block = &mut self.block;
        let mtu = mtu.max(PATH_MTU_MIN);
        if !block.has(bit::ROUTED) || mtu >= self.cold.path_mtu {
            return;
        }
        self.cold.learned_mtu = mtu;
        self.cold.path_mtu = mtu.max(fixed_headers(block.tuple.remote) + 64);
        self.set_mss();
        let block = &*self.block;
        if block.state().may_send() && block.flight_size() > 0 {
            let (una, nxt) = (block.snd_una, block.snd_nxt);
            self.live.recovery.lose_all(una, nxt);
        }
        if block.state() == State::SynSent && block.snd_nxt > 0 {
            // It was the SYN with data, which goes again without.
            self.mark(due::SYN);
        }
        self.mark(due::SEND);
    }
}

impl Connection<'_> {
    /// A path error that ends nothing by itself: it explains a timeout, and SO_ERROR tells it, once, while nothing shows that the
    /// path works again.
    pub(super) fn note_soft_error(&mut self, errno: i32) {
        self.cold.soft_error = errno;
        self.live.soft_errors = self.live.soft_errors.wrapping_add(1);
        self.tell_numbers();
    }

    /// The path works.
    pub(super) fn forget_soft_error(&mut self) {
        if self.cold.soft_error != 0 {
            self.cold.soft_error = 0;
            self.tell_numbers();
        }
    }

    /// The path error that nobody has been told of; 0: there is none.
    pub(super) fn untold_soft_error(&self) -> i32 {
        let told = self.live.page.as_ref().map_or(0, |page| page.option(Opt::SoftErrorTold));
        if told == self.live.soft_errors as u32 + 1 { 0 } else { self.cold.soft_error }
    }
}

impl Tcp {
    /// ip passes an ICMP error about a packet that (it says) we sent: the quoted packet, its IP headers' length and zone.
    pub(super) fn receive_error(&mut self, cx: &Context, quote: (PacketRef, u16, u16), report: &Report) {
        let counter = match self.quoted(cx, quote) {
            Some(i) if self.ignores_error(cx, i, report.kind, report.code) => return,
            Some(i) => {
                let Report { kind, code, info, .. } = *report;
                let ipv6 = IpAddr::from(self.view(i).block.tuple.remote).is_ipv6();
                let meaning = if ipv6 { meaning6(kind, code, info) } else { meaning4(kind, code, info) };
                if let Some(meaning) = meaning {
                    if !ipv6 && let Meaning::Unreachable { errno, fatal: true } = meaning {
                        self.queue_refusal(cx, i, quote, (errno, report));
                    }
                    self.apply_error(cx, i, meaning);
                }
                Counter::IcmpApplied
            }
            None => Counter::DropIcmp,
        };
        cx.count(counter);
    }

    /// An error that ends an attempt to connect lies in the socket's error queue, too. Linux puts IPv4's there whether the program
    /// asked for it (IP_RECVERR) or not, since 5.18 (`ip_icmp_error` in `tcp_v4_err`), and IPv6's only if it did.
    fn queue_refusal(
        &mut self,
        cx: &Context,
        i: u32,
        (packet, header_len, _): (PacketRef, u16, u16),
        (errno, report): (i32, &Report),
    ) {
        let c = self.connection(i);
        let (Connection { block, live, .. }, data) = (c, packet.skip(header_len as u32));
        let Some(page) = live.page.as_ref().filter(|_| block.state() == State::SynSent) else {
            return;
        };
        let mut quote = [0; QUEUED_QUOTE_MAX];
        let quote = &mut quote[..(data.len as usize).min(QUEUED_QUOTE_MAX)];
        // Times of sends (SO_TIMESTAMPING) lie in the same place, and are told instead.
        if page.option(Opt::Timestamping) != 0 || cx.memory.read(data, quote).is_none() {
            return;
        }
        let record = ErrorRecord {
            destination: block.tuple.remote,
            offender: report.offender,
            local: block.tuple.local,
            port: block.tuple.remote_port,
            errno,
            kind: report.kind,
            code: report.code,
            ..ErrorRecord::default()
        };
        page.put_refusal(&record, quote);
    }

    /// The connection that the quoted header belongs to, if the quoted sequence number is in flight
    /// (RFC 5927 §4.1).
    fn quoted(&mut self, cx: &Context, (packet, header_len, zone): (PacketRef, u16, u16)) -> Option<u32> {
        let ip_len = header_len as usize;
        let mut bytes = [0; QUOTE_MAX];
        let bytes = bytes.get_mut(..ip_len + 8)?;
        cx.memory.read(packet, bytes)?;
        let (source, destination) = ip_addresses(bytes.get(..ip_len)?, zone)?;
        let quote = &bytes[ip_len..];
        let tuple = Tuple {
            local: source,
            remote: destination,
            local_port: u16::from_be_bytes([quote[0], quote[1]]),
            remote_port: u16::from_be_bytes([quote[2], quote[3]]),
        };
        let seq = u32::from_be_bytes([quote[4], quote[5], quote[6], quote[7]]);
        let i = self.find(&tuple)?;
        self.revive_for_message(cx, i);
        self.view(i).block.has_in_flight(seq).then_some(i)
    }

    fn apply_error(&mut self, cx: &Context, i: u32, meaning: Meaning) {
        match meaning {
            Meaning::TooBig { mtu } => self.connection(i).lower_mtu(mtu),
            Meaning::Unreachable { errno, fatal } => self.apply_path_error(cx, i, errno, fatal),
        }
    }

    /// During the handshake an unreachable destination ends the attempt (RFC 5461 §4.1); later it
    /// only explains a timeout.
    fn apply_path_error(&mut self, cx: &Context, i: u32, errno: i32, fatal: bool) {
        let mut c = self.connection(i);
        c.note_soft_error(errno);
        match c.block.state() {
            State::SynSent if fatal => {
                cx.count(Counter::FailedConnects);
                self.end(cx, i, errno);
            }
            State::SynReceived if fatal && c.block.has(bit::PASSIVE) => self.discard_embryonic(cx, i),
            // Open before its handshake is done, and nobody has it yet: as on Linux it ends, and can still be accepted.
            _ if fatal && c.is_unproven() && c.block.has(bit::QUEUED) && !self.is_taken(i) => {
                self.end(cx, i, errno);
            }
            _ => {}
        }
    }

    /// ip could not send a segment.
    pub(super) fn receive_send_error(&mut self, cx: &Context, i: u32, errno: i32) {
        match errno {
            EMSGSIZE => self.connection(i).mark(due::ROUTE),
            EHOSTUNREACH | ENETUNREACH | EACCES | EPERM => self.apply_path_error(cx, i, errno, true),
            _ => {}
        }
    }
}

//! tcp and udp ↔ ip.
//!
//! **Buffers.** Going out, the transport owns the header slot (a [`SendDescriptor`]) and the
//! domain's arena holds the payload; neither may change until [`IpToTransport::Sent`] comes.
//! Coming in, `packet` lies in a NIC's or ip's own pool and is given back with
//! [`TransportToIp::Done`].
//!
//! **Full.** Requests wait: the transport checks for room before it sends. Arriving packets
//! wait in ip when less than half of the queue is free, so that replies always fit: 64 of them, and for tcp as many as the pool
//! has room for. Further ones are dropped.
//!
//! **Lost.** A transport repeats a request that was not answered within a second or two, in the same slot: ip ignores that while
//! it has the request under way, and else answers again.
//!
//! **Restart.** ip reborn: the transport resubmits every unanswered `Send` and `Route`, in order; a
//! packet may go out twice. Transport reborn: ip forgets its requests and gives its packets back.

use crate::seal::seal;
use eft_base::{PacketRef, RequestId, WireAddress, protection};
use eft_channel::socket::flow;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

crate::messages! {
    /// From a transport to ip.
    pub enum TransportToIp {
        /// Send the packet that the [`SendDescriptor`] at `descriptor` describes.
        1 => Send { request: RequestId, descriptor: PacketRef },
        /// A received packet is no longer needed.
        2 => Done { packet: PacketRef },
        /// Which source address, MTU and offloads does the route to `destination` have?
        /// An unspecified `source` lets ip choose.
        3 => Route { request: RequestId, source: WireAddress, destination: WireAddress },
        /// As `Done`, but no socket is bound to the port: ip answers the sender with "port unreachable"
        /// (RFC 1122 §4.1.3.1), within its limits for ICMP errors.
        4 => Refuse { packet: PacketRef },
        /// A step of the list of the groups that sockets are members of: one of [`membership`], with what it names. ip answers
        /// each by `Grouped`, and the transport sends no other before that. Only udp sends it.
        5 => Group { order: u32, step: u8, interface: u8, group: WireAddress, source: WireAddress },
    }
}

crate::messages! {
    /// From ip to a transport.
    pub enum IpToTransport {
        /// The packet was handed to the device (`errno` 0), or could not be sent.
        1 => Sent { request: RequestId, errno: i32 },
        /// A packet for this host. `packet` covers the IP packet from its header on; `header_len` is the length of the IP
        /// header and of all other headers before the transport's. `checksum_ok`: the device or a local sender vouches for the
        /// transport checksum. `segment_size`: payload per wire segment if this is several merged ones, else 0. `zone`: the
        /// zone of the link-local addresses in its header; 0: it has none.
        /// `interface`: the number of the NIC that it came by; 255: this host sent it to itself.
        2 => Deliver { packet: PacketRef, header_len: u16, checksum_ok: bool, segment_size: u16, zone: u16, interface: u8 },
        /// An ICMP error about a packet of ours: `packet` covers the quoted IP header and at least
        /// 8 bytes of the quoted transport header. `kind` and `code` are ICMP's or ICMPv6's, as the quoted header's version says.
        /// `info`: the MTU of "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443 §3.2), the pointer of
        /// "parameter problem". `zone`: as in `Deliver`. `offender` sent the error, in a packet with `ttl` and `tos`.
        /// To be answered with `Done`.
        3 => Error { packet: PacketRef, header_len: u16, kind: u8, code: u8, info: u16, offender: WireAddress, ttl: u8, tos: u8, zone: u16 },
        /// Answer to `Route`. `segment_max`: largest payload of one `Send` with segmentation (0:
        /// the device does not segment). `local`: the destination is this host itself. What the route says to TCP, 0 if nothing (and
        /// from releases that knew none): the MSS to announce, and the segments of the initial window.
        4 => Routed { request: RequestId, errno: i32, source: WireAddress, mtu: u16, segment_max: u32, local: bool, mss: u16, initial_segments: u16 },
        /// The step of this order has been taken.
        5 => Grouped { order: u32 },
    }
}

/// Steps of [`TransportToIp::Group`]. Groups and sources are without zones. For each group of each interface there is a filter
/// (RFC 3376 §3.2): "exclude" takes packets of all sources but those that are listed, "include" of those that are listed alone.
/// A group that includes no source is not wanted.
pub mod membership {
    /// The list begins anew: what is not named until its end is no longer wanted.
    pub const BEGIN: u8 = 0;
    pub const END: u8 = 1;
    /// From now on the group's filter includes what is listed, which is nothing.
    pub const INCLUDE: u8 = 2;
    /// From now on the group's filter excludes what is listed, which is nothing.
    pub const EXCLUDE: u8 = 3;
    /// Adds a source to the filter's list.
    pub const ADD: u8 = 4;
    /// Removes a source from the filter's list.
    pub const REMOVE: u8 = 5;
    /// Groups on all interfaces that ip keeps filters for; further ones are not received.
    pub const GROUPS_MAX: usize = 4096;
    /// Sources in one filter; further ones are ignored.
    pub const SOURCES_MAX: usize = 256;
}

/// Largest transport header in a descriptor: TCP with full options.
pub const TRANSPORT_HEADER_MAX: usize = 60;
/// Payload references in a descriptor.
pub const PAYLOAD_REFS_MAX: usize = 4;
/// Slot size of a transport's header pool.
pub const SEND_SLOT_LEN: usize = 256;

/// What to send: lies at the start of a header slot. Plain bytes; ip copies it before it checks it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SendDescriptor {
    pub source: WireAddress,
    pub destination: WireAddress,
    pub protocol: u8,
    /// Hop limit; 0 means the default of 64.
    pub ttl: u8,
    pub tos: u8,
    /// [`SEND_DONT_FRAGMENT`], [`SEND_NO_LOOP`], [`SEND_HOST_ONLY`].
    pub flags: u8,
    /// Bytes of `header` in use. Its checksum field holds the pseudo-header sum, uncomplemented, at
    /// `checksum_offset`; ip or the device completes it.
    pub header_len: u16,
    pub checksum_offset: u16,
    /// Payload bytes per wire segment; 0: one packet (which ip may fragment).
    pub segment_size: u16,
    /// References in use.
    pub payload_count: u16,
    /// What the program wants of an IPv6 packet: [`Wish`].
    pub wish: u32,
    pub payload: [PacketRef; PAYLOAD_REFS_MAX],
    pub header: [u8; TRANSPORT_HEADER_MAX],
    /// See [`crate::seal`]; 0: there is none, as from releases that knew none.
    pub seal: u32,
}

impl SendDescriptor {
    /// The same with its seal.
    #[inline]
    pub fn sealed(mut self) -> SendDescriptor {
        if !protection::is_on() {
            return self;
        }
        let (header, payload) =
            (&self.header[..self.header_len as usize], &self.payload[..self.payload_count as usize]);
        self.seal = seal(header, self.checksum_offset.into(), payload);
        self
    }
}

/// What a program wants of its IPv6 packets, in one word: 0 is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The flow label (RFC 6437); 0: the packets have none. `None`: ip chooses.
    pub label: Option<u32>,
    /// No fragment is longer (IPV6_MTU), in units of 8 bytes as fragments are; at most 2047 of them. 0: no limit.
    pub largest: u16,
}

impl Wish {
    /// Bits of a flow label (RFC 8200 §6).
    pub const LABEL: u32 = flow::LABEL;
    const HAS_LABEL: u32 = 1 << 20;
    const LARGEST_AT: u32 = 21;
    /// What `largest` counts.
    pub const UNIT: u16 = 8;
    pub const LARGEST_MAX: u16 = (1 << (u32::BITS - Wish::LARGEST_AT)) - 1;

    pub fn to_word(self) -> u32 {
        let label = self.label.map_or(0, |label| Wish::HAS_LABEL | label & Wish::LABEL);
        label | (self.largest.min(Wish::LARGEST_MAX) as u32) << Wish::LARGEST_AT
    }

    pub fn of_word(word: u32) -> Wish {
        let has_label = word & Wish::HAS_LABEL != 0;
        Wish { label: has_label.then_some(word & Wish::LABEL), largest: (word >> Wish::LARGEST_AT) as u16 }
    }
}

pub const SEND_DONT_FRAGMENT: u8 = 1;
/// A packet to a multicast group: this host itself gets no copy, even if it is a member.
pub const SEND_NO_LOOP: u8 = 2;
/// A packet to a multicast group: it does not leave this host.
pub const SEND_HOST_ONLY: u8 = 4;

const _: () = assert!(size_of::<SendDescriptor>() <= SEND_SLOT_LEN);

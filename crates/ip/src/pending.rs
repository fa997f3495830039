//! The engine's data types for packets under way, for addresses of either version.

use crate::LOCAL_INTERFACE;
use crate::v6::path::MTU_MIN;
use core::net::IpAddr;
use eft_arena::docket::Running;
use eft_base::address::zone;
use eft_base::wire::{
    EthernetHeader, ICMP_PARAMETER_PROBLEM, ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE, ICMPV6_INFORMATIONAL,
    IcmpHeader, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP, TcpHeader, UdpHeader,
};
use eft_base::{MacAddress, PacketRef, RequestId};
use eft_component::{Answer, Output};
use eft_messages::filter::{FilterToIp, Flow, IpToFilter};
use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{IpToTransport, TransportToIp, Wish};
use eft_messages::{ComponentId, Encoded};
use zerocopy::FromBytes;

pub(crate) const ETHERNET_LEN: usize = size_of::<EthernetHeader>();

/// A message to ip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromPeer {
    Transport(TransportToIp),
    Nic(NicToIp),
    Filter(FilterToIp),
}

/// A message from ip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToPeer {
    /// To tcp or udp.
    Transport(ComponentId, IpToTransport),
    Nic(u8, IpToNic),
    Filter(IpToFilter),
    /// To an operator, by the supervisor.
    Answer(Answer),
}

impl Output for ToPeer {
    type Effect = Answer;

    fn peer(&self) -> Option<ComponentId> {
        Some(match self {
            ToPeer::Transport(peer, _) => *peer,
            ToPeer::Nic(n, _) => ComponentId::nic(*n),
            ToPeer::Filter(_) => ComponentId::FILTER,
            ToPeer::Answer(_) => return None,
        })
    }

    fn encode(&self) -> Encoded {
        match self {
            ToPeer::Transport(_, m) => m.encode(),
            ToPeer::Nic(_, m) => m.encode(),
            ToPeer::Filter(m) => m.encode(),
            ToPeer::Answer(_) => Encoded::default(),
        }
    }

    fn is_urgent(&self) -> bool {
        !matches!(
            self,
            ToPeer::Transport(_, IpToTransport::Sent { errno: 0, .. }) | ToPeer::Nic(_, IpToNic::Done { .. })
        )
    }

    fn into_effect(self) -> Option<Answer> {
        match self {
            ToPeer::Answer(answer) => Some(answer),
            _ => None,
        }
    }
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To this host itself.
    Local,
    /// To the neighbour with this address: the destination or a gateway.
    Neighbour(IpAddr),
    /// To a broadcast or multicast address of the link.
    Group(MacAddress),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// NIC number, or [`LOCAL_INTERFACE`].
    pub interface: u8,
    pub next: Next,
    /// The largest packet that the route takes; beside it the link's bound holds.
    pub mtu: u16,
    /// The largest fragment of a packet that is larger than that.
    pub fragment: u16,
}

impl Hop {
    pub const LOCAL: Hop = Hop::to(LOCAL_INTERFACE, Next::Local);

    /// Only the link bounds the size of packets.
    pub const fn to(interface: u8, next: Next) -> Hop {
        Hop { interface, next, mtu: u16::MAX, fragment: u16::MAX }
    }

    /// For packets of IPv6 of which no fragment may be longer, in units of [`Wish::UNIT`]; 0: they may be as long as the route takes.
    pub fn within(self, source: IpAddr, largest: u16) -> Hop {
        match largest {
            0 => self,
            _ if source.is_ipv4() => self,
            units => Hop { fragment: units.saturating_mul(Wish::UNIT).max(MTU_MIN), ..self },
        }
    }
}

/// Who gets a packet to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The link.
    Link,
    /// The link, and this host if it is a member.
    LinkAndHost,
    /// This host alone.
    Host,
}

/// To whom the fate of an outgoing packet is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Transport {
        peer: ComponentId,
        request: RequestId,
    },
    /// A fragment of this entry of the datagram database.
    Fragment(RequestId),
    /// ip itself, or a transport that has died since.
    Nobody,
}

/// What a packet that goes out waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Verdict,
    Neighbour,
    /// Room in a transport's queue, or a packet slot.
    Local,
    Nic,
}

/// A packet on its way out. Its headers lie in the frame slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub origin: Origin,
    pub stage: Stage,
    pub hop: Hop,
    pub frame: PacketRef,
    /// A slot of ip's own pool in which the payload lies; freed with the transmission.
    pub packet: Option<PacketRef>,
    pub question: Question,
    /// Bytes of the IP packet.
    pub len: u32,
    /// Payload per wire segment if the device is to cut it, else 0.
    pub segment_size: u16,
    pub reach: Reach,
}

impl Transmission {
    /// For its nic, for the first time or again.
    pub fn to_nic(self, request: RequestId) -> ToPeer {
        ToPeer::Nic(self.hop.interface, IpToNic::Send { request, descriptor: self.frame })
    }
}

/// A datagram that was cut into fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub origin: Origin,
    pub packet: Option<PacketRef>,
    pub remaining: usize,
    /// The first error of a fragment.
    pub errno: i32,
}

/// A checked packet that came in. `packet` covers the IP packet and lies in a NIC's pool or ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub packet: PacketRef,
    pub interface: u8,
    pub header_len: u16,
    pub checksum_ok: bool,
    pub segment_size: u16,
    /// Multicast or broadcast, by its link or its IP address: never answered with an error.
    pub group: bool,
    pub question: Question,
}

/// A packet that came in and waits for its verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub arrival: Arrival,
    /// As what it was recorded before it was asked about.
    pub named: Running,
}

/// A packet to be built.
pub(crate) struct Outgoing<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub ttl: u8,
    pub tos: u8,
    pub dont_fragment: bool,
    /// The transport header.
    pub header: &'a [u8],
    pub payload: &'a [PacketRef],
    pub segment_size: u16,
    /// Where in `header` the pseudo-header's sum lies, if the checksum is yet to be completed.
    pub checksum_offset: Option<u16>,
    /// The transport's ([`eft_messages::seal`]); 0: there is none.
    pub seal: u32,
    /// The filter ordered this packet and is not asked about it.
    pub ordered: bool,
    /// If it goes to a group.
    pub reach: Reach,
    /// The flow label that the program chose; 0: none.
    pub label: Option<u32>,
}

impl Outgoing<'_> {
    /// Bytes after the IP header.
    pub fn body_len(&self) -> usize {
        let payload: usize = self.payload.iter().map(|r| r.len as usize).sum();
        self.header.len() + payload
    }
}

/// The error that a packet's sender gets (ICMP, RFC 792, RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    ProtocolUnreachable,
    PortUnreachable,
    /// Fragments are missing.
    ReassemblyTimeout,
    /// The filter blocked it and wants its sender informed: "port unreachable".
    Blocked,
    /// Something in its headers is invalid; `pointer` says where.
    ParameterProblem {
        code: u8,
        pointer: u32,
    },
}

/// What the filter is asked about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub tcp_flags: u8,
    /// For ICMP the type.
    pub source_port: u16,
    /// For ICMP the code.
    pub destination_port: u16,
    /// For an ICMP error: the packet that it is about, if it quotes enough.
    pub quoted: Option<Quoted>,
    /// TCP without payload.
    pub bare: bool,
}

/// The IP header of a quoted packet.
pub(crate) struct QuotedHeader {
    /// Length of all headers before the transport's.
    pub len: usize,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
}

/// A packet that an ICMP error quotes; at least ports are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quoted {
    pub header_len: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// For ICMP the type.
    pub source_port: u16,
    /// For ICMP the code.
    pub destination_port: u16,
}

impl Question {
    /// Whether the packet is an ICMP error about another packet.
    pub fn is_error(&self) -> bool {
        let errors = [ICMP_UNREACHABLE, ICMP_TIME_EXCEEDED, ICMP_PARAMETER_PROBLEM];
        match self.protocol {
            PROTOCOL_ICMP => errors.iter().any(|kind| *kind as u16 == self.source_port),
            PROTOCOL_ICMPV6 => self.source_port < ICMPV6_INFORMATIONAL as u16,
            _ => false,
        }
    }

    /// The zone of the packet's addresses; 0: they need none.
    pub fn zone(&self) -> u16 {
        let zone_of = |a: IpAddr| match a {
            IpAddr::V4(_) => 0,
            IpAddr::V6(a) => zone(a),
        };
        match zone_of(self.source) {
            0 => zone_of(self.destination),
            zone => zone,
        }
    }

    /// The connection that a grant may be for.
    pub fn flow(&self) -> Option<Flow> {
        matches!(self.protocol, PROTOCOL_TCP | PROTOCOL_UDP).then(|| {
            let source = (self.source.into(), self.source_port);
            Flow::between(source, (self.destination.into(), self.destination_port), self.protocol).0
        })
    }

    /// Reads the start of the transport header; `len` is the length of header and payload. `None`: too short for
    /// a header.
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        transport: &[u8],
        len: usize,
    ) -> Option<Question> {
        let mut bare = false;
        let (source_port, destination_port, tcp_flags) = match protocol {
            PROTOCOL_TCP => {
                let (h, _) = TcpHeader::ref_from_prefix(transport).ok()?;
                bare = len <= h.header_len();
                (h.source_port.get(), h.destination_port.get(), h.flags)
            }
            PROTOCOL_UDP => {
                let (h, _) = UdpHeader::ref_from_prefix(transport).ok()?;
                (h.source_port.get(), h.destination_port.get(), 0)
            }
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
                let (h, _) = IcmpHeader::ref_from_prefix(transport).ok()?;
                (h.kind as u16, h.code as u16, 0)
            }
            _ => (0, 0, 0),
        };
        let quoted = None;
        Some(Question {
            source,
            destination,
            protocol,
            tcp_flags,
            source_port,
            destination_port,
            quoted,
            bare,
        })
    }
}

//! What waits between ip and a transport.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;
use eft_base::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use eft_base::{PacketRef, RequestId, ports};
use eft_channel::Seen;
use eft_messages::transport::IpToTransport;
use eft_messages::{ComponentId, Role};

/// A packet for a transport.
#[derive(Clone, Copy)]
pub(crate) struct Undelivered {
    pub packet: PacketRef,
    pub message: IpToTransport,
    /// An ICMP error may be sent about it.
    pub answerable: bool,
    /// How often a transport died while it had the packet.
    pub deaths: u8,
}

/// What waits on the way from and to a transport, in order.
#[derive(Default)]
pub(crate) struct Lane {
    /// Descriptors that came.
    pub seen: Seen,
    /// Requests that wait for a frame slot.
    pub waiting: VecDeque<(RequestId, PacketRef)>,
    /// Packets that wait for room in the transport's queue.
    pub undelivered: VecDeque<Undelivered>,
    /// Packets of the transport that wait for link addresses.
    pub resolving: usize,
}

impl Lane {
    /// The transport has a successor: its predecessor's requests are forgotten, packets that came for it are not.
    fn reborn(&mut self) {
        self.waiting.clear();
        self.resolving = 0;
        self.seen.forget();
    }
}

/// The lanes of all transports that the configuration names or that were connected at least once, in the order of their ids.
#[derive(Default)]
pub(crate) struct Lanes {
    pub all: Vec<(ComponentId, Lane)>,
    /// Where among them those of tcp and of udp are.
    tcp: Range<usize>,
    udp: Range<usize>,
}

impl Lanes {
    /// These transports belong to the stack: one that is not connected is dead.
    pub fn expect(&mut self, peers: impl Iterator<Item = ComponentId>) {
        for peer in peers {
            if let Err(i) = self.all.binary_search_by_key(&peer, |(id, _)| *id) {
                self.insert(i, peer);
            }
        }
    }

    /// A transport is connected, for the first time or again.
    pub fn reborn(&mut self, peer: ComponentId) {
        match self.all.binary_search_by_key(&peer, |(id, _)| *id) {
            Ok(i) => self.all[i].1.reborn(),
            Err(i) => self.insert(i, peer),
        }
    }

    fn insert(&mut self, i: usize, peer: ComponentId) {
        self.all.insert(i, (peer, Lane::default()));
        let of = |role: Role| {
            let is_its = |(id, _): &(ComponentId, Lane)| id.role == role;
            let first = self.all.iter().position(is_its).unwrap_or_default();
            first..first + self.all.iter().filter(|lane| is_its(lane)).count()
        };
        (self.tcp, self.udp) = (of(Role::Tcp), of(Role::Udp));
    }

    pub fn get(&self, peer: ComponentId) -> Option<&Lane> {
        self.all.iter().find(|(id, _)| *id == peer).map(|(_, lane)| lane)
    }

    pub fn get_mut(&mut self, peer: ComponentId) -> Option<&mut Lane> {
        self.all.iter_mut().find(|(id, _)| *id == peer).map(|(_, lane)| lane)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter().map(|(_, lane)| lane)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ComponentId, &mut Lane)> {
        self.all.iter_mut().map(|(id, lane)| (*id, lane))
    }

    /// Whether a request of a transport waits for a frame slot.
    pub fn any_waits(&self) -> bool {
        self.iter().any(|lane| !lane.waiting.is_empty())
    }

    /// The transport that gets packets of this protocol to this port of ours from this peer.
    #[inline]
    pub fn transport_of(
        &self,
        protocol: u8,
        port: u16,
        (remote, remote_port): (IpAddr, u16),
    ) -> Option<ComponentId> {
        let lanes = match protocol {
            PROTOCOL_TCP => &self.tcp,
            PROTOCOL_UDP => &self.udp,
            _ => return None,
        };
        let nth = match lanes.len() {
            0 => return None,
            1 => 0,
            instances if protocol == PROTOCOL_TCP => {
                ports::connection_owner(port, (remote.into(), remote_port), instances as u8)
            }
            instances => ports::owner(port, instances as u8),
        };
        self.all.get(lanes.start + usize::from(nth)).map(|(id, _)| *id)
    }
}

/// What each transport may send.
pub(crate) fn speaks(peer: ComponentId, protocol: u8) -> bool {
    matches!((peer.role, protocol), (Role::Tcp, PROTOCOL_TCP) | (Role::Udp, PROTOCOL_UDP))
}

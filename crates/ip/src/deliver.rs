//! Packets given to transports, and given back.
//!
//! A packet's buffer belongs to a NIC or to us; which transport has it is kept here, so that a
//! `Done` is believed only from the transport that has the packet, and a dead transport's packets
//! all go home.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::icmp::IcmpError;
use crate::pending::{Arrival, ToPeer};
use alloc::vec::Vec;
use eft_base::wire::{PROTOCOL_ICMP, PROTOCOL_TCP};
use eft_base::{PacketRef, PoolId};
use eft_channel::{Memory, Pool};
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::nic::IpToNic;
use eft_messages::transport::IpToTransport;

/// Packets that wait for room in a transport's queue: enough for a burst of receipts to pass, few
/// enough that a transport that stays away does not take all of a NIC's buffers from the other.
const UNDELIVERED_MAX: usize = 64;

/// A packet that waits for room.
pub(crate) struct Undelivered {
    pub packet: PacketRef,
    message: IpToTransport,
    answerable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    Nic(u8),
    /// The NIC died, and its pool with it; readers may still have packets.
    Dead,
}

#[derive(Clone, Copy)]
struct Entry {
    packet: PacketRef,
    to: ComponentId,
    /// An ICMP error may be sent about it.
    answerable: bool,
}

struct Table {
    owner: Owner,
    slots: Vec<Option<Entry>>,
    given: usize,
}

/// Who has which slot of which pool.
pub(crate) struct Given {
    /// By pool id.
    pools: Vec<Option<Table>>,
}

impl Given {
    pub fn new(packets: &Pool) -> Given {
        let mut given = Given { pools: Vec::new() };
        given.insert_table(packets.id(), Owner::Us, packets.slots());
        given
    }

    fn insert_table(&mut self, id: PoolId, owner: Owner, slots: usize) {
        let i = id.0 as usize;
        if self.pools.len() <= i {
            self.pools.resize_with(i + 1, || None);
        }
        self.pools[i] = Some(Table { owner, slots: alloc::vec![None; slots], given: 0 });
    }

    fn table(&mut self, id: PoolId) -> Option<&mut Table> {
        self.pools.get_mut(id.0 as usize)?.as_mut()
    }

    /// Whether NIC `n` may hand over this packet: the slot exists, is not given to anybody, and the
    /// pool is the NIC's.
    pub fn admit(&mut self, memory: &Memory, n: u8, packet: PacketRef) -> bool {
        if self.table(packet.pool).is_none() {
            let Some(view) = memory.view(packet.pool) else {
                return false;
            };
            self.insert_table(packet.pool, Owner::Nic(n), view.slots);
        }
        self.table(packet.pool).is_some_and(|t| {
            t.owner == Owner::Nic(n) && matches!(t.slots.get(packet.slot as usize), Some(None))
        })
    }

    fn give(&mut self, packet: PacketRef, to: ComponentId, answerable: bool) {
        if let Some(t) = self.table(packet.pool)
            && let Some(slot @ None) = t.slots.get_mut(packet.slot as usize)
        {
            *slot = Some(Entry { packet, to, answerable });
            t.given += 1;
        }
    }

    /// `from` gives a packet back.
    fn take(&mut self, packet: PacketRef, from: ComponentId) -> Option<Entry> {
        let t = self.table(packet.pool)?;
        let slot = t.slots.get_mut(packet.slot as usize)?;
        let entry = slot.filter(|e| e.to == from && e.packet.generation == packet.generation)?;
        *slot = None;
        t.given -= 1;
        Some(entry)
    }

    /// All packets that `from` has.
    pub fn take_all(&mut self, from: ComponentId) -> Vec<PacketRef> {
        let mut all = Vec::new();
        for t in self.pools.iter_mut().flatten() {
            for slot in &mut t.slots {
                if let Some(entry) = slot.filter(|e| e.to == from) {
                    all.push(entry.packet);
                    *slot = None;
                    t.given -= 1;
                }
            }
        }
        all
    }

    /// NIC `n` has a successor with a fresh pool.
    pub fn owner_reborn(&mut self, n: u8) {
        for table in &mut self.pools {
            if let Some(t) = table
                && t.owner == Owner::Nic(n)
            {
                t.owner = Owner::Dead;
            }
        }
        self.forget_dead();
    }

    fn forget_dead(&mut self) {
        for table in &mut self.pools {
            if table.as_ref().is_some_and(|t| t.owner == Owner::Dead && t.given == 0) {
                *table = None;
            }
        }
    }

    fn owner(&self, id: PoolId) -> Option<Owner> {
        self.pools.get(id.0 as usize)?.as_ref().map(|t| t.owner)
    }

    pub fn uses(&self, id: PoolId) -> bool {
        let table = self.pools.get(id.0 as usize).and_then(Option::as_ref);
        table.is_some_and(|t| t.given > 0)
    }
}

impl Ip {
    /// Gives a packet's buffer back to its owner.
    pub(crate) fn release(&mut self, packet: PacketRef, out: &mut Out) {
        match self.given.owner(packet.pool) {
            Some(Owner::Us) => {
                self.packets.free(packet);
            }
            Some(Owner::Nic(n)) => out.push(ToPeer::Nic(n, IpToNic::Done { packet })),
            Some(Owner::Dead) => self.given.forget_dead(),
            None => {}
        }
    }

    /// Counts why a packet goes no further, and gives its buffer back.
    pub(crate) fn drop_packet(&mut self, cx: &mut Context, packet: PacketRef, why: Counter, out: &mut Out) {
        cx.count(why);
        self.release(packet, out);
    }

    /// Whether the topology has this transport.
    /// A packet for this host that may pass.
    pub(crate) fn accept(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        match a.question.protocol {
            PROTOCOL_ICMP => return self.receive_icmp(cx, a, out),
            PROTOCOL_TCP if a.group => {
                return self.drop_packet(cx, a.packet, Counter::DropMartian, out);
            }
            _ => {}
        }
        let Some(peer) = self.lanes.transport_of(a.question.protocol) else {
            return self.refuse_protocol(cx, a, out);
        };
        let message = IpToTransport::Deliver {
            packet: a.packet,
            header_len: a.header_len,
            checksum_ok: a.checksum_ok,
            segment_size: a.segment_size,
        };
        self.give(cx, peer, a.packet, message, !a.group, out);
    }

    fn refuse_protocol(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        if !a.group {
            self.send_error(cx, IcmpError::PROTOCOL_UNREACHABLE, a.packet, out);
        }
        self.drop_packet(cx, a.packet, Counter::DropProtocol, out);
    }

    /// Hands a packet to a transport if its queue may take what can be dropped; else a few wait.
    pub(crate) fn give(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        message: IpToTransport,
        answerable: bool,
        out: &mut Out,
    ) {
        let Some(lane) = self.lanes.get_mut(peer) else {
            return;
        };
        if lane.undelivered.is_empty() && out.may_drop_in(peer) {
            self.given.give(packet, peer, answerable);
            out.push(ToPeer::Transport(peer, message));
        } else if lane.undelivered.len() < UNDELIVERED_MAX {
            lane.undelivered.push_back(Undelivered { packet, message, answerable });
        } else {
            self.drop_packet(cx, packet, Counter::DropTransportFull, out);
        }
    }

    /// Hands over what waited for room.
    pub(crate) fn flush_undelivered(&mut self, out: &mut Out) {
        for (peer, lane) in self.lanes.iter_mut() {
            while out.may_drop_in(peer)
                && let Some(u) = lane.undelivered.pop_front()
            {
                self.given.give(u.packet, peer, u.answerable);
                out.push(ToPeer::Transport(peer, u.message));
            }
        }
    }

    pub(crate) fn receive_done(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        out: &mut Out,
    ) {
        match self.given.take(packet, peer) {
            Some(entry) => self.release(entry.packet, out),
            None => cx.count(Counter::BadDone),
        }
    }

    /// Nobody listens on the port (RFC 1122 §4.1.3.1).
    pub(crate) fn receive_refuse(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        packet: PacketRef,
        out: &mut Out,
    ) {
        match self.given.take(packet, peer) {
            Some(entry) => {
                if entry.answerable {
                    self.send_error(cx, IcmpError::PORT_UNREACHABLE, entry.packet, out);
                }
                self.release(entry.packet, out);
            }
            None => cx.count(Counter::BadDone),
        }
    }
}

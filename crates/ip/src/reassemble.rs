//! Putting fragments together (RFC 791 §3.2, RFC 815), within limits.
//!
//! A datagram is collected in one slot of our own pool. Memory, datagrams, fragments of one and
//! time are bounded. Overlapping fragments spoil the datagram, and what still arrives of it (as
//! RFC 5722 says for IPv6): no honest sender makes them. A first fragment must carry the whole
//! transport header that the filter is asked about (RFC 1858).

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::icmp::IcmpError;
use crate::pending::{Arrival, Question};
use crate::reassembly::{Entry, Fit, Key, Place};
use crate::receive::Ipv4;
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::checksum::Checksum;
use eft_base::wire::{IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK, Ipv4Header};
use eft_base::{Instant, PacketRef};
use eft_component::Context;
use zerocopy::{FromBytes, IntoBytes};

const TIMEOUT: Duration = Duration::from_secs(30);
const DATAGRAMS_MAX: usize = 256;
/// Where the body begins in a slot: the longest header fits before it.
const BODY_AT: usize = 60;
const IP_LEN_MAX: usize = 65535;

impl Ip {
    pub(crate) fn receive_fragment(
        &mut self,
        cx: &mut Context,
        interface: u8,
        p: &Ipv4,
        group: bool,
        out: &mut Out,
    ) {
        cx.count(Counter::FragmentsIn);
        if let Err(why) = self.collect(cx, interface, p, group, out) {
            cx.count(why);
        }
        self.release(p.packet, out);
    }

    fn collect(
        &mut self,
        cx: &mut Context,
        interface: u8,
        p: &Ipv4,
        group: bool,
        out: &mut Out,
    ) -> Result<(), Counter> {
        let place = place(p)?;
        let key = Key {
            source: p.source,
            destination: p.destination,
            id: p.header.id.get(),
            protocol: p.header.protocol,
        };
        let found = self.reassembly.entries.iter().position(|e| e.key == key);
        let i = match found {
            Some(i) => i,
            None => self.begin(cx.now, key, interface, group)?,
        };
        let entry = &mut self.reassembly.entries[i];
        let slot = entry.slot.ok_or(Counter::DropFragment)?;
        match entry.fit(place) {
            Ok(Fit::Duplicate) => return Ok(()),
            Ok(Fit::New) => {}
            Err(why) => {
                entry.slot = None;
                self.packets.free(slot);
                return Err(why);
            }
        }
        if place.start == 0 {
            entry.header_len = Some(p.header_len);
        }
        let complete = entry.is_complete();
        self.store(cx, slot, p, place).ok_or(Counter::DropMalformed)?;
        if complete {
            let entry = self.reassembly.entries.remove(i);
            self.complete(cx, entry, slot, out)?;
        }
        Ok(())
    }

    fn begin(&mut self, now: Instant, key: Key, interface: u8, group: bool) -> Result<usize, Counter> {
        let r = &mut self.reassembly;
        if r.entries.len() >= DATAGRAMS_MAX || r.slots() >= r.slots_max {
            // The oldest gives way: a flood of first fragments must not lock everybody out.
            if let Some(slot) = (!r.entries.is_empty()).then(|| r.entries.remove(0)).and_then(|e| e.slot) {
                self.packets.free(slot);
            }
        }
        let slot = self.packets.allocate().ok_or(Counter::DropReassemblyFull)?;
        self.reassembly.entries.push(Entry {
            key,
            expires: now + TIMEOUT,
            interface,
            group,
            slot: Some(slot),
            ranges: Vec::new(),
            received: 0,
            header_len: None,
            body_len: None,
        });
        Ok(self.reassembly.entries.len() - 1)
    }

    /// Copies a fragment to its place; the first one's header too.
    fn store(&self, cx: &Context, slot: PacketRef, p: &Ipv4, place: Place) -> Option<()> {
        let view = self.packets.view();
        let start = view.locate(slot)?;
        if place.start == 0 {
            let at = start + BODY_AT - p.header_len;
            view.segment.write(at, &p.head[..p.header_len]).ok()?;
        }
        let body = p.packet.skip(p.header_len as u32);
        let (segment, offset) = cx.memory.resolve(body)?;
        segment.copy_to(offset, &view.segment, start + BODY_AT + place.start, body.len as usize).ok()
    }

    /// All of a datagram is there: makes one packet of it.
    fn complete(
        &mut self,
        cx: &mut Context,
        entry: Entry,
        slot: PacketRef,
        out: &mut Out,
    ) -> Result<(), Counter> {
        let header_len = entry.header_len.unwrap_or(0);
        let len = header_len + entry.received;
        let packet = PacketRef { offset: (BODY_AT - header_len) as u32, len: len as u32, ..slot };
        let arrival = self.finish_header(cx, packet, header_len, len).and_then(|head| {
            let transport = head.get(header_len..)?;
            let k = entry.key;
            let question = Question::new(k.source, k.destination, k.protocol, transport)?;
            Some(Arrival {
                packet,
                interface: entry.interface,
                header_len: header_len as u16,
                checksum_ok: false,
                segment_size: 0,
                group: entry.group,
                question,
            })
        });
        let Some(arrival) = arrival else {
            self.packets.free(slot);
            return Err(Counter::DropMalformed);
        };
        cx.count(Counter::Reassembled);
        self.judge(cx, arrival, out);
        Ok(())
    }

    /// Writes the whole packet's length into the stored header; returns the packet's first bytes.
    fn finish_header(
        &self,
        cx: &Context,
        packet: PacketRef,
        header_len: usize,
        len: usize,
    ) -> Option<[u8; 80]> {
        if len > IP_LEN_MAX {
            return None;
        }
        let mut head = [0u8; 80];
        let n = head.len().min(len);
        self.read(cx.memory, packet, &mut head[..n])?;
        let (h, _) = Ipv4Header::mut_from_prefix(&mut head[..]).ok()?;
        h.total_len = (len as u16).into();
        h.flags_fragment = 0.into();
        h.checksum = 0.into();
        let sum = Checksum::new().add_bytes(&head[..header_len]).finish();
        let (h, _) = Ipv4Header::mut_from_prefix(&mut head[..]).ok()?;
        h.checksum = sum.into();
        let header = *h;
        self.packets.write(packet, 0, header.as_bytes()).then_some(head)
    }

    pub(crate) fn expire_reassembly(&mut self, cx: &mut Context, out: &mut Out) {
        while self.reassembly.deadline().is_some_and(|d| d <= cx.now) {
            let entry = self.reassembly.entries.remove(0);
            let Some(slot) = entry.slot else {
                continue;
            };
            cx.count(Counter::ReassemblyTimeouts);
            // RFC 792: only if the first fragment has come, since it is what is quoted.
            if let (Some(header_len), false) = (entry.header_len, entry.group) {
                let first = entry.ranges.first().map_or(0, |(_, end)| *end);
                let packet = PacketRef {
                    offset: (BODY_AT - header_len) as u32,
                    len: (header_len + first) as u32,
                    ..slot
                };
                self.send_error(cx, IcmpError::REASSEMBLY_TIMEOUT, packet, out);
            }
            self.packets.free(slot);
        }
    }
}

/// Checks a fragment on its own.
fn place(p: &Ipv4) -> Result<Place, Counter> {
    let field = p.header.flags_fragment.get();
    let start = (field & IPV4_OFFSET_MASK) as usize * 8;
    let len = p.packet.len as usize - p.header_len;
    let end = start + len;
    let last = field & IPV4_MORE_FRAGMENTS == 0;
    if len == 0 || (!last && !len.is_multiple_of(8)) || p.header_len + end > IP_LEN_MAX {
        return Err(Counter::DropFragment);
    }
    let transport = p.head.get(p.header_len..).unwrap_or(&[]);
    let whole_header = Question::new(p.source, p.destination, p.header.protocol, transport);
    if start == 0 && whole_header.is_none() {
        return Err(Counter::DropFragment);
    }
    // RFC 1858 §4: nothing honest begins right after eight bytes, and it could rewrite TCP's flags.
    if start == 8 && p.header.protocol == eft_base::wire::PROTOCOL_TCP {
        return Err(Counter::DropFragment);
    }
    Ok(Place { start, end, last })
}

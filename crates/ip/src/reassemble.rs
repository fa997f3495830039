//! Reassembly of fragments (RFC 815), within limits; `v4` and `v6` parse the fragments.
//!
//! A datagram is collected in one slot of our own pool. Memory, the number of datagrams, the fragments of each and its
//! time are bounded. Overlapping fragments spoil the datagram, including fragments of it that still arrive (RFC 8200
//! §4.5 and RFC 5722 require that for IPv6): no honest sender makes them. A first fragment must carry the whole
//! transport header that the filter is asked about (RFC 1858).

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family::{self, HEADERS_MAX};
use crate::note;
use crate::pending::{Arrival, Question, Report};
use crate::reassembly::{Entry, Fit, Fragment, Key};
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::{Instant, PacketRef};
use eft_component::Context;

const TIMEOUT: Duration = Duration::from_secs(30);
const DATAGRAMS_MAX: usize = 256;
/// Where the body begins in a slot: the longest header fits before it.
const BODY_AT: usize = HEADERS_MAX;
/// That header, and a transport header.
const HEAD_LEN: usize = BODY_AT + 20;

impl Ip {
    /// `packet` is the fragment from its IP header on.
    pub(crate) fn receive_fragment(
        &mut self,
        cx: &mut Context,
        interface: u8,
        packet: PacketRef,
        fragment: Result<Fragment, Counter>,
        group: bool,
        out: &mut Out,
    ) {
        cx.count(Counter::FragmentsIn);
        if let Err(why) = fragment.and_then(|f| self.collect(cx, interface, &f, group, out)) {
            cx.count(why);
        }
        self.release(packet, out);
    }

    fn collect(
        &mut self,
        cx: &mut Context,
        interface: u8,
        fragment: &Fragment,
        group: bool,
        out: &mut Out,
    ) -> Result<(), Counter> {
        let &Fragment { key, place, header, .. } = fragment;
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
        entry.marks |= 1 << family::mark(header);
        if place.start == 0 {
            entry.header_len = Some(header.len());
        }
        let complete = entry.is_complete();
        self.store(cx, slot, fragment).ok_or(Counter::DropMalformed)?;
        if complete {
            let entry = self.reassembly.entries.remove(i);
            self.complete(cx, entry, slot, out)?;
        }
        Ok(())
    }

    fn begin(&mut self, now: Instant, key: Key, interface: u8, group: bool) -> Result<usize, Counter> {
        let r = &mut self.reassembly;
        if r.entries.len() >= DATAGRAMS_MAX || r.slots() >= r.slots_max {
            // The oldest is evicted: a flood of first fragments must not block all other datagrams.
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
            marks: 0,
            body_len: None,
        });
        Ok(self.reassembly.entries.len() - 1)
    }

    /// Copies a fragment to its place; the first one's header too.
    fn store(&self, cx: &Context, slot: PacketRef, fragment: &Fragment) -> Option<()> {
        let &Fragment { place, header, body, .. } = fragment;
        let view = self.packets.view();
        let start = view.locate(slot)?;
        if place.start == 0 {
            view.segment.write(start + BODY_AT - header.len(), header).ok()?;
        }
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
        let congested = match entry.is_congested() {
            Ok(congested) => congested,
            Err(why) => {
                self.packets.free(slot);
                return Err(why);
            }
        };
        let head = self.finish_header(cx, packet, entry.key, header_len, congested);
        let arrival = head.and_then(|head| {
            let k = entry.key;
            let head = &head[..len.min(HEAD_LEN)];
            let (protocol, header_len) = family::transport(k.source, head, k.protocol, header_len)?;
            let transport = head.get(header_len..)?;
            let question = Question::new(k.source, k.destination, protocol, transport, len - header_len)?;
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

    /// Makes the stored header that of the whole packet; returns the packet's first bytes.
    fn finish_header(
        &self,
        cx: &Context,
        packet: PacketRef,
        key: Key,
        header_len: usize,
        congested: bool,
    ) -> Option<[u8; HEAD_LEN]> {
        let mut head = [0u8; HEAD_LEN];
        let n = head.len().min(packet.len as usize);
        self.read(cx.memory, packet, &mut head[..n])?;
        let header = head.get_mut(..header_len)?;
        if congested {
            family::set_congested(header);
        }
        family::make_whole(key.source, header, packet.len as usize)?;
        self.packets.write(packet, 0, header).then_some(head)
    }

    pub(crate) fn expire_reassembly(&mut self, cx: &mut Context, out: &mut Out) {
        while self.reassembly.deadline().is_some_and(|d| d <= cx.now) {
            let entry = self.reassembly.entries.remove(0);
            let Some(slot) = entry.slot else {
                continue;
            };
            cx.count(Counter::ReassemblyTimeouts);
            let Key { source, destination, protocol, .. } = entry.key;
            // If that has killed two predecessors, the datagram ends without a word.
            let may_tell = self.enter(cx, note::fragments(source, destination, protocol));
            // RFC 792: only if the first fragment has come, since it is what is quoted.
            if let (Some(header_len), false, true) = (entry.header_len, entry.group, may_tell) {
                let first = entry.ranges.first().map_or(0, |(_, end)| *end);
                let packet = PacketRef {
                    offset: (BODY_AT - header_len) as u32,
                    len: (header_len + first) as u32,
                    ..slot
                };
                self.send_error(cx, Report::ReassemblyTimeout, packet, entry.key.zone(), out);
            }
            self.packets.free(slot);
        }
    }
}

//! Explicit congestion notification (RFC 3168): routers mark packets when they are congested, the receiver echoes the marks,
//! and the sender reduces its window as if a packet had been lost.
//!
//! By default it is agreed on when the peer asks, as with Linux's `tcp_ecn=2`, and our own SYNs do not ask. The agreement,
//! and what the peer is still to be told, lie in the block's flags, so a successor continues with them.

use super::ack::Heard;
use super::asking::{Ecn, asks};
use super::block::{State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::recovery::Phase;
use super::segment::Segment;
use eft_base::wire::{ECN_EXPERIENCED, TCP_ACK, TCP_CWR, TCP_ECE, TCP_SYN};
use eft_component::Context;

impl Connection<'_> {
    /// A SYN for a listener may ask for it.
    pub(super) fn agree_on_marks(&mut self, ecn: Ecn, syn: &Segment) {
        if ecn.agrees(syn) {
            self.block.set(bit::ECN);
        }
    }

    /// Makes our SYN ask for it.
    pub(super) fn ask_for_marks(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ask {
            self.block.set(bit::ECN);
        }
    }

    /// No answer came to a SYN that asked, perhaps for that reason: the next one does not ask (RFC 3168 §6.1.1.1).
    pub(super) fn stop_asking(&mut self) {
        self.block.clear(bit::ECN);
    }

    /// Takes the peer's answer to a SYN that asked: a SYN-ACK with ECE alone agrees; a SYN of its own may ask, too (RFC 3168
    /// §6.1.1).
    pub(super) fn take_answer(&mut self, segment: &Segment) {
        let agrees = match segment.has(TCP_ACK) {
            true => segment.flags & (TCP_ECE | TCP_CWR) == TCP_ECE,
            false => asks(segment),
        };
        if !agrees {
            self.block.clear(bit::ECN);
        }
    }

    /// The SYN came again: if it no longer asks, the first one's request is void (RFC 3168 §6.1.1).
    pub(super) fn doubt_marks(&mut self, syn: &Segment) {
        if !asks(syn) {
            self.block.clear(bit::ECN);
        }
    }

    /// The flags of a SYN or SYN-ACK (RFC 3168 §6.1.1).
    pub(super) fn syn_flags(&self) -> u8 {
        match (self.block.state() == State::SynSent, self.block.has(bit::ECN)) {
            (true, true) => TCP_SYN | TCP_ECE | TCP_CWR,
            (true, false) => TCP_SYN,
            (false, true) => TCP_SYN | TCP_ACK | TCP_ECE,
            (false, false) => TCP_SYN | TCP_ACK,
        }
    }

    /// The flags of every segment that acknowledges, with the echo of a mark (RFC 3168 §6.1.3).
    pub(super) fn acknowledging_flags(&self) -> u8 {
        TCP_ACK | if self.block.has(bit::ECN | bit::ECN_ECHO) { TCP_ECE } else { 0 }
    }

    /// Handles the mark and CWR of an acceptable segment with text (RFC 3168 §6.1.3). A segment with CWR may itself be
    /// marked.
    pub(super) fn take_marks(&mut self, cx: &Context, segment: &Segment) {
        let block = &mut *self.block;
        if !block.has(bit::ECN) || segment.len == 0 {
            return;
        }
        if segment.ecn != 0 {
            block.set(bit::ECN_SEEN);
        }
        if segment.has(TCP_CWR) {
            block.clear(bit::ECN_ECHO);
        }
        if segment.ecn != ECN_EXPERIENCED {
            return;
        }
        cx.count(Counter::MarksReceived);
        if !block.has(bit::ECN_ECHO) {
            block.set(bit::ECN_ECHO);
            // The sender should learn of it soon.
            self.acknowledge_quickly();
        }
    }

    /// Whether the peer echoes a mark on a segment of ours.
    pub(super) fn is_echo(&self, segment: &Segment) -> bool {
        self.block.has(bit::ECN) && segment.has(TCP_ECE)
    }

    /// Whether data at `offset` were sent before the window was reduced: a mark on them, or their loss, reduces it no further
    /// (RFC 3168 §6.1.2).
    pub(super) fn is_reduced_for(&self, offset: u64) -> bool {
        self.live.reduced_at.is_some_and(|point| offset < point)
    }

    /// The window was reduced, for whatever reason: the peer is told with the next new data, and it counts until that is
    /// acknowledged (RFC 3168 §6.1.2).
    pub(super) fn note_reduction(&mut self) {
        if self.block.has(bit::ECN) {
            self.block.set(bit::ECN_REDUCED);
            self.live.reduced_at = Some(self.block.snd_nxt);
        }
    }

    /// Reduces the window for an echo, once in a window of data. True if it is an echo, which does not let the window grow
    /// (RFC 3168 §6.1.2).
    pub(super) fn take_echo(&mut self, cx: &Context, segment: &Segment, heard: &Heard) -> bool {
        let una = self.block.snd_una;
        // The first new data announced the reduction: an echo after its acknowledgment is of a later mark.
        self.live.reduced_at = self.live.reduced_at.filter(|point| una <= *point);
        if !self.is_echo(segment) {
            return false;
        }
        let mss = self.block.segment_size();
        self.live.statistics.on_delivered_marked(heard.delivered.bytes, mss);
        if self.live.reduced_at.is_some() {
            return true;
        }
        if self.live.recovery.phase == Phase::Open {
            cx.count(Counter::MarkReductions);
            let congestion = &mut self.block.congestion;
            let flight_size = heard.flight_size.min(congestion.cwnd as u64) as u32;
            congestion.on_loss(flight_size, mss);
        }
        self.note_reduction();
        true
    }
}

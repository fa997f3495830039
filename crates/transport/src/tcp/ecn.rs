//! Explicit congestion notification (RFC 3168): routers mark packets that they would soon drop, the receiver echoes that, and
//! the sender reduces its window as if one had been lost.
//!
//! Unless it is configured otherwise it is agreed on when the peer asks, as with Linux's `tcp_ecn=2`, and our own SYNs do not
//! ask. What is agreed, and
//! what the peer is still to be told, lie in the block's flags, so a successor goes on with them.

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
    /// A listener's SYN may ask for it.
    pub(super) fn agree_on_marks(&mut self, ecn: Ecn, syn: &Segment) {
        if ecn.agrees(syn) {
            self.block.set(bit::ECN);
        }
    }

    /// Our SYN is to ask for it.
    pub(super) fn ask_for_marks(&mut self, ecn: Ecn) {
        if ecn == Ecn::Ask {
            self.block.set(bit::ECN);
        }
    }

    /// No answer came to a SYN that asked, and maybe for that reason: the next one does not (RFC 3168 §6.1.1.1).
    pub(super) fn stop_asking(&mut self) {
        self.block.clear(bit::ECN);
    }

    /// What the peer says to a SYN that asked: a SYN-ACK agrees with ECE alone; a SYN of its own asks, too (RFC 3168
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

    /// The SYN came again: one that does not ask any more takes back what the first asked for (RFC 3168 §6.1.1).
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

    /// What of an acceptable segment with text speaks of marks (RFC 3168 §6.1.3). One that says that the window was reduced
    /// may be marked again.
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
            // The sender should hear of it soon.
            self.acknowledge_quickly();
        }
    }

    /// The peer says that something of ours was marked.
    pub(super) fn is_echo(&self, segment: &Segment) -> bool {
        self.block.has(bit::ECN) && segment.has(TCP_ECE)
    }

    /// What is in flight was sent before the window was reduced: that it is marked or lost says nothing new (RFC 3168
    /// §6.1.2).
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

    /// Reduces the window for an echo, once in a window of data. True if it is an echo, by which the window does not grow
    /// (RFC 3168 §6.1.2).
    pub(super) fn take_echo(&mut self, cx: &Context, segment: &Segment, heard: &Heard) -> bool {
        let una = self.block.snd_una;
        // The first new data told of the reduction: an echo after its acknowledgment is of a mark since.
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

//! Explicit congestion notification (RFC 3168): routers mark packets when they are congested, the receiver echoes the marks,
//! and the sender reduces its window as if a packet had been lost.
//!
//! By default it is agreed on when the peer asks, as with Linux's `tcp_ecn=2`, and our own SYNs do not ask. The agreement,
//! and what the peer is still to be told, lie in the block's flags, so a successor continues with them.

use super::accurate;
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
        if ecn.agrees_accurately(syn) {
            self.begin_accurate(syn.ecn);
        } else if ecn.agrees(syn) {
            self.block.set(bit::ECN);
        }
    }

    /// Makes our SYN ask for it.
    pub(super) fn ask_for_marks(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::Accurate => self.block.set(bit::ACCURATE),
            Ecn::Ask | Ecn::AccurateAsk => self.block.set(bit::ECN),
            Ecn::Off | Ecn::Answer | Ecn::AccurateAnswer => {}
        }
    }

    /// No answer came to a SYN that asked, perhaps for that reason: the next one does not ask (RFC 3168 §6.1.1.1), or the one after
    /// it (RFC 9768 §3.1.4.1).
    pub(super) fn stop_asking(&mut self) {
        self.block.clear(bit::ECN);
        if self.block.backoff > 1 {
            self.end_accurate();
        }
    }

    /// Takes the peer's answer to a SYN that asked: a SYN-ACK with ECE alone agrees; a SYN of its own may ask, too (RFC 3168
    /// §6.1.1).
    pub(super) fn take_answer(&mut self, segment: &Segment) {
        if self.block.has(bit::ACCURATE) {
            return self.take_accurate_answer(segment);
        }
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
        if !accurate::asks(syn) {
            self.end_accurate();
        }
    }

    /// The flags of a SYN or SYN-ACK (RFC 3168 §6.1.1, RFC 9768 §3.1.1).
    pub(super) fn syn_flags(&self) -> u16 {
        let syn = self.block.state() == State::SynSent;
        let kind = if syn { TCP_SYN } else { TCP_SYN | TCP_ACK };
        let marks = match syn {
            true if self.block.has(bit::ACCURATE) => accurate::flags(accurate::ASKS),
            false if self.block.has(bit::ACCURATE) => accurate::flags(self.accurate_agreement()),
            true if self.block.has(bit::ECN) => u16::from(TCP_ECE | TCP_CWR),
            false if self.block.has(bit::ECN) => u16::from(TCP_ECE),
            _ => 0,
        };
        u16::from(kind) | marks
    }

    /// The flags of every segment that acknowledges, with the echo of a mark (RFC 3168 §6.1.3) or the count of marks (RFC 9768
    /// §3.2.2). `bare`: it has no data.
    pub(super) fn acknowledging_flags(&mut self, bare: bool) -> u16 {
        let echo = match self.block.has(bit::ACCURATE) {
            true => accurate::flags(self.accurate_field(bare)),
            false if self.block.has(bit::ECN | bit::ECN_ECHO) => TCP_ECE.into(),
            false => 0,
        };
        u16::from(TCP_ACK) | echo
    }

    /// Handles the mark and CWR of an acceptable segment with text (RFC 3168 §6.1.3). A segment with CWR may itself be
    /// marked.
    pub(super) fn take_marks(&mut self, cx: &Context, segment: &Segment) {
        if segment.ecn != 0 {
            self.live.statistics.on_received_markable(segment);
        }
        if self.block.has(bit::ACCURATE) {
            return self.count_marks(cx, segment);
        }
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
        }
        if self.block.hears_of_marks() {
            self.live.reduced_at = Some(self.block.snd_nxt);
        }
    }

    /// Reduces the window for an echo, once in a window of data. True if it is an echo, which does not let the window grow
    /// (RFC 3168 §6.1.2).
    pub(super) fn take_echo(&mut self, cx: &Context, segment: &Segment, heard: &Heard) -> bool {
        let una = self.block.snd_una;
        // The first new data announced the reduction: an echo after its acknowledgment is of a later mark.
        self.live.reduced_at = self.live.reduced_at.filter(|point| una <= *point);
        let mss = self.block.segment_size();
        let marked = match self.newly_marked(segment, heard) {
            0 if self.is_echo(segment) => heard.delivered.bytes,
            0 => return false,
            segments => segments * u64::from(mss),
        };
        self.live.statistics.on_delivered_marked(marked, mss);
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

//! Accurate ECN (RFC 9768): what a connection agrees on, counts and hears ([`super::accurate`] has the field and its meanings).

use super::accurate::{
    AGREES_TO_CLASSIC, Accurate, FIELD, FIRST, FIRST_MARKED, MARKS_MAX, is_mangled, marked, reflection,
};
use super::ack::Heard;
use super::block::bit;
use super::byte_counting::failure;
use super::connection::Connection;
use super::counters::Counter;
use super::live::due;
use super::segment::Segment;
use eft_base::wire::{ECN_EXPERIENCED, TCP_ACK};
use eft_component::Context;

impl Connection<'_> {
    /// Accurate feedback is agreed on; the handshake's packet from the peer came with these ECN bits.
    pub(super) fn begin_accurate(&mut self, ecn: u8) {
        self.block.clear(bit::ECN);
        self.block.set(bit::ACCURATE);
        self.block.set_count(if ecn == ECN_EXPERIENCED { FIRST_MARKED } else { FIRST });
        self.live.accurate = Accurate { reflection: Some(reflection(ecn)), ..Accurate::default() };
        self.begin_byte_counts();
    }

    /// No accurate feedback after all.
    pub(super) fn end_accurate(&mut self) {
        if self.block.has(bit::ACCURATE) {
            self.block.clear(bit::ACCURATE);
            self.block.set_count(0);
        }
    }

    /// Takes the answer to our SYN, which asked for accurate feedback (RFC 9768 §3.1.1, table 2).
    pub(super) fn take_accurate_answer(&mut self, segment: &Segment) {
        match segment.ace() {
            _ if !segment.has(TCP_ACK) => self.end_accurate(),
            0 | FIELD => self.end_accurate(),
            // The second is what RFC 3540 had, which some still answer.
            AGREES_TO_CLASSIC | 5 => {
                self.end_accurate();
                self.block.set(bit::ECN);
            }
            told => {
                self.begin_accurate(segment.ecn);
                // Bytes count from the handshake's end.
                self.live.statistics.on_received_markable(&Segment { len: 0, ..*segment });
                self.live.accurate.told =
                    Some(if told == reflection(ECN_EXPERIENCED) { FIRST_MARKED } else { FIRST });
                self.live.accurate.mangled = is_mangled(told);
                self.note_mangling();
                self.meet_option_of_handshake(segment, 2);
            }
        }
    }

    /// Takes the field of the segment that ends a handshake which the peer began (RFC 9768 §3.2.2.1, table 4).
    pub(super) fn take_reflection(&mut self, segment: &Segment) {
        if !self.block.has(bit::ACCURATE) {
            return;
        }
        let (bare, field) = (segment.len == 0 && segment.options.sack_count == 0, segment.ace());
        let accurate = &mut self.live.accurate;
        accurate.mangled = bare && is_mangled(field);
        accurate.told = Some(if bare && field == reflection(ECN_EXPERIENCED) { FIRST_MARKED } else { FIRST });
        accurate.reflects = bare;
        // Our SYN-ACK said it.
        accurate.reflection = None;
        self.note_mangling();
        self.meet_option_of_handshake(segment, 1);
    }

    fn note_mangling(&mut self) {
        if self.live.accurate.mangled {
            self.live.statistics.counted.accurate_failures |= failure::FIELD;
        }
    }

    /// The field of a SYN-ACK that agrees.
    pub(super) fn accurate_agreement(&self) -> u8 {
        // A successor does not know it any more; what a mark on a SYN means is little.
        self.live.accurate.reflection.unwrap_or(reflection(0))
    }

    /// The field of a segment; `bare`: it only acknowledges.
    pub(super) fn accurate_field(&mut self, bare: bool) -> u8 {
        let reflection = self.live.accurate.reflection.take().filter(|_| bare);
        self.live.accurate.unheard = 0;
        reflection.unwrap_or_else(|| self.block.count())
    }

    /// Whether data that are sent now may be marked.
    pub(super) fn may_be_marked(&self) -> bool {
        self.block.hears_of_marks() && !self.live.accurate.mangled
    }

    /// Counts the mark of an acceptable segment (RFC 9768 §3.2.2.2).
    pub(super) fn count_marks(&mut self, cx: &Context, segment: &Segment) {
        self.count_bytes(segment);
        let block = &mut *self.block;
        if segment.ecn != 0 {
            block.set(bit::ECN_SEEN);
        }
        if segment.ecn != ECN_EXPERIENCED {
            return;
        }
        cx.add(Counter::MarksReceived, u64::from(segment.count));
        let count = block.count().wrapping_add(segment.count as u8);
        block.set_count(count & FIELD);
        let accurate = &mut self.live.accurate;
        accurate.unheard = accurate.unheard.saturating_add(segment.count);
        if segment.len > 0 && accurate.unheard >= MARKS_MAX {
            self.mark(due::ACK);
        }
    }

    /// How many of our segments were marked since the peer told last, by an acknowledgment that tells something new, or whose timestamp
    /// is newer: others may have been overtaken (RFC 9768 §3.2.2.5.2). The second is how the peer's last counts are heard of where
    /// segments without room for them acknowledged all, as on Linux.
    pub(super) fn newly_marked(&mut self, segment: &Segment, heard: &Heard) -> u64 {
        let reflects = core::mem::take(&mut self.live.accurate.reflects);
        let newest = core::mem::take(&mut self.live.accurate.newest);
        let progress = heard.acked > 0 || heard.delivered.bytes > 0 || newest;
        if !self.block.has(bit::ACCURATE) || reflects || !progress || !self.block.state().is_synchronized() {
            return 0;
        }
        let field = segment.ace();
        // What SACK had reported before is acknowledged now, but not delivered again.
        let (all, mss) = (heard.delivered.bytes, u64::from(self.block.segment_size()));
        let fin = self.block.fin_acknowledged() && self.block.snd_una - heard.acked <= self.block.fin_at;
        let bytes = self.take_byte_counts(segment, all.saturating_sub(fin.into()));
        let bytes = bytes.map(|bytes| u64::from(bytes).div_ceil(mss));
        let accurate = &mut self.live.accurate;
        let Some(before) = accurate.told.replace(field).filter(|_| !accurate.mangled) else { return 0 };
        let delivered = all.div_ceil(mss);
        let marks = marked(before, field, delivered, bytes, accurate.mostly);
        accurate.mostly = 2 * marks > delivered;
        marks
    }
}

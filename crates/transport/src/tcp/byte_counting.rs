//! The bytes of marked packets (RFC 9768 §3.2.3): counts that a connection keeps and tells, and those that it is told
//! ([`super::byte_counts`] is the option).
//!
//! What came is durable, since the peer would take a count that begins anew for one that went round; what the peer told is not: the
//! next option tells it again. The option takes no room of data: it is in acknowledgments without data and in segments that are not
//! full. Where all that goes out is full, an acknowledgment of its own goes before it when the peer must hear of the counts.

use super::accurate::Accurate;
use super::block::bit;
use super::byte_counts::{ByteCounts, CE, LEN_MAX};
use super::connection::Connection;
use super::live::due;
use super::options::Builder;
use super::segment::Segment;
use eft_base::Instant;
use eft_base::wire::ECN_EXPERIENCED;

/// Options in a round trip, if there is something to acknowledge (RFC 9768 §3.2.3.3).
const IN_A_ROUND_TRIP: u32 = 3;
/// The peer hears of a count at least as often as it grows by 2²² bytes: it must not go round unseen (RFC 9768 §3.2.3.3).
const OFTEN_SHIFT: u32 = 22;
/// After so many bytes without an option a count may have gone round unseen (RFC 9768 §3.2.3.2.3).
const TOO_LATE: u64 = (1 << 23) - 1;

/// What has become of the peer's options, as Linux's `tcpi_accecn_opt_seen` has it.
pub(super) mod seen {
    pub const NONE: u16 = 0;
    pub const EMPTY: u16 = 1;
    pub const COUNTS: u16 = 2;
    pub const FAILED: u16 = 3;
}

/// Bits of what has failed, as in `tcpi_accecn_fail_mode`.
pub(super) mod failure {
    /// The ACE field does not come as it was sent.
    pub const FIELD: u16 = 2;
    /// Nor does the option.
    pub const OPTION: u16 = 8;
}

impl Connection<'_> {
    /// Accurate feedback is agreed on: counts begin. Of what an older version stored at their place nothing is left.
    pub(super) fn begin_byte_counts(&mut self) {
        if self.notes.bytes_by_code() != [0; 3] {
            self.notes.set_bytes_by_code([0; 3]);
        }
    }

    /// After a rebirth, when what was told of the connection is known again.
    pub(super) fn resume_byte_counts(&mut self) {
        let counted = &mut self.live.statistics.counted;
        if self.block.has(bit::ACCURATE) {
            counted.received_bytes_by_mark = self.notes.bytes_by_code();
            self.live.accurate.hears_options = matches!(counted.accurate_seen, seen::EMPTY | seen::COUNTS);
        }
    }

    /// Counts the text of an acceptable segment, and decides whether the peer is to hear of it (RFC 9768 §3.2.3.3).
    pub(super) fn count_bytes(&mut self, segment: &Segment) {
        if let Some(told) = &segment.options.byte_counts {
            self.meet_option(told);
        }
        let accurate = &mut self.live.accurate;
        let changed = segment.len > 0 && segment.ecn != accurate.last_code;
        if changed || segment.ecn == ECN_EXPERIENCED {
            // The second shows that the first was not the last of its kind.
            accurate.options_due = 2;
        }
        if segment.len == 0 {
            return;
        }
        accurate.last_code = segment.ecn;
        if let Some(at) = (segment.ecn as usize).checked_sub(1) {
            let mut bytes = self.notes.bytes_by_code();
            let before = bytes[at];
            bytes[at] = before.wrapping_add(segment.len);
            if (before ^ bytes[at]) >> OFTEN_SHIFT != 0 {
                accurate.options_due = accurate.options_due.max(1);
            }
            self.notes.set_bytes_by_code(bytes);
        }
        if changed {
            self.mark(due::ACK);
        }
    }

    /// Whether the peer shows that options get through: it has sent one (RFC 9768 §3.2.3.2.3).
    fn tells_byte_counts(&self) -> bool {
        self.block.has(bit::ACCURATE) && self.live.accurate.hears_options
    }

    /// Whether the next acknowledgment should have the option, whatever it costs.
    pub(super) fn owes_byte_counts(&self, now: Instant) -> bool {
        let Accurate { options_due, option_at, .. } = self.live.accurate;
        let silence = now.saturating_since(option_at).as_micros();
        self.tells_byte_counts()
            && (options_due > 0 || silence * u128::from(IN_A_ROUND_TRIP) >= self.block.rtt.srtt_us.into())
    }

    /// Whether an acknowledgment must go out before a segment with so many bytes, in which the option has no room: that segment would
    /// acknowledge what waits for its acknowledgment, due or not, and nothing would be left for one with the option.
    pub(super) fn owes_byte_counts_before(&self, now: Instant, payload: u64) -> bool {
        let acknowledges = self.live.is_due(due::ACK) || self.live.unacked_segments > 0;
        acknowledges && self.room_beside(payload) < LEN_MAX && self.owes_byte_counts(now)
    }

    /// Bytes that options may take beside a payload without making the packet larger than a full one.
    fn room_beside(&self, payload: u64) -> usize {
        u64::from(self.block.segment_size()).saturating_sub(payload) as usize
    }

    /// Adds the option to those of a segment with so many bytes and SACK blocks, if it has room.
    pub(super) fn add_byte_counts(
        &mut self,
        now: Instant,
        options: &mut Builder,
        payload: u64,
        blocks: usize,
    ) {
        if self.tells_byte_counts()
            && options.byte_counts(self.notes.bytes_by_code(), blocks, self.room_beside(payload))
        {
            let accurate = &mut self.live.accurate;
            accurate.options_due = accurate.options_due.saturating_sub(1);
            accurate.option_at = now;
        }
    }

    /// How many SACK blocks an acknowledgment may have: two have precedence (RFC 9768 §3.2.3.3), others wait for a turn in which
    /// the counts are not owed.
    pub(super) fn sack_blocks_beside_counts(&self, now: Instant) -> usize {
        if self.owes_byte_counts(now) { 2 } else { usize::MAX }
    }

    /// Notes that an option came, and what the first one is worth.
    pub(super) fn meet_option(&mut self, told: &ByteCounts) {
        let counted = &mut self.live.statistics.counted;
        self.live.accurate.hears_options = true;
        if counted.accurate_seen >= seen::COUNTS {
            return;
        }
        counted.accurate_seen = match told.is_empty() {
            true => seen::EMPTY,
            false if told.is_cleared() => seen::FAILED,
            false => seen::COUNTS,
        };
        if counted.accurate_seen == seen::FAILED {
            counted.accurate_failures |= failure::OPTION;
        }
    }

    /// The option of the handshake: the peer's first, or none. The next `owed` acknowledgments have ours.
    pub(super) fn meet_option_of_handshake(&mut self, segment: &Segment, owed: u8) {
        if let Some(told) = &segment.options.byte_counts {
            self.meet_option(told);
            self.live.accurate.options_due = owed;
        }
    }

    /// Takes the counts of an acknowledgment that tells something new. Without an option, what was `delivered` counts for the code that
    /// grew alone before, as on Linux. Returns the bytes that were marked, if that is certain.
    pub(super) fn take_byte_counts(&mut self, segment: &Segment, delivered: u64) -> Option<u32> {
        let counted = &mut self.live.statistics.counted;
        let is_missing = segment.options.byte_counts.is_none() && counted.accurate_seen == seen::NONE;
        if is_missing && counted.bytes_sent >= TOO_LATE {
            counted.accurate_seen = seen::FAILED;
            counted.accurate_failures |= failure::OPTION;
        }
        let accurate = &mut self.live.accurate;
        if counted.accurate_failures & failure::OPTION != 0 || counted.accurate_seen == seen::NONE {
            return None;
        }
        let bytes = &mut counted.delivered_bytes_by_mark;
        let (marked, alone) = (bytes[CE], accurate.alone);
        let tells = segment.options.byte_counts.is_some_and(|told| told.get(CE).is_some());
        let goes_on = core::mem::replace(&mut accurate.told_bytes, tells) && tells;
        let Some(told) = &segment.options.byte_counts else {
            let at = alone?;
            bytes[at] = bytes[at].wrapping_add(delivered as u32);
            return Some(bytes[CE].wrapping_sub(marked));
        };
        let growth: [i32; 3] = core::array::from_fn(|at| told.growth(at, bytes[at]));
        for (bytes, grown) in bytes.iter_mut().zip(growth) {
            *bytes = bytes.wrapping_add_signed(grown);
        }
        let mut others = (0..3).filter(|at| growth[*at] != 0 && Some(*at) != alone);
        let another = others.next();
        let is_clear = others.next().is_none() && growth.iter().all(|grown| *grown >= 0);
        accurate.alone = if is_clear { another.or(alone) } else { None };
        // From one option to the next nothing is a guess.
        (growth[CE] >= 0 && (goes_on || is_clear && alone.is_some())).then(|| bytes[CE].wrapping_sub(marked))
    }
}

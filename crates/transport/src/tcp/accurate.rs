//! Accurate ECN (RFC 9768): the receiver counts marked packets, and the three flags that RFC 3168 has for ECN, the ACE field, tell
//! the count's last bits in every segment, so that the sender knows how many were marked, and not only that some were.
//!
//! A connection has [`bit::ACCURATE`] or [`bit::ECN`], never both. The bits that say for RFC 3168 which flags go out are the count's
//! here: the peer hears of each mark once, also from a successor. What the peer counted is not durable: a successor goes by the
//! next field that comes. What a connection does with it is in [`super::counting`], and
//! with the option that tells of bytes (§3.2.3) in [`super::byte_counting`].

use super::block::{Block, bit};
use super::segment::Segment;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_SYN};

/// The ACE field, as its bits are named in RFC 9768 §2: AE, CWR, ECE.
const AE: u8 = 4;
const CWR: u8 = 2;
const ECE: u8 = 1;
pub(super) const FIELD: u8 = AE | CWR | ECE;
/// A SYN that asks for accurate feedback (RFC 9768 §3.1.1).
pub(super) const ASKS: u8 = AE | CWR | ECE;
/// What a SYN-ACK says that agrees to RFC 3168 alone.
pub(super) const AGREES_TO_CLASSIC: u8 = ECE;
/// Counts begin here, so that a field that something on the way clears is noticed (RFC 9768 §3.2.1).
pub(super) const FIRST: u8 = 5;
/// The same if the handshake's packet was marked.
pub(super) const FIRST_MARKED: u8 = 6;
/// Marked segments after which the peer hears of them at once (RFC 9768 §3.2.2.5.1).
pub(super) const MARKS_MAX: u32 = 2;

/// What is known of a connection's marks besides the count that the block has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accurate {
    /// What the peer told last; nothing yet after a rebirth.
    pub told: Option<u8>,
    /// What the next segment without data says of the packet of the handshake that it answers.
    pub reflection: Option<u8>,
    /// The segment that is being received ends the handshake: its field is no count.
    pub reflects: bool,
    /// Its timestamp is newer than all before it.
    pub newest: bool,
    /// Marked segments of which the peer has not heard.
    pub unheard: u32,
    /// Most of the segments that were delivered last were marked.
    pub mostly: bool,
    /// Something on the way changes the field, or the ECN field of IP: nothing is sent that can be marked.
    pub mangled: bool,
    /// The peer has sent the option of RFC 9768 §3.2.3.
    pub hears_options: bool,
    /// The ECN field's code of the last packet that brought text.
    pub last_code: u8,
    /// Acknowledgments that must have our option.
    pub options_due: u8,
    /// When it was sent last.
    pub option_at: Instant,
    /// The only count of bytes that grew lately, as the peer tells.
    pub alone: Option<usize>,
    /// The last acknowledgment that told something new had the count of marked bytes.
    pub told_bytes: bool,
}

/// What the field says of the ECN bits of the SYN or SYN-ACK that is answered (RFC 9768 §3.1.1, §3.2.2.1).
pub(super) fn reflection(ecn: u8) -> u8 {
    match ecn {
        0 => CWR,
        1 => CWR | ECE,
        2 => AE,
        _ => AE | CWR,
    }
}

/// Whether the handshake's field says that our packet, which cannot be marked, came with another code, or is 0, which nobody sends (RFC
/// 9768 §3.2.2.3, §3.2.2.4). Three values are for later use.
pub(super) fn is_mangled(field: u8) -> bool {
    matches!(field, 0 | 3 | 4 | 6)
}

/// How many of `delivered` segments were marked, by the fields before and now. If more were delivered than the field tells apart,
/// the count may have gone round. How often, the bytes say that were marked, in segments, where they are known (appendix A.2.2); else
/// that is assumed while most segments are marked, and else not, since a receiver tells of every second mark at once (RFC 9768
/// §3.2.2.5.2, appendix A.1).
pub(super) fn marked(before: u8, now: u8, delivered: u64, bytes: Option<u64>, mostly: bool) -> u64 {
    let field = u64::from(FIELD);
    let least = u64::from(now.wrapping_sub(before)) & field;
    if delivered <= field {
        return least;
    }
    let most = delivered - (delivered.wrapping_sub(least) & field);
    match bytes {
        // As often as comes closest.
        Some(segments) => (least + ((segments.saturating_sub(least) + field.div_ceil(2)) & !field)).min(most),
        None if mostly => most,
        None => least,
    }
}

impl Block {
    /// Whether new data may be marked on their way, and the peer tells of it.
    pub(super) fn hears_of_marks(&self) -> bool {
        self.flags & (bit::ECN | bit::ACCURATE) != 0
    }

    /// The last bits of the count of marked packets.
    pub(super) fn count(&self) -> u8 {
        (self.has(bit::ACCURATE_AE) as u8) << 2
            | (self.has(bit::ECN_REDUCED) as u8) << 1
            | self.has(bit::ECN_ECHO) as u8
    }

    pub(super) fn set_count(&mut self, count: u8) {
        self.clear(bit::ACCURATE_AE | bit::ECN_REDUCED | bit::ECN_ECHO);
        let bits = [(AE, bit::ACCURATE_AE), (CWR, bit::ECN_REDUCED), (ECE, bit::ECN_ECHO)];
        bits.into_iter().filter(|(of_count, _)| count & of_count != 0).for_each(|(_, bits)| self.set(bits));
    }
}

/// The field as flags of a header, AE above the eight.
pub(super) fn flags(field: u8) -> u16 {
    u16::from(field) << 6
}

/// Whether a SYN asks for accurate feedback: by all three flags, or by a combination that means nothing yet (RFC 9768 §3.1.3).
pub(super) fn asks(segment: &Segment) -> bool {
    segment.has(TCP_SYN) && !segment.has(TCP_ACK) && !matches!(segment.ace(), 0 | 3)
}

#[cfg(test)]
mod tests;

//! Packets that have killed two lives: each is recorded in the [docket](eft_arena::docket) before it is handled, and a condemned one is
//! dropped. A packet that waits for a verdict is recorded once more when that has come.
//!
//! The docket is all that ip has of durable memory.

use crate::engine::Ip;
use crate::pending::Transmission;
use alloc::string::String;
use eft_arena::docket::{self, BEHIND, Kind, Note};
use eft_base::{PacketRef, WireAddress};
use eft_channel::Segment;
use eft_messages::nic::FrameDescriptor;
use eft_messages::transport::SendDescriptor;

/// The longest IP header of version 4, and what counts behind it. That of version 6 is shorter.
const KNOWN_MAX: usize = 60 + BEHIND;

/// The packet that ip handled when it died, for people.
pub fn running_input(docket: &Segment) -> Option<String> {
    docket::running_input(docket, |_| None)
}

/// A packet on its way out, by its destination, the begin of its transport's header, and where its payload lies, which stays the same
/// when a transport asks again.
fn outgoing(destination: WireAddress, header: &[u8], payload: &[PacketRef]) -> Note {
    let mut known = [0; BEHIND];
    let len = header.len().min(BEHIND);
    known[..len].copy_from_slice(&header[..len]);
    let [to, header] = [destination.0, known].map(u128::from_le_bytes);
    let payload = payload.first().copied().unwrap_or_default();
    let place = u64::from(payload.slot) << 32 | u64::from(payload.offset);
    let halves = |n: u128| [n as u64, (n >> 64) as u64];
    let ([net, host], [ports, rest]) = (halves(to), halves(header));
    Note::alone(Kind::Send, &[net, host, ports, rest, place, payload.len.into()])
}

impl Ip {
    /// Records that a packet that came in, and begins with `head`, is handled from now on. False: it has killed two predecessors.
    pub(crate) fn enter_arrival(&self, head: &[u8]) -> bool {
        self.docket.enter(Note::packet(&head[..head.len().min(KNOWN_MAX)]))
    }

    /// The same for a packet that a transport sends.
    pub(crate) fn enter_send(&self, d: &SendDescriptor) -> bool {
        let (header, payload) = (&d.header[..d.header_len.into()], &d.payload[..d.payload_count.into()]);
        self.docket.enter(outgoing(d.destination, header, payload))
    }

    /// The same when its verdict has come.
    pub(crate) fn enter_judged_send(&self, t: &Transmission, d: &FrameDescriptor) -> bool {
        let header = d.header.get(d.checksum_start.into()..d.header_len.into()).unwrap_or_default();
        let payload = d.payload.get(..d.payload_count.into()).unwrap_or_default();
        self.docket.enter(outgoing(t.question.destination.into(), header, payload))
    }
}

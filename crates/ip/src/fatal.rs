//! Inputs that have killed two lives: each is recorded in the [docket](eft_arena::docket) before it runs, and a condemned one does
//! not run. A packet is dropped; one that waits for a verdict is recorded once more when that has come. What is done in place of
//! another input is said where it would run.
//!
//! The docket is all that ip has of durable memory.

use crate::counters::Counter;
use crate::engine::Ip;
use crate::note::{outgoing, whose};
use crate::pending::Transmission;
use alloc::string::String;
use eft_arena::docket::{self, BEHIND, Note};
use eft_base::PacketRef;
use eft_channel::Segment;
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;
use eft_messages::transport::SendDescriptor;

/// The longest IP header of version 4, and what counts behind it. That of version 6 is shorter.
const KNOWN_MAX: usize = 60 + BEHIND;

/// What ip handled when it died, for people.
pub fn running_input(docket: &Segment) -> Option<String> {
    docket::running_input(docket, |number| whose(number).map(String::from))
}

impl Ip {
    /// Records that an input runs from now on. False: it has killed two predecessors.
    pub(crate) fn enter(&self, cx: &Context, note: Note) -> bool {
        let runs = self.docket.enter(note);
        cx.add(Counter::DropFatal, !runs as u64);
        runs
    }

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

    /// The same for a packet that a transport had got, and may not have given back.
    pub(crate) fn enter_given(&self, cx: &Context, packet: PacketRef) -> bool {
        let mut head = [0; KNOWN_MAX];
        let head = self.read_head(cx.memory, packet, &mut head).unwrap_or_default();
        self.enter(cx, Note::packet(head))
    }
}

//! The queues between servers, made of the segments that the supervisor provides.

use super::QUEUE_LINES;
use crate::Result;
use eft_channel::notify::Doorbell;
use eft_channel::queue::{Inspection, Line, Position};
use eft_channel::status::Status;
use eft_channel::{Consumer, Producer, Segment, Shared};
use eft_component::Port;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;

fn lines(s: &Segment) -> Result<Shared<[Line]>> {
    // Only the supervisor, which made and sealed the segments, chooses these sizes.
    let count = (s.len() - QUEUE_LINES) / size_of::<Line>();
    // SAFETY: Line is made of atomics.
    unsafe { s.shared_slice::<Line>(QUEUE_LINES, count) }
        .map_err(|_| crate::Error::Protocol("bad queue segment".into()))
}

fn position(s: &Segment) -> Result<Shared<Position>> {
    // SAFETY: Position is one atomic.
    unsafe { s.shared::<Position>(0) }.map_err(|_| crate::Error::Protocol("bad position segment".into()))
}

/// A queue for a reader that takes nothing.
pub fn inspect_queue(written: &Segment, taken: &Segment) -> Result<Inspection> {
    Ok(Inspection::new(lines(written)?, position(taken)?))
}

/// What a server keeps of a neighbour beside its port.
pub struct Neighbour {
    pub eventfd: OwnedFd,
    /// The number of the memory of its queue.
    pub queue: u64,
    pub status: Status,
}

pub fn make_port(
    peer: ComponentId,
    ours: &Segment,
    theirs: &Segment,
    their_position: &Segment,
    our_position: &Segment,
    status: &Status,
) -> Result<Port> {
    let bad = |_| crate::Error::Protocol(format!("queue with {peer}: bad segment"));
    // SAFETY: Doorbell is one atomic.
    let bell = |s: &Segment| unsafe { s.shared::<Doorbell>(0) }.map_err(bad);
    Ok(Port {
        peer,
        producer: Producer::new(lines(ours)?, position(their_position)?),
        consumer: Consumer::new(lines(theirs)?, position(our_position)?),
        doorbell: bell(ours)?,
        incoming: bell(theirs)?,
        peer_state: status.state(),
        same_thread: false,
    })
}

//! Queues between two servers, as the supervisor creates them.

use eft_channel::notify::Doorbell;
use eft_channel::queue::{Inspection, Line, Position, queue};
use eft_channel::status::Status;
use eft_channel::{Segment, Shared};
use eft_component::Port;
use eft_messages::ComponentId;
use std::sync::atomic::Ordering;

/// A queue's sequence numbers, or its reader's position, and the component that writes them.
pub struct Numbers {
    pub writer: ComponentId,
    pub reader: ComponentId,
    segment: Segment,
    /// Others' view of the queue; only with the sequence numbers, which the queue's writer writes.
    pub queue: Option<Inspection>,
    /// Bytes from one number to the next.
    stride: usize,
}

impl Numbers {
    pub fn count(&self) -> usize {
        self.segment.len() / self.stride
    }

    /// Flips a bit of one of them.
    pub fn flip(&self, number: usize, bit: u32) {
        let word = self.segment.atomic_u64(number * self.stride).expect("an aligned word");
        word.fetch_xor(1 << bit, Ordering::Relaxed);
    }
}

/// One direction: a fresh queue, and its numbers.
fn direction(
    from: ComponentId,
    to: ComponentId,
    capacity: usize,
) -> (eft_channel::Producer, eft_channel::Consumer, [Numbers; 2]) {
    let (lines, position) =
        (Segment::heap(capacity * size_of::<Line>()), Segment::heap(size_of::<Position>()));
    // SAFETY: both are made of atomics.
    let shared = unsafe { (lines.shared_slice::<Line>(0, capacity), position.shared::<Position>(0)) };
    let (Ok(at), Ok(taken)) = shared else { unreachable!("long enough and aligned") };
    let seen = Some(Inspection::new(at.clone(), taken.clone()));
    let (producer, consumer) = queue(at, taken);
    let written =
        Numbers { writer: from, reader: to, segment: lines, queue: seen, stride: size_of::<Line>() };
    let read =
        Numbers { writer: to, reader: from, segment: position, queue: None, stride: size_of::<Position>() };
    (producer, consumer, [written, read])
}

/// The two ports of a fresh edge between `a` and `b`.
pub fn edge(
    a: (ComponentId, &Status),
    b: (ComponentId, &Status),
    capacity: usize,
) -> (Port, Port, Vec<Numbers>) {
    let (to_b, from_a, numbers) = direction(a.0, b.0, capacity);
    let (to_a, from_b, others) = direction(b.0, a.0, capacity);
    let (bell_at_a, bell_at_b) = (Shared::heap(Doorbell::new()), Shared::heap(Doorbell::new()));
    let for_a = Port {
        peer: b.0,
        consumer: from_b,
        producer: to_b,
        doorbell: bell_at_b.clone(),
        peer_state: b.1.state(),
        incoming: bell_at_a.clone(),
        same_thread: false,
    };
    let for_b = Port {
        peer: a.0,
        consumer: from_a,
        producer: to_a,
        doorbell: bell_at_a,
        peer_state: a.1.state(),
        incoming: bell_at_b,
        same_thread: false,
    };
    (for_a, for_b, numbers.into_iter().chain(others).collect())
}

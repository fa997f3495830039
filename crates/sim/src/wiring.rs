//! Queues between two servers, as the supervisor lays them.

use eft_channel::Shared;
use eft_channel::notify::Doorbell;
use eft_channel::queue::{Line, Position, queue};
use eft_channel::status::Status;
use eft_component::Port;
use eft_messages::ComponentId;

/// The two ports of a fresh edge between `a` and `b`.
pub fn edge(a: (ComponentId, &Status), b: (ComponentId, &Status), capacity: usize) -> (Port, Port) {
    let lines = || Shared::heap_slice((0..capacity).map(|_| Line::empty()).collect());
    let (to_b, from_a) = queue(lines(), Shared::heap(Position::zero()));
    let (to_a, from_b) = queue(lines(), Shared::heap(Position::zero()));
    let (bell_at_a, bell_at_b) = (Shared::heap(Doorbell::new()), Shared::heap(Doorbell::new()));
    let for_a = Port {
        peer: b.0,
        consumer: from_b,
        producer: to_b,
        doorbell: bell_at_b.clone(),
        peer_state: b.1.state(),
        incoming: bell_at_a.clone(),
    };
    let for_b = Port {
        peer: a.0,
        consumer: from_a,
        producer: to_a,
        doorbell: bell_at_a,
        peer_state: a.1.state(),
        incoming: bell_at_b,
    };
    (for_a, for_b)
}

//! Whoever asks a served program: clients that go by numbers, on a host whose turns take no time.

use std::collections::VecDeque;

use eft_base::Instant;

use crate::device::WireFrame;
use crate::timed::peer::Peer;

/// What the host does at one moment.
#[derive(Debug, Default)]
pub struct Done {
    pub frames: VecDeque<WireFrame>,
    /// Clients that go on after their pause.
    pub ready: Vec<usize>,
}

pub trait Audience {
    fn peer(&self) -> &Peer;

    fn peer_mut(&mut self) -> &mut Peer;

    /// A client's time has come. Returns when it comes again, in picoseconds, if that is known.
    fn act(&mut self, now: Instant, client: usize) -> Option<u64>;

    /// Everybody runs until all wait.
    fn run(&mut self, now: Instant) -> Done;

    /// Of answers, that have come to each group of clients.
    fn bytes(&self) -> Vec<u64>;

    /// How long each answer took that has come whole, in nanoseconds, in their order.
    fn latencies(&self) -> &[u32];
}

//! The servers of one process, live: set-up by the supervisor, then the loop until they end. Most processes have one
//! server; a topology may put several into one (`process = "…"`).
//!
//! The loop: control messages if the supervisor rang, events from the surroundings (applications), one
//! [`Server::step`](eft_component::Server::step) of each server, and a sleep if there was nothing to do. The engines
//! make all decisions.

mod applications;
mod cores;
mod hosted;
mod live;
mod missing;
mod park;
mod process;
mod queues;
mod server;
mod setup;
mod solitude;
mod surroundings;
mod transport;

pub use applications::Applications;
pub use cores::CoresSurroundings;
pub use hosted::Hosted;
pub use process::run;
pub(crate) use queues::inspect_queue;
pub use server::host;
pub use setup::{ArenaMemory, Setup, Versions, prepare};
pub use surroundings::{Answering, Domains, Plain, Surroundings};
pub use transport::TransportSurroundings;

use crate::protocol::FromServer;
use crate::scm;
use eft_channel::queue::Line;
use std::os::fd::{AsFd, OwnedFd};

/// The offset of a queue segment's lines; its doorbell is at offset 0.
pub const QUEUE_LINES: usize = 4096;

/// The bytes of a queue segment of `capacity` messages.
pub fn queue_len(capacity: usize) -> usize {
    QUEUE_LINES + capacity * size_of::<Line>()
}

/// Sends a message to the supervisor. Waits while the queue is full; messages are few.
pub(crate) fn tell(control: &OwnedFd, message: &FromServer, fds: &[&OwnedFd]) {
    let fds: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
    let _ = scm::send(control, &crate::protocol::encode(message), &fds, false);
}

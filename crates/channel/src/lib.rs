//! Shared memory and atomics, all in one crate.
//!
//! Everything two processes share goes through this crate: [`segment::Segment`] (bytes), [`queue`] (fixed 64-byte messages),
//! [`pool`] (packet buffers), [`journal`] (which of them a dead owner had in use), [`notify`] (how a receiver sleeps and how it is woken), [`socket`] (the page and rings that an
//! application shares with its transport), [`account`] (where a component's time goes), [`dirty`] (which sockets have changes),
//! [`token`] (readiness mirrored in a kernel descriptor), [`sleepers`] (threads that sleep on a socket's page) and [`access`] (an observer of what a transport reads and writes in
//! programs' pages). The request database, which is private to its owner, lives in [`requests`].
//!
//! The peer is not trusted: no important index lives only in memory that a peer can write, and everything read from shared
//! memory is copied first and checked afterwards.
//!
//! Under `--cfg loom` the atomics are loom's and the same source files are model-checked; see
//! `tests/loom.rs`.

#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

#[cfg(not(loom))]
pub mod access;
#[cfg(not(loom))]
pub mod account;
pub(crate) mod atomic;
#[cfg(not(loom))]
pub mod dirty;
#[cfg(not(loom))]
pub mod journal;
pub mod lookers;
#[cfg(not(loom))]
pub mod memory;
pub mod notify;
pub mod phases;
#[cfg(not(loom))]
pub mod pool;
pub mod queue;
pub mod requests;
pub mod rounds;
#[cfg(not(loom))]
mod seen;
pub mod segment;
pub mod shared;
pub mod sleepers;
#[cfg(not(loom))]
pub mod socket;
#[cfg(not(loom))]
pub mod status;
pub mod token;

#[cfg(not(loom))]
pub use memory::{Memory, PoolView};
#[cfg(not(loom))]
pub use pool::Pool;
pub use queue::{Consumer, Line, Producer};
pub use requests::Requests;
#[cfg(not(loom))]
pub use seen::Seen;
pub use segment::{Copied, Margins, Segment};
pub use shared::Shared;

//! The sockets engine: the syscall server.
//!
//! It handles open, bind, listen, connect, accept's descriptor, and the death of an application.
//! Data never passes here. It guarantees that every request of an application gets exactly one reply
//! (accepted connections need none), that a domain cannot touch another's sockets, and that quotas
//! and privileged ports are enforced before a request reaches a transport. It never trusts a field
//! of a request.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod counters;
mod engine;
#[cfg(test)]
mod tests;

pub use engine::{In, Out, Sockets, SocketsConfig};

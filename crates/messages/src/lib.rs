//! The contracts: one file per edge between two components.
//!
//! Each file says who sends what to whom, who owns the buffers that are referred to, what happens
//! when the queue is full, and what a restart of either side means. A message is 56 bytes in a
//! queue line; decoding is total: any 56 bytes give a message or `None`, never a panic.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod codec;
pub mod control;
pub mod edges;
pub mod filter;
pub mod nic;
pub mod seal;
pub mod sockets;
pub mod transport;

pub use codec::Encoded;
pub use eft_base::{ComponentId, Role};

#[cfg(test)]
mod tests;

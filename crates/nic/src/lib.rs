//! The nic engine: one per device, between the device and ip.
//!
//! It moves frames and nothing else: it knows no protocol above Ethernet's length rules, except to cut
//! frames of several datagrams for devices that do not, and to merge segments of one connection that arrive together.
//! It guarantees that frames go out in the order of their `Send`s, that each `Send` is answered once,
//! and that a received frame stays in its slot until ip gives it back, even across a rebirth of ip.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod coalesce;
pub mod counters;
mod cut;
mod engine;
mod output;
mod received;
#[cfg(test)]
mod tests;

pub use counters::Counter;
pub use engine::Nic;
pub use output::ToIp;

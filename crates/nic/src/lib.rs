//! The nic engine: one per device, between the device and ip.
//!
//! It moves frames and nothing else: no protocol above Ethernet's length rules is known here. It
//! promises that frames go out in the order in which they were asked for, that each `Send` is
//! answered once, and that a received frame stays where it is until ip gives it back, also across a
//! rebirth of ip.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod counters;
mod engine;
mod output;
mod received;
#[cfg(test)]
mod tests;

pub use counters::Counter;
pub use engine::Nic;
pub use output::ToIp;

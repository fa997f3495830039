//! The transport engines: [`tcp`] and [`udp`].
//!
//! Both are pure ([`eft_component::Component`]): packets, time and randomness come in, messages and
//! effects go out. What must survive a crash lies in an arena as plain data without pointers;
//! everything else is derived from it when the engine is opened.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod addresses;
mod counters;
pub mod edge;
mod hash;
mod limits;
pub mod tcp;

pub use edge::{In, Out};

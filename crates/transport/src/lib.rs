//! The transport engines: [`tcp`] and [`udp`].
//!
//! Both are pure ([`eft_component::Component`]): packets, time and randomness come in, messages and
//! effects go out. What must survive a crash lies in an arena as plain data without pointers;
//! everything else is derived from it when the engine is opened.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod addresses;
mod domains;
pub mod edge;
mod free;
mod in_flight;
mod limits;
mod page;
mod requests;
mod routes;
pub mod tcp;
mod timers;
mod turns;
pub mod udp;

pub use edge::{In, Out};
pub use eft_arena::{FUSE_BURNT, Fuse, Refused};

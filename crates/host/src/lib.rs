//! The CPUs of the machine that we run on: what it tells about them, and what can be done to them and undone.
//!
//! [`sensors`] read, [`actuators`] change, and every change stands in the [`journal`] before it is made, so that whoever
//! comes after a crash can take it back; [`guests`] schedules virtual machines with both. Needs no stack: `eft cpu` and
//! `eft vm` work without one.

pub mod actuators;
pub mod clock;
pub mod error;
pub mod guests;
pub mod journal;
pub mod managed;
pub mod named_file;
pub mod sensors;

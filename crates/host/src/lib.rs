//! The CPUs of this machine: what can be read about them, and what can be changed and undone.
//!
//! [`sensors`] read, [`actuators`] change, and every change is in the [`journal`] before it is made, so that it can be
//! undone after a crash; [`guests`] schedules virtual machines with both. Needs no stack: `eft cpu` and
//! `eft vm` work without one.

pub mod actuators;
pub mod clock;
pub mod error;
pub mod guests;
pub mod journal;
pub mod managed;
pub mod named_file;
pub mod sensors;

//! Decisions about cores: observation, power model, plans, and the component that decides and applies them
//! ([`engine`]).
//!
//! Promises: pure decisions. Bytes and observations come in, decisions go out; no system call, no file, no clock.
//! Must never happen: a panic or unbounded work on bytes that firmware or a user wrote.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod applications;
pub mod attention;
pub mod counted;
pub mod description;
pub mod duty;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod gaps;
pub mod goal;
pub mod history;
pub mod hotplug;
pub mod indicators;
pub mod ladder;
pub mod member;
pub mod observation;
pub mod overlap;
pub mod park;
pub mod placement;
pub mod plan;
pub mod platform;
pub mod policy;
pub mod power;
pub mod profile;
pub mod sample;
pub mod scheduler;
pub mod speed;
pub mod throughput;
pub mod wanted;

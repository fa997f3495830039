//! What is known of cores and what to do with them: observation, core classes, ACPI tables, power model, plans.
//!
//! Promises: pure decisions. Bytes and observations come in, decisions go out; no system call, no file, no clock.
//! Must never happen: a panic or unbounded work on bytes that firmware or a user wrote.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod acpi;
pub mod class;
pub mod cpu_set;
pub mod description;
pub mod duty;
pub mod gaps;
pub mod hotplug;
pub mod machine;
pub mod park;
pub mod power;
pub mod sample;
pub mod speed;

pub use cpu_set::CpuSet;

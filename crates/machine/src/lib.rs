//! What a machine is: its CPUs, sets of them, and the classes of their cores.
//!
//! Promises: plain data and its notations, without decisions; the schedulers of components and of virtual CPUs build on
//! it.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod class;
pub mod cpu;
pub mod cpu_set;
pub mod frequency;
pub mod id;
pub mod power;
pub mod ppm;
pub mod share;
pub mod time;

pub use class::CoreClass;
pub use cpu::{Cache, Cpu, Frequency, IdleState, Machine, PState, PStateSource, SpeedSet, Throttle};
pub use cpu_set::CpuSet;
pub use frequency::KiloHertz;
pub use id::CpuId;
pub use power::{Microjoules, Milliwatts, Watts};
pub use ppm::Ppm;
pub use share::Share;
pub use time::{Latency, Microseconds, Nanoseconds};

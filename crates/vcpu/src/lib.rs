//! Asymmetry-aware scheduling of virtual CPUs: how much of the fast cores each gets, and when.
//!
//! After Kwon, Kim, Maeng and Huh, "Virtualizing Performance Asymmetric Multi-core Systems" (ISCA 2011). A world (the
//! live one or the simulated one) tells the [`scheduler`] how long each vCPU ran and waited, and what its counters
//! say; the scheduler answers which [`host::Group`] of cores each belongs to until the next turn.
//!
//! ```text
//! counters, 2 s of each 2.5 s ─▶ efficiency ─▶ deal ─▶ shares of each class ─▶ turns, 30 ms ─▶ group of each vCPU
//! run and wait times, 10 ms  ───────────────────────────────────────────────▶ promote ─────▶
//! ```
//!
//! Promises: pure decisions, integers only, the same answer for the same input in every world. No class is dealt out
//! beyond what its cores can give, and no vCPU is placed outside of the groups that it is allowed to use.
//! Must never happen: a panic on figures that a counter or a guest invented.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod adaptive;
pub mod deal;
pub mod efficiency;
pub mod error;
pub mod guest;
pub mod host;
pub mod options;
pub mod promote;
pub mod scheduler;
pub mod survey;
pub mod turns;

/// Shares and speeds are parts per million: of one core's time, or of the fastest class's speed. The bare number is for
/// arithmetic with signs or in 128 bits.
const PPM: u64 = eft_machine::Ppm::ALL.0;

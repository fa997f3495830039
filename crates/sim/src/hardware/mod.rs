//! The modelled machine that both tiers run on, in integers: time in picoseconds, clocks in kHz, power in milliwatts.
//!
//! Nothing here comes from the crates that the simulator judges; every figure comes from a machine's calibration file.

pub mod clock;
pub mod cores;
pub mod costs;
pub mod power;
pub mod thread;

pub use clock::{Clock, Work};
pub use cores::Cores;
pub use costs::Costs;
pub use thread::{Pipeline, Thread};

pub const PS_PER_NS: u64 = 1_000;
pub const PS_PER_MS: u64 = 1_000_000_000;

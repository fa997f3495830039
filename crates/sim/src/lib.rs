//! The simulated world: whole stacks of the real servers, in virtual time, from a seed.
//!
//! Two [`stack::Stack`]s run the production engines in the production loop over the production
//! queues, pools and doorbells; only memory is on the heap, time is a number, and the wire is a
//! [`link::Link`] that delays, loses, repeats, reorders and corrupts. A seeded schedule
//! ([`simulation`]) chooses who runs next and when a server dies; [`application::Application`]s move
//! bytes through socket pages as the shim does, and compare every one. A failure names its seed, and
//! the same seed repeats it.

pub mod application;
pub mod asymmetric;
pub mod batch;
pub mod bolt;
pub mod calibration;
pub mod chart;
pub mod datagrams;
pub mod device;
pub mod hardware;
pub mod hostile;
pub mod hunt;
pub mod judge;
pub mod link;
pub mod machine;
pub mod multiserver;
pub mod node;
pub mod parameter;
pub mod simulation;
pub mod sizes;
pub mod slower_is_faster;
pub mod stack;
pub mod sweep;
pub mod thesis;
pub mod timed;
pub mod trace;
pub mod web;
pub mod wiring;

pub use application::Application;
pub use datagrams::Datagrams;
pub use eft_harness::Plan;
pub use link::Conditions;
pub use simulation::{Faults, Simulation};
pub use stack::{Shape, Stack};

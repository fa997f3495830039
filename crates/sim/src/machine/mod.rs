//! A modelled machine with a modelled stack on it, for the scheduler's policies: they run on it unchanged, in virtual time,
//! from a seed.
//!
//! It is no packet simulator (that is the rest of this crate): traffic is a flow of messages, each component has a cost
//! per message, and a closed or open [load](load::Load) drives it. [`steady`] computes a plan's long-run throughput;
//! [`world`] moves there with a time constant, adds noise and the cost of each change, and produces the
//! [`Sample`](eft_cores::sample::Sample)s that live sensors would; [`host`] runs the `cores` component on it.
//!
//! What it takes from measurements: a wake across cores costs the sender 13 µs and comes 35 µs late; a switch on a
//! shared core takes 1.2 µs; a server alone on a core polls before it sleeps. Everything else is an assumption.

pub mod hardware;
pub mod host;
pub mod load;
pub mod others;
pub mod shape;
pub mod steady;
pub mod world;

pub use hardware::Hardware;
pub use host::Host;
pub use load::{Load, Schedule};
pub use others::Others;
pub use shape::Shape;
pub use world::World;

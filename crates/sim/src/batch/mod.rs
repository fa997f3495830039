//! Tier 2: a discrete-event queueing model of a stack that sends in bulk, some milliseconds a run.
//!
//! Servers take batches from their queues on the modelled [`hardware`](crate::hardware), poll, sleep, are woken and
//! switched; there are messages and bytes, but no packets' content. A batch is charged when it begins and takes effect
//! when it ends. Polling is computed: it ends at the next arrival or when the server has polled enough.

pub mod calibrated;
pub mod inbox;
pub mod machine;
pub mod network;
pub mod polling;
pub mod profile;
pub mod run;
pub mod server;
pub mod servers;
pub mod transport;

pub use profile::Profile;
pub use run::{Outcome, Seat, Setting, run};

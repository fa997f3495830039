//! Tier 1: the real engines, channels and server loop, in virtual time, on the modelled machine.
//!
//! A turn takes time: when it begins it sees what waits for its server, is charged for that, and is executed when it ends.
//! What it sends is charged after it, since only the engine knows. The [`Machine`](crate::batch::machine::Machine) polls,
//! sleeps, wakes and switches as it does for batches; programs only move cursors, and no payload is read. The peer is a
//! stack of the same servers whose turns take no time, and which polls as often as its interrupts let it.

pub mod bulk;
pub mod charge;
pub mod check;
pub mod frame;
pub mod peer;
pub mod policies;
pub mod programs;
pub mod run;
pub mod scaling;
pub mod servers;
mod telling;
pub mod trace;
pub mod web;
pub mod world;

pub use run::run;

//! Stacks with several instances of tcp on tier 1: how throughput grows with them, and which server ends it.
//!
//! Each server has a core of its own. The programs of the stack have others, which are never the bottleneck: one for each
//! connection. One listens on one port, and the peer's decides which instance has a connection. The peer's host
//! takes no time, beside its interrupts and the way there and back.

pub mod costs;
pub mod host;
pub mod load;
pub mod programs;
pub mod run;
pub mod traffic;

pub use load::Load;
pub use run::{Experiment, Outcome, Point};

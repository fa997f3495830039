//! "Bolt: Faster Reconfiguration in Operating Systems" (Panneerselvam et al., USENIX ATC 2015), modelled.
//!
//! The costs of single operations are input; the latency of sets of CPUs follows from who does what, and when.

pub mod claims;
pub mod machines;
pub mod operation;
pub mod reasons;
pub mod runs;

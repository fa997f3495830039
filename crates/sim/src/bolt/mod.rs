//! "Bolt: Faster Reconfiguration in Operating Systems" (Panneerselvam et al., USENIX ATC 2015), modelled.
//!
//! The costs of single operations are input; what sets of CPUs take follows from who does what, and when.

pub mod claims;
pub mod machines;
pub mod operation;
pub mod reasons;
pub mod runs;

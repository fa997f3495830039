//! Scheduling of Multiserver System Components on Over-provisioned Multicore Systems (Hruby, Bos, Tanenbaum), repeated.

pub mod claims;
pub mod models;
pub mod reasons;
pub mod runs;
pub mod tiers;

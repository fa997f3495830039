//! Efficient Use of Heterogeneous Multicore Architectures in Reliable Multiserver Systems (Priescu, master thesis), repeated.

pub mod claims;
pub mod models;
pub mod reasons;
pub mod runs;
pub mod tiers;

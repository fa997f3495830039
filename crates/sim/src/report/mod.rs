//! Reports on the papers' experiments.

pub mod asymmetric;
pub mod hosts;

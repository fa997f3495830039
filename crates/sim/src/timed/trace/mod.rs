//! A [trace](crate::trace) on tier 1: a program on the modelled machine is asked at the times at which a real one was.

pub mod clients;
mod flow;
pub mod replay;
pub mod run;

pub use replay::{Replay, TooFast};

//! Records what goes into an engine and what comes out, and checks that a replay gives the same.
//!
//! A [`recorder`] stands between a server and its engine, live or simulated; [`replay`] makes the calls again to a fresh
//! engine. This crate depends on no world: the recording side opens the file, and a replay needs no simulator.

pub mod durable;
pub mod file;
pub mod last_words;
pub mod life;
pub mod log;
pub mod makes;
pub mod recorder;
pub mod recording;
pub mod replay;
mod surroundings;

//! What goes into an engine and what comes out, written down, and the check that the same goes in and out again.
//!
//! A [`recorder`] stands between a server and its engine, live or simulated; [`replay`] makes the calls again to a fresh
//! engine. Promises: no world. Whoever records brings the file, whoever replays needs no simulator.

pub mod file;
pub mod makes;
pub mod recorder;
pub mod recording;
pub mod replay;

//! Traces of served programs: when clients opened connections, asked and closed, how much they asked and how much they got.
//!
//! The format is described in docs/traces.md. A trace comes from a file that anybody may have written, so it is parsed strictly.

mod capture;
mod connections;
mod parse;
mod tally;

pub use capture::CaptureError;
pub use connections::{Converted, convert};
pub use parse::{TraceError, Why};
pub use tally::Tally;

/// One thing that a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Open,
    /// It asks with so many bytes and gets so many.
    Ask(Exchange),
    Close,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    pub request_bytes: u64,
    pub answer_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Since the trace began, microseconds.
    pub at_us: u64,
    pub connection: u32,
    pub deed: Deed,
}

/// Steps in order of time, and how long it lasts. Only what [`Trace::parse`] accepts is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    steps: Vec<Step>,
    length_us: u64,
}

/// The first line of a file.
const HEAD: &str = "eft-trace 1";
/// A request fits into half of the smallest window that a modelled stack draws, so that it can come whole.
pub const REQUEST_BYTES_MAX: u64 = 262_144;
pub const ANSWER_BYTES_MAX: u64 = 100_000_000;
/// An hour.
pub const LENGTH_US_MAX: u64 = 3_600_000_000;
pub const STEPS_MAX: usize = 1_000_000;
/// Connections at once.
pub const OPEN_MAX: usize = 256;

impl Trace {
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub fn length_us(&self) -> u64 {
        self.length_us
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        writeln!(f, "{HEAD}")?;
        for Step { at_us, connection, deed } in &self.steps {
            match deed {
                Deed::Open => writeln!(f, "{at_us} {connection} open")?,
                Deed::Ask(asked) => {
                    writeln!(f, "{at_us} {connection} {} {}", asked.request_bytes, asked.answer_bytes)?
                }
                Deed::Close => writeln!(f, "{at_us} {connection} close")?,
            }
        }
        writeln!(f, "{} end", self.length_us)
    }
}

#[cfg(test)]
mod tests;

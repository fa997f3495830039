//! The live world: what a process of a stack needs of the kernel, and the processes themselves.
//!
//! [`serve`] runs one server's loop, [`supervisor`] the process that starts and watches them all,
//! [`devices`] are the network devices. What is decided comes from the engines and from `control`;
//! this crate carries it out.

pub mod capture;
pub mod custodian;
pub mod descriptors;
pub mod devices;
pub mod futex;
pub mod host;
pub mod inject;
pub mod io_uring;
pub mod keeper;
pub mod memory;
pub mod monitor;
pub mod operator;
pub mod protocol;
pub mod sandbox;
pub mod scm;
pub mod serve;
pub mod stack_sensor;
pub mod supervisor;
pub mod ticks;

use std::fmt;

/// What went wrong, in one line that says what to do.
#[derive(Debug)]
pub struct Error(pub String);

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(s: String) -> Self {
        Error(s)
    }
}

impl From<eft_host::error::Error> for Error {
    fn from(error: eft_host::error::Error) -> Self {
        Error(error.to_string())
    }
}

/// Adds what was being done to an error of the kernel.
pub trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|e| Error(format!("{what}: {e}")))
    }
}

//! What can go wrong with a stack's processes, by what a caller may do about it. Each is printed as its one line.

use std::fmt;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// The operating system refused a call, a file or a value.
    #[error("{0}")]
    System(String),
    /// It needs a right that this process does not have.
    #[error("{0}")]
    Denied(String),
    /// Another stack, program or command has it or is at work on it; the same may succeed later.
    #[error("{0}")]
    Busy(String),
    /// There is no such stack, component, interface, file, CPU or kernel feature.
    #[error("{0}")]
    Missing(String),
    /// A process that was there has ended.
    #[error("{0}")]
    Gone(String),
    /// A command line, a configuration or a request that means nothing here.
    #[error("{0}")]
    Invalid(String),
    /// Another process of a stack gave something that is of no use: it is of another version, or damaged.
    #[error("{0}")]
    Protocol(String),
    /// The stack answered that it must not or cannot be done.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Host(#[from] eft_host::error::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

/// `error!(Kind, "a line of {} words", 5)`.
macro_rules! error {
    ($kind:ident, $($line:tt)*) => {
        crate::error::Error::$kind(format!($($line)*))
    };
}

pub(crate) use error;

/// Adds what was being done to an error of the kernel.
pub trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|e| error!(System, "{what}: {e}"))
    }
}

//! What can go wrong with a stack's processes, sorted by what a caller can do about it. Each error is printed as one
//! line.

use std::fmt;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// The operating system refused a call, a file or a value.
    #[error("{0}")]
    System(String),
    /// The request needs a right that this process does not have.
    #[error("{0}")]
    Denied(String),
    /// Another stack, program or command uses it; the same request may succeed later.
    #[error("{0}")]
    Busy(String),
    /// There is no such stack, component, interface, file, CPU or kernel feature.
    #[error("{0}")]
    Missing(String),
    /// A process that was there has ended.
    #[error("{0}")]
    Gone(String),
    /// The command line, configuration or request makes no sense here.
    #[error("{0}")]
    Invalid(String),
    /// Another process of the stack sent something unusable: it has another version, or is damaged.
    #[error("{0}")]
    Protocol(String),
    /// The stack answered that the request is forbidden or impossible.
    #[error("{0}")]
    Refused(String),
    /// A stack's supervisor answers nothing. Once it is ended, another one adopts the servers.
    #[error(
        "stack `{stack}` does not answer: its supervisor (process {pid}) hangs; end it (kill -9 {pid}) and start `eft up` again, \
         or start it with --take-over: the servers run on, and connections go on"
    )]
    Hangs { stack: String, pid: i32 },
    #[error(transparent)]
    Host(#[from] eft_host::error::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Makes an error: `error!(Kind, "a line of {} words", 5)`.
macro_rules! error {
    ($kind:ident, $($line:tt)*) => {
        crate::error::Error::$kind(format!($($line)*))
    };
}

pub(crate) use error;

/// Adds to an error of the kernel what was attempted.
pub trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|e| error!(System, "{what}: {e}"))
    }
}

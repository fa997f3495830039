//! Errors about a host's CPUs, grouped by what a caller can do about them. Each is printed as one line.

use eft_cores::error::SchedulerError;
use eft_cores::park::{ParkError, UnknownBackEnd};
use eft_cores::plan::PlanError;
use eft_cores::speed::SpeedError;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// The operating system refused a call, a file or a value.
    #[error("{0}")]
    System(String),
    /// The operation needs a right that this process does not have.
    #[error("{0}")]
    Denied(String),
    /// Another eft, another program or the kernel is using it; a retry may succeed.
    #[error("{0}")]
    Busy(String),
    /// This machine or its kernel does not have it, or a process or CPU is not there.
    #[error("{0}")]
    Missing(String),
    /// A thread or a connection that was there has ended.
    #[error("{0}")]
    Gone(String),
    /// A text or a number has no valid meaning.
    #[error("{0}")]
    Invalid(String),
    /// The background process that holds the changes did not start, answer or end.
    #[error("{0}")]
    Holder(String),
    /// The machine's present state forbids the operation.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Park(#[from] ParkError),
    #[error(transparent)]
    UnknownBackEnd(#[from] UnknownBackEnd),
    #[error(transparent)]
    Speed(#[from] SpeedError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
}

/// `error!(Kind, "a line of {} words", 5)`.
macro_rules! error {
    ($kind:ident, $($line:tt)*) => {
        crate::error::Error::$kind(format!($($line)*))
    };
}

pub(crate) use error;

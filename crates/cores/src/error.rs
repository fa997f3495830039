//! Why a scheduler cannot begin, or not go on from a plan.

use alloc::string::{String, ToString};

use thiserror::Error;

use crate::description::DescriptionError;
use crate::observation::Doubt;
use crate::park::{ParkError, UnknownBackEnd};
use crate::plan::PlanError;
use crate::power::PowerError;
use crate::profile::file::FileError;
use crate::speed::SpeedError;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchedulerError {
    #[error("{count} components are more than {most}")]
    TooManyComponents { count: usize, most: usize },
    #[error("policy fixed decides nothing (adaptive and profile do)")]
    FixedDecidesNothing,
    #[error("no profile fits this stack and its managed CPUs; record some with `eft profile sweep`")]
    NoProfileFits,
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// For callers that only show the line.
macro_rules! shown_as_a_line {
    ($($error:ty),*) => {$(
        impl From<$error> for String {
            fn from(error: $error) -> String {
                error.to_string()
            }
        }
    )*};
}

shown_as_a_line!(
    SchedulerError,
    PlanError,
    ParkError,
    UnknownBackEnd,
    SpeedError,
    PowerError,
    DescriptionError,
    FileError,
    Doubt
);

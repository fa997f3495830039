//! Errors: why a scheduler cannot begin or resume a plan, and why the component cannot do what it was told.

use alloc::string::String;

use eft_component::scheduling::SchedulingError;
use thiserror::Error;

use crate::plan::PlanError;

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

/// Why the component cannot do what it was told.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EngineError {
    /// What the supervisor configured under this key.
    #[error("{key}: {why}")]
    Configuration { key: String, why: String },
    /// An operator's settings have an invalid value.
    #[error("{0}")]
    Question(String),
    /// The machine could not be read or changed: the host's message.
    #[error("{0}")]
    Host(String),
    #[error(transparent)]
    Settings(#[from] SchedulingError),
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
}

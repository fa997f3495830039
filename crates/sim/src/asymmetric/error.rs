//! Why an experiment on an asymmetric machine has no figures.

use eft_vcpu::error::SchedulerError;
use thiserror::Error;

use crate::calibration::CalibrationError;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The policy refuses the modelled machine.
    #[error(transparent)]
    Policy(#[from] SchedulerError),
    /// The programs of a run make no progress: the model is broken.
    #[error("{vms:?} with seed {seed} does not end")]
    Endless { vms: Vec<(String, usize)>, seed: u64 },
    /// An experiment has no such result.
    #[error("{experiment} has no {figure}")]
    NoFigure { experiment: String, figure: String },
}

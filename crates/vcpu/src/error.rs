//! Errors in an operator's options or in a host. Each is printed as one line.

use alloc::string::String;
use core::time::Duration;

use eft_machine::CpuSet;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum OptionsError {
    #[error(
        "'{0}' is no policy (amp-vm, amp-vcpu, amp-fair, amp-fair:R with R from 0 to 100, \
         adaptive-fair, or adaptive-fair:P with at most P percent slowdown)"
    )]
    UnknownPolicy(String),
    #[error("'{0}' is no score (predicted or paper)")]
    UnknownScore(String),
    #[error("a tick of {0:?} is shorter than 1 ms")]
    TickTooShort(Duration),
    #[error("the {longer} of {time:?} is shorter than the {shorter} of {least:?}")]
    Order { longer: &'static str, time: Duration, shorter: &'static str, least: Duration },
    #[error("an interval is an hour at most")]
    IntervalTooLong,
    #[error("the IPC threshold is 1000% at most")]
    ThresholdTooLarge,
}

/// What makes a host unusable.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum HostError {
    #[error("no CPU of {0} is online")]
    NothingOnline(CpuSet),
    #[error("a host has from 1 to {most} groups of cores, not {found}")]
    Groups { found: usize, most: usize },
    #[error("a host has from 1 to {most} core classes, not {found}")]
    Classes { found: usize, most: usize },
    #[error("core classes are ordered from the fastest, whose speed is 1, to the slowest")]
    ClassOrder,
    #[error("a class of second threads comes after that of their cores")]
    SiblingsFirst,
    #[error("a core class executes no instructions")]
    NoInstructions,
    #[error("{0} is no group of this host's cores")]
    BadGroup(String),
}

/// Why a scheduler cannot begin.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchedulerError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Options(#[from] OptionsError),
}

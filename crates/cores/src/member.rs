//! A component of a running stack as the scheduler is shown it, and where it may be put.

use alloc::string::String;

use eft_base::ComponentId;
use eft_machine::CpuId;
use serde::{Deserialize, Serialize};

/// Where a component runs and how it waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// `None`: anywhere.
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
}

/// A component as the scheduler is shown it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    pub peer: ComponentId,
    pub name: String,
    pub generation: u32,
    pub pid: Option<u32>,
    pub running: bool,
    pub cpu: Option<CpuId>,
    /// It was wished to be alone on its CPU.
    pub dedicated: bool,
    /// It is, and may poll.
    pub alone: bool,
    /// It was told to move and has not yet said that it has.
    pub moving: bool,
}

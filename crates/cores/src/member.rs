//! A component of a running stack as the scheduler sees it, and a place for it.

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

/// A component as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    pub peer: ComponentId,
    pub name: String,
    pub generation: u32,
    pub pid: Option<u32>,
    pub running: bool,
    pub cpu: Option<CpuId>,
    /// The plan wants it alone on its CPU.
    pub dedicated: bool,
    /// It is alone there, and may poll.
    pub alone: bool,
    /// It was told to move and has not yet confirmed it.
    pub moving: bool,
}

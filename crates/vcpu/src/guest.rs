//! Virtual machines and their vCPUs, or programs that are managed as if they were one.

use core::time::Duration;

use eft_machine::Ppm;
use serde::{Deserialize, Serialize};

use crate::host::GroupSet;

/// A vCPU's name for as long as it exists. Live: its thread id and start time, folded by the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VcpuId(pub u64);

/// A VM's name for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VmId(pub u64);

/// The default weight of a VM, as in Xen.
pub const WEIGHT: u32 = 256;

/// One vCPU as its operator configured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    pub id: VcpuId,
    pub vm: VmId,
    /// Of the whole VM, split over its active vCPUs.
    pub weight: u32,
    /// Core time that the whole VM may use, of one core; [`Ppm::MAX`] is no limit.
    pub cap: Ppm,
    /// Where the operator allows it to run.
    pub allowed: GroupSet,
}

impl Vcpu {
    pub fn new(id: u64, vm: u64) -> Self {
        Self { id: VcpuId(id), vm: VmId(vm), weight: WEIGHT, cap: Ppm::MAX, allowed: GroupSet::ALL }
    }
}

/// Counters of one vCPU on one kind of core, counted up since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub class: u8,
    /// Whether the core's other hardware thread was busy.
    pub sibling_busy: bool,
    pub instructions: u64,
    pub cycles: u64,
}

/// What a world saw of a vCPU, counted up since it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    pub id: VcpuId,
    pub ran: Duration,
    /// Runnable without a core.
    pub waited: Duration,
    /// `ran` by class, where the world knows it; empty where all that is known is where the vCPU was placed.
    pub by_class: &'a [Duration],
    /// Empty where there are no counters, and at ticks and turns, which do not read them.
    pub counts: &'a [Count],
    /// `counts` holds a progress counter of the guest's choice: rates compare between cores, not between guests.
    pub own_unit: bool,
}

//! Where a process runs.

use crate::{Doing, Result};
use eft_machine::CpuId;

/// Pins this thread to a CPU, or lets it run anywhere.
pub fn place(cpu: Option<CpuId>) -> Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    match cpu {
        Some(CpuId(n)) if (n as usize) < CpuSet::MAX_CPU => set.set(n as usize),
        Some(n) => return Err(crate::Error::Missing(format!("CPU {n} does not exist"))),
        None => (0..CpuSet::MAX_CPU).for_each(|n| set.set(n)),
    }
    sched_setaffinity(None, &set).doing(match cpu {
        Some(cpu) => format!("cannot run on CPU {cpu}"),
        None => "cannot run on any CPU".into(),
    })
}

//! Opening a hardware event: one counter of one PMU, on a thread or a CPU.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

use eft_machine::CpuId;

pub const CYCLES: u64 = 0;
pub const INSTRUCTIONS: u64 = 1;
pub const CACHE_REFERENCES: u64 = 2;
pub const CACHE_MISSES: u64 = 3;

const PERF_TYPE_HARDWARE: u32 = 0;
/// Where a hybrid kernel expects the PMU's type in `config`.
const PMU_TYPE_SHIFT: u32 = 32;
/// Time enabled, time running, one read for the whole group.
const READ_FORMAT: u64 = 1 | 2 | 8;
const EXCLUDE_HOST: u64 = 1 << 19;
const FLAG_CLOEXEC: u64 = 8;

/// `struct perf_event_attr` as far as `PERF_ATTR_SIZE_VER0` goes; the kernel takes what lies beyond as zero.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Thread(i32),
    Cpu(CpuId),
}

/// With `guest_only`, what a host does for its guest is left out. `pmu` is `None` where all cores have the same one; `leader`
/// is the descriptor of the event with which this one is read.
pub fn open(
    event: u64,
    pmu: Option<u32>,
    target: Target,
    leader: Option<i32>,
    guest_only: bool,
) -> io::Result<File> {
    let attributes = Attributes {
        kind: PERF_TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: u64::from(pmu.unwrap_or(0)) << PMU_TYPE_SHIFT | event,
        read_format: READ_FORMAT,
        flags: if guest_only { EXCLUDE_HOST } else { 0 },
        ..Attributes::default()
    };
    let (pid, cpu) = match target {
        Target::Thread(tid) => (tid, -1),
        Target::Cpu(cpu) => (-1, cpu.0 as i32),
    };
    let group = leader.unwrap_or(-1);
    // SAFETY: the attributes live through the call and state their own size; the kernel only reads them. The other
    // arguments are plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, pid, cpu, group, FLAG_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

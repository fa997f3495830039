//! Breaks a running server on purpose, from outside: as its debugger, and through the kernel's view of its memory.
//!
//! None of this code runs in a server or in the supervisor. The kernel allows it only to users who may debug the
//! process: its own user and root. Faults that the server's own loop must cause, such as a message that is lost or
//! arrives twice, are in [`eft_component::fault`].
//!
//! Promise: the process is released in any case, even if this one is killed meanwhile.

mod memory;
mod payload;
mod stack;
mod touched;
mod tracee;

use crate::error::error;
use crate::{Doing, Error, Result};
use eft_base::Random;
use eft_component::fault::Fault;
/// Failures of a server after which it is started again at once.
pub use eft_control::restart::FREE;
use memory::{Memory, Part};
pub use stack::{Injected, SUPERVISOR, in_stack};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tracee::Tracee;

/// A server executes fewer instructions than this, one by one, before it breaks, so that it breaks within a turn.
const STEPS_MAX: u64 = 3000;
/// And from where an input begins: fewer than an input takes.
const INPUT_STEPS_MAX: u64 = 500;
/// One of so many failures and loops is not put into an input.
const INPUTS_OF: u64 = 4;
/// How long a server is given for an input to come.
const INPUT_PATIENCE: Duration = Duration::from_secs(1);
/// How long it may sleep meanwhile. If it sleeps longer, it breaks where it sleeps.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long it is held back by executing its instructions one by one. Beside busy processes one of them can take 50 ms, and a
/// server that stands still for a minute loses connections before anything has broken.
const HOLD: Duration = Duration::from_millis(300);
/// How long a signal may take to end it, and how many more are sent at most.
const GRACE: Duration = Duration::from_millis(100);
const SIGNALS: usize = 20;

/// What breaks a server, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Kill,
    Segv,
    Abort,
    Loop,
    Null,
    /// As `Null`, and the death counts as the server's own failure.
    Failure,
    FlipCode,
    FlipStack,
    FlipHeap,
    FlipArena,
    FlipChannel,
    FlipPayload,
    Enomem,
    /// A fault that the server's own loop causes.
    Message(Fault),
}

/// Name, kind, explanation.
pub const KINDS: &[(&str, Kind, &str)] = &[
    ("kill", Kind::Kill, "SIGKILL"),
    ("segv", Kind::Segv, "SIGSEGV"),
    ("abort", Kind::Abort, "SIGABRT at a random instruction"),
    ("loop", Kind::Loop, "an endless loop at a random instruction"),
    ("null", Kind::Null, "a write through NULL at a random instruction"),
    ("failure", Kind::Failure, "as null, and it counts as the server's own failure"),
    ("flip-code", Kind::FlipCode, "a bit of the instruction that comes next"),
    ("flip-stack", Kind::FlipStack, "a bit of the stack in use"),
    ("flip-heap", Kind::FlipHeap, "a bit of the heap"),
    ("flip-arena", Kind::FlipArena, "a bit of the durable state"),
    ("flip-channel", Kind::FlipChannel, "a bit of a queue, position or status page that it writes"),
    (
        "flip-payload",
        Kind::FlipPayload,
        "a bit in each of 256 pages of the packet pools and of the programs' rings that it writes",
    ),
    ("flip-message", Kind::Message(Fault::FlipMessage), "a bit of a message"),
    ("delay", Kind::Message(Fault::Delay), "a message that comes 50 ms late"),
    ("repeat", Kind::Message(Fault::Repeat), "a message that comes twice"),
    ("leak", Kind::Message(Fault::Leak), "a buffer that is not given back"),
    ("double-free", Kind::Message(Fault::DoubleFree), "a buffer that is given back twice"),
    ("accuse", Kind::Message(Fault::Accuse), "neighbours are accused of nonsense"),
    ("enomem", Kind::Enomem, "ENOMEM from the next call that sends"),
];

impl Kind {
    pub fn parse(name: &str) -> Result<Kind> {
        let found = KINDS.iter().find(|(n, ..)| *n == name).map(|(_, kind, _)| *kind);
        let names = || KINDS.iter().map(|(n, ..)| *n).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| error!(Invalid, "there is no kind of fault `{name}`; there are: {}", names()))
    }

    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self).map_or("", |(name, ..)| name)
    }

    /// Whether the process cannot continue after it.
    pub fn is_deadly(self) -> bool {
        matches!(self, Kind::Kill | Kind::Segv | Kind::Abort | Kind::Loop | Kind::Null | Kind::Failure)
    }

    /// Whether the supervisor takes the death for the server's own failure: its restarts slow down, its successor is recorded, and
    /// the input that ran is blamed.
    pub fn counts(self) -> bool {
        self == Kind::Failure
    }

    /// Whether it can strike a supervisor, which takes no part in messages and writes neither durable state nor packets. Nobody
    /// counts a supervisor's failures.
    pub fn strikes_supervisor(self) -> bool {
        match self {
            Kind::Kill | Kind::Segv | Kind::Abort | Kind::Loop | Kind::Null => true,
            Kind::FlipCode | Kind::FlipStack | Kind::FlipHeap | Kind::Enomem => true,
            Kind::Failure | Kind::FlipArena | Kind::FlipChannel | Kind::FlipPayload | Kind::Message(_) => {
                false
            }
        }
    }

    /// The fault that the server's own loop causes, if it is one of these.
    pub fn fault(self) -> Option<Fault> {
        match self {
            Kind::Message(fault) => Some(fault),
            _ => None,
        }
    }
}

/// What was done to a process, and when: one that breaks at a random instruction is held back until it is there.
pub struct Strike {
    pub what: String,
    pub at: Instant,
    /// Of one that breaks at a random instruction: the begin of its durable state there, if it has one.
    pub durable: Option<Vec<u8>>,
}

impl Strike {
    fn now(what: String) -> Strike {
        Strike { what, at: Instant::now(), durable: None }
    }
}

/// Breaks a process with a fault of this kind.
pub fn inject(pid: u32, kind: Kind, random: &mut Random) -> Result<Strike> {
    let process = Process::open(pid)?;
    let signal = match kind {
        Kind::Kill => libc::SIGKILL,
        Kind::Segv => libc::SIGSEGV,
        Kind::FlipHeap => return flip(&process, Part::Heap, random).map(Strike::now),
        Kind::FlipArena => return flip(&process, Part::Arena, random).map(Strike::now),
        Kind::FlipChannel => return flip(&process, Part::Channel, random).map(Strike::now),
        Kind::Enomem => return fail_a_send(&process).map(Strike::now),
        Kind::FlipPayload => {
            return Err(Error::Invalid("its stack must say where payload lies".into()));
        }
        Kind::Message(_) => {
            return Err(Error::Invalid("its own loop does that, and not its debugger".into()));
        }
        Kind::Abort | Kind::Loop | Kind::Null | Kind::Failure | Kind::FlipCode | Kind::FlipStack => {
            return at_a_random_instruction(&process, kind, random);
        }
    };
    let strike = Strike::now(format!("signal {signal}"));
    process.signal(signal)?;
    for _ in 0..SIGNALS {
        if process.ends_within(GRACE) {
            break;
        }
        // A Rust program's handler of stack overflows takes the first SIGSEGV, and lets the next one kill.
        let _ = process.signal(signal);
    }
    Ok(strike)
}

/// A process, held by a handle, so that no other process of the same number is meant.
struct Process {
    pid: u32,
    handle: OwnedFd,
}

impl Process {
    fn open(pid: u32) -> Result<Process> {
        let number =
            rustix::process::Pid::from_raw(pid as i32).ok_or_else(|| Error::Missing("no process".into()))?;
        let handle =
            rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).doing("the process")?;
        Ok(Process { pid, handle })
    }

    fn ends_within(&self, limit: Duration) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.as_nanos() as _ };
        matches!(poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&limit)), Ok(1..))
    }

    fn signal(&self, signal: i32) -> Result<()> {
        use std::os::fd::AsRawFd;
        // SAFETY: plain numbers and no memory.
        let sent =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.handle.as_raw_fd(), signal, 0usize, 0) };
        if sent < 0 { Err(std::io::Error::last_os_error()).doing("cannot signal it") } else { Ok(()) }
    }
}

fn flip(process: &Process, part: Part, random: &mut Random) -> Result<String> {
    let memory = Memory::open(process.pid)?;
    let (name, address) = memory.pick(part, random)?;
    let before = memory.surroundings(address);
    memory.flip(address, random).map(|bit| {
        format!(
            "bit {bit} of byte {address:#x} of {name}, which held, as words from 32 bytes before: {before}"
        )
    })
}

/// Lets the process execute a random number of instructions, and breaks it there.
fn at_a_random_instruction(process: &Process, kind: Kind, random: &mut Random) -> Result<Strike> {
    let memory = Memory::open(process.pid)?;
    let mut tracee = Tracee::seize(process.pid)?;
    let done = match memory.docket() {
        // It looks for what an input leads to, and now and then for what happens between two.
        Some(docket) if matches!(kind, Kind::Failure | Kind::Loop) && random.below(INPUTS_OF) != 0 => {
            let named = tracee.run_to_write(docket, INPUT_PATIENCE, || memory.has_running())?;
            let steps = random.below(if named { INPUT_STEPS_MAX } else { STEPS_MAX });
            tracee.step(steps, PATIENCE, HOLD)?
        }
        _ => tracee.step(random.below(STEPS_MAX), PATIENCE, HOLD)?,
    };
    let (at, stack) = tracee.instruction_and_stack()?;
    let place = format!("at {}, {done} instructions on", memory.place(at));
    let (what, signal) = match kind {
        Kind::FlipCode => {
            let byte = at + random.below(tracee::INSTRUCTION);
            let bit = memory.flip(byte, random)?;
            (format!("bit {bit} of code byte {}, {done} instructions on", memory.place(byte)), 0)
        }
        Kind::FlipStack => {
            let byte = memory.pick_in_stack(stack, random)?;
            let bit = memory.flip(byte, random)?;
            let above = byte - stack;
            (format!("bit {bit} of stack byte {byte:#x}, {above} above its end, {done} instructions on"), 0)
        }
        Kind::Loop | Kind::Null | Kind::Failure => {
            let code = if kind == Kind::Loop { tracee::ENDLESS } else { tracee::WRITE_THROUGH_NULL };
            memory.write(at, code)?;
            (format!("{} {place}", kind.name()), 0)
        }
        _ => (format!("SIGABRT {place}"), libc::SIGABRT),
    };
    let strike = Strike { durable: memory.durable_head(), ..Strike::now(what) };
    tracee.release(signal);
    Ok(strike)
}

/// Makes the next system call that sends fail with ENOMEM.
fn fail_a_send(process: &Process) -> Result<String> {
    let mut tracee = Tracee::seize(process.pid)?;
    let (name, fd) = tracee.fail_a_send(PATIENCE * 10)?;
    tracee.release(0);
    Ok(format!("{name} on descriptor {fd}"))
}

#[cfg(test)]
mod tests;

//! Processes that are started ahead and wait to take a dead server's place, so that a recovery does not include the
//! start of a process.
//!
//! Such a process has received nothing: it waits for its identity like any newborn, and becomes a server by the same
//! messages. So a standby knows no more of the stack, and has no more of its memory, than a process that has not been
//! started.

use super::process::Spawned;
use eft_base::Instant;
use serde_json::{Value, json};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The standby of a server.
#[derive(Default)]
pub struct Standby {
    /// Whether the topology asks for one.
    pub is_wanted: bool,
    pub waiting: Option<Waiting>,
    /// Another one is started at this time at the earliest.
    pub not_before: Option<Instant>,
}

pub struct Waiting {
    pub spawned: Spawned,
    /// The file from which it was started; `None`: the supervisor's own.
    pub program: Option<Arc<OwnedFd>>,
    /// The keeper is told of it.
    pub is_kept: bool,
}

/// How a death was overcome.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// From the moment when the death was noticed until the successor served.
    pub took: Duration,
    /// When it served, by the monotonic clock.
    pub at: Instant,
    /// Bytes of memory of the durable state that it took over.
    pub state_bytes: u64,
}

impl Recovery {
    pub fn to_json(self) -> Value {
        json!({
            "took_us": self.took.as_micros() as u64,
            "at_ns": self.at.as_nanos(),
            "state_bytes": self.state_bytes,
        })
    }
}

impl Standby {
    pub fn pid(&self) -> Option<u32> {
        self.waiting.as_ref().map(|waiting| waiting.spawned.child.id())
    }

    pub fn is_kept(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.is_kept)
    }

    /// Ends the waiting process. It is a child that has not been reaped, so no other process can have its number.
    pub fn end(&mut self) {
        if let Some(mut waiting) = self.waiting.take() {
            let _ = waiting.spawned.child.kill();
            let _ = waiting.spawned.child.wait();
        }
    }

    /// Whether the process still waits.
    pub fn is_alive(&mut self) -> bool {
        self.waiting.as_mut().is_some_and(|waiting| matches!(waiting.spawned.child.try_wait(), Ok(None)))
    }

    /// Whether it was started from the file from which its server is started now.
    pub fn suits(&self, program: Option<&Arc<OwnedFd>>) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| is_same_program(waiting.program.as_ref(), program))
    }
}

/// Whether two servers are started from the same file; `None`: the supervisor's own.
pub fn is_same_program(one: Option<&Arc<OwnedFd>>, other: Option<&Arc<OwnedFd>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// Bytes of a segment that are in memory: pages of a memory file that were never written take none.
pub fn memory_of(segment: &impl AsFd) -> u64 {
    rustix::fs::fstat(segment).map_or(0, |stat| stat.st_blocks as u64 * 512)
}

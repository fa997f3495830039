//! The loads: programs on the stack and their peers on Linux, each pinned to a CPU, ended when dropped. What a load
//! achieves is counted by its own programs, not by the stack that is judged.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result};
use eft_base::Random;
use eft_machine::CpuId;

use crate::progress::Progress;
use crate::stack::{HOST, STACK, Serving, Stack, host_peer};

/// One kind of traffic in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One connection, from the stack.
    Out,
    /// One connection, to the stack.
    In,
    /// Bulk from the stack for 100 ms, nothing for 100 ms.
    Bursts,
    /// A closed-loop load of requests and answers of this many bytes over this many connections.
    Requests { connections: u16, bytes: u32 },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Out => f.write_str("bulk out"),
            Part::In => f.write_str("bulk in"),
            Part::Bursts => f.write_str("bursts"),
            Part::Requests { connections, bytes } => write!(f, "{connections}x{bytes} B requests"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load(pub Vec<Part>);

impl Load {
    /// The load that `eft bench sched --load` names.
    pub fn named(kind: Kind) -> Load {
        let requests = |connections| Part::Requests { connections, bytes: 64 };
        Load(match kind {
            Kind::Bulk => vec![Part::Out],
            Kind::BulkIn => vec![Part::In],
            Kind::Requests => vec![requests(8)],
            Kind::LoneRequests => vec![requests(1)],
            Kind::Mixed => vec![Part::Out, requests(8)],
            Kind::Bursts => vec![Part::Bursts],
        })
    }

    /// A random load: bulk each way or not, requests of any number and size or none, at least one of them.
    pub fn drawn(random: &mut Random) -> Load {
        loop {
            let mut parts = Vec::new();
            parts.extend(random.chance(0.4).then_some(Part::Out));
            parts.extend(random.chance(0.4).then_some(Part::In));
            if random.chance(0.7) {
                // Even over orders of magnitude: 1 to 32 connections, 16 bytes to 16 KB.
                let connections = 1 << random.below(6);
                parts.push(Part::Requests { connections, bytes: 16 << random.below(11) });
            }
            if !parts.is_empty() {
                return Load(parts);
            }
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Part::to_string).collect::<Vec<_>>().join(" + "))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One connection, from the stack
    Bulk,
    /// One connection, to the stack
    BulkIn,
    /// 64-byte requests and answers over 8 connections
    Requests,
    /// 64-byte requests and answers over one connection
    LoneRequests,
    /// Bulk from the stack, and requests
    Mixed,
    /// Bulk from the stack for 100 ms, nothing for 100 ms
    Bursts,
}

/// Where the programs of a load run: those on the stack, and their peers on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    pub program: CpuId,
    pub peer: CpuId,
}

impl Places {
    /// Every way to place the two on these CPUs.
    pub fn all(cpus: &[CpuId]) -> Vec<Places> {
        cpus.iter()
            .flat_map(|program| cpus.iter().map(|peer| Places { program: *program, peer: *peer }))
            .collect()
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program on {}, peer on {}", self.program, self.peer)
    }
}

/// Longer than any benchmark: loads are ended, they do not end.
const SECONDS: &str = "100000";
/// Each load has ports of its own, so that none waits for what the last one left in TIME_WAIT.
static PORT: AtomicU16 = AtomicU16::new(21_000);

pub struct Running {
    clients: Vec<Child>,
    servers: Vec<Serving>,
    /// One of each part: bytes of bulk, answers of requests.
    counts: Vec<Progress>,
    dir: tempfile::TempDir,
}

impl Running {
    pub fn start(stack: &Stack, load: &Load, places: Places) -> Result<Running> {
        let dir = tempfile::tempdir().context("no folder for counts")?;
        let mut running = Running { clients: Vec::new(), servers: Vec::new(), counts: Vec::new(), dir };
        for part in &load.0 {
            running.add(stack, *part, places)?;
        }
        Ok(running)
    }

    /// What each part has achieved so far.
    pub fn work(&self) -> Vec<u64> {
        self.counts.iter().map(Progress::get).collect()
    }

    fn add(&mut self, stack: &Stack, part: Part, places: Places) -> Result<()> {
        let path = self.dir.path().join(self.counts.len().to_string());
        self.counts.push(Progress::create(&path)?);
        let count =
            path.to_str().context("the folder for temporary files has no name that can be passed on")?;
        let (host, on_stack) = (address(HOST), address(STACK));
        match part {
            Part::Out => {
                self.serve(host_peer(&["sink", &host, "--progress", count])?, places.peer)?;
                self.client(stack.peer(&["source", &host, SECONDS])?, places.program)
            }
            Part::In => {
                self.serve(stack.peer(&["sink", &on_stack, "--progress", count])?, places.program)?;
                self.client(host_peer(&["source", &on_stack, SECONDS])?, places.peer)
            }
            Part::Bursts => {
                self.serve(host_peer(&["sink", &host, "--progress", count])?, places.peer)?;
                self.client(stack.peer(&["bursts", &host, "100", "100", SECONDS])?, places.program)
            }
            Part::Requests { connections, bytes } => {
                let (connections, bytes) = (connections.to_string(), bytes.to_string());
                self.serve(stack.peer(&["echo", &on_stack, "--bytes", &bytes])?, places.program)?;
                let ask = ["ask", &on_stack, &connections, SECONDS, "--bytes", &bytes, "--progress", count];
                self.client(host_peer(&ask)?, places.peer)
            }
        }
    }

    fn serve(&mut self, command: Command, cpu: CpuId) -> Result<()> {
        self.servers.push(Serving::start(pinned(command, cpu))?);
        Ok(())
    }

    fn client(&mut self, command: Command, cpu: CpuId) -> Result<()> {
        let mut command = pinned(command, cpu);
        command.stdout(Stdio::null());
        self.clients.push(command.spawn().context("cannot start a load")?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for client in &mut self.clients {
            let _ = client.kill();
            let _ = client.wait();
        }
        self.servers.clear();
    }
}

fn address(host: &str) -> String {
    format!("{host}:{}", PORT.fetch_add(1, Ordering::Relaxed))
}

fn pinned(mut command: Command, cpu: CpuId) -> Command {
    let pin = move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu.0 as usize);
        rustix::thread::sched_setaffinity(None, &set).map_err(std::io::Error::from)
    };
    // SAFETY: between fork and exec one system call on values of its own.
    unsafe { command.pre_exec(pin) };
    command
}

#[cfg(test)]
mod tests;

//! The loads: programs on the stack and their peers on Linux, all pinned to one CPU, ended when dropped.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::bench::stack::{HOST, STACK, Serving, Stack, host_peer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One connection, from the stack
    Bulk,
    /// One connection, to the stack
    BulkIn,
    /// 64-byte requests and answers over 8 connections
    Requests,
    /// 64-byte requests and answers over 2 connections
    FewRequests,
    /// 64-byte requests and answers over one connection
    LoneRequests,
    /// Bulk from the stack, and requests
    Mixed,
    /// Bulk from the stack for 100 ms, nothing for 100 ms
    Bursts,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bulk => "bulk",
            Kind::BulkIn => "bulk to the stack",
            Kind::Requests => "requests",
            Kind::FewRequests => "requests, 2 connections",
            Kind::LoneRequests => "requests, 1 connection",
            Kind::Mixed => "mixed",
            Kind::Bursts => "bursts",
        }
    }
}

/// Longer than any benchmark: loads are ended, they do not end.
const SECONDS: &str = "100000";
/// Each load has ports of its own, so that none waits for what the last one left in TIME_WAIT.
static PORT: AtomicU16 = AtomicU16::new(21_000);

pub struct Running {
    clients: Vec<Child>,
    _servers: Vec<Serving>,
}

impl Running {
    pub fn start(stack: &Stack, kind: Kind, cpu: u32) -> Result<Running, String> {
        let mut running = Running { clients: Vec::new(), _servers: Vec::new() };
        let (host, on_stack) = (address(HOST), address(STACK));
        match kind {
            Kind::Bulk => {
                running.serve(host_peer(&["sink", &host])?, cpu)?;
                running.client(stack.peer(&["source", &host, SECONDS])?, cpu)?;
            }
            Kind::BulkIn => {
                running.serve(stack.peer(&["sink", &on_stack])?, cpu)?;
                running.client(host_peer(&["source", &on_stack, SECONDS])?, cpu)?;
            }
            Kind::Bursts => {
                running.serve(host_peer(&["sink", &host])?, cpu)?;
                running.client(stack.peer(&["bursts", &host, "100", "100", SECONDS])?, cpu)?;
            }
            Kind::Requests | Kind::FewRequests | Kind::LoneRequests => {
                let connections = match kind {
                    Kind::LoneRequests => "1",
                    Kind::FewRequests => "2",
                    _ => "8",
                };
                running.serve(stack.peer(&["echo", &on_stack])?, cpu)?;
                running.client(host_peer(&["ask", &on_stack, connections, SECONDS])?, cpu)?;
            }
            Kind::Mixed => {
                for part in [Kind::Bulk, Kind::Requests] {
                    let mut part = Running::start(stack, part, cpu)?;
                    running.clients.append(&mut part.clients);
                    running._servers.append(&mut part._servers);
                }
            }
        }
        Ok(running)
    }

    fn serve(&mut self, command: Command, cpu: u32) -> Result<(), String> {
        self._servers.push(Serving::start(pinned(command, cpu))?);
        Ok(())
    }

    fn client(&mut self, command: Command, cpu: u32) -> Result<(), String> {
        let mut command = pinned(command, cpu);
        command.stdout(Stdio::null());
        self.clients.push(command.spawn().map_err(|e| format!("cannot start a load: {e}"))?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for client in &mut self.clients {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

fn address(host: &str) -> String {
    format!("{host}:{}", PORT.fetch_add(1, Ordering::Relaxed))
}

fn pinned(mut command: Command, cpu: u32) -> Command {
    let pin = move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set).map_err(std::io::Error::from)
    };
    // SAFETY: between fork and exec one system call on values of its own.
    unsafe { command.pre_exec(pin) };
    command
}

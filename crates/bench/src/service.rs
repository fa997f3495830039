//! A stack as a service: its supervisor is started again as systemd does it with the packaged unit, when it ends and when it
//! is silent for longer than the unit's watchdog allows.

use super::stack::Stack;
use anyhow::{Context, Result, ensure};
use rustix::process::{getpriority_process, setpriority_process};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const UNIT: &str = include_str!("../../../packaging/eft@.service");
/// How often the manager looks.
const LOOK: Duration = Duration::from_millis(2);

/// How systemd treats the service.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rules {
    watchdog: Duration,
    pause: Duration,
}

impl Rules {
    fn read(unit: &str) -> Result<Rules> {
        let line = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let time = |key: &str| {
            line(key).and_then(duration).with_context(|| format!("the unit's {key} is no number with a unit"))
        };
        ensure!(line("Restart") == Some("on-failure"), "the unit does not start the supervisor again");
        Ok(Rules { watchdog: time("WatchdogSec")?, pause: time("RestartSec")? })
    }
}

/// A number with `ms` or `s`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    match unit {
        "ms" => Some(Duration::from_millis(number.parse().ok()?)),
        "s" => Some(Duration::from_secs(number.parse().ok()?)),
        _ => None,
    }
}

#[derive(Default)]
struct Shared {
    /// An operator wants another supervisor.
    replaces: AtomicBool,
    /// Supervisors that have become ready.
    lives: AtomicU64,
    is_ready: AtomicBool,
    ends: AtomicBool,
}

/// The stack ends with the value.
pub struct Service {
    pub name: String,
    shared: Arc<Shared>,
    manager: Option<JoinHandle<()>>,
}

impl Service {
    /// `folder` gets the socket at which the supervisor reports. `kind` is that of the TAP device.
    pub fn start(kind: &'static str, folder: &Path) -> Result<Service> {
        let rules = Rules::read(UNIT)?;
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).with_context(|| path.display().to_string())?;
        socket.set_nonblocking(true)?;
        let start = move || Stack::start_within(kind, &path, rules.watchdog);
        let stack = start()?;
        let name = stack.name.clone();
        let shared = Arc::new(Shared::default());
        shared.is_ready.store(true, Relaxed);
        shared.lives.store(1, Relaxed);
        let manager = Manager { stack: Some(stack), socket, rules, shared: shared.clone() };
        let manager = Some(std::thread::spawn(move || manager.run(start)));
        Ok(Service { name, shared, manager })
    }

    /// Kills the supervisor, as an operator would who gets no sense out of it; then another one is started.
    pub fn replace_supervisor(&self) {
        self.shared.replaces.store(true, Relaxed);
    }

    /// How many supervisors there were, and whether the last one is at work.
    pub fn supervisor(&self) -> (u64, bool) {
        (self.shared.lives.load(Relaxed), self.shared.is_ready.load(Relaxed))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(manager) = self.manager.take() {
            let _ = manager.join();
        }
    }
}

struct Manager {
    stack: Option<Stack>,
    socket: UnixDatagram,
    rules: Rules,
    shared: Arc<Shared>,
}

impl Manager {
    fn run(mut self, start: impl Fn() -> Result<Stack>) {
        // Systemd and what it starts are not nicer than other programs, even if this measurement is.
        if getpriority_process(None).is_ok_and(|niceness| niceness > 0) {
            let _ = setpriority_process(None, 0);
        }
        while !self.shared.ends.load(Relaxed) {
            match &mut self.stack {
                Some(stack) => {
                    watch(stack, &self.socket, &self.rules, &self.shared);
                    if self.shared.ends.load(Relaxed) {
                        return;
                    }
                    self.shared.is_ready.store(false, Relaxed);
                    self.stack = None;
                    std::thread::sleep(self.rules.pause);
                }
                None => match start() {
                    Ok(stack) => {
                        self.stack = Some(stack);
                        self.shared.lives.fetch_add(1, Relaxed);
                        self.shared.is_ready.store(true, Relaxed);
                    }
                    Err(why) => {
                        eprintln!("bench: a supervisor cannot be started again: {why:#}");
                        std::thread::sleep(self.rules.pause);
                    }
                },
            }
        }
    }
}

/// Returns when the supervisor has ended, by itself or because it was silent for too long, or when the service `ends`.
fn watch(stack: &mut Stack, socket: &UnixDatagram, rules: &Rules, shared: &Shared) {
    let mut heard = Instant::now();
    let mut buffer = [0; 256];
    while !shared.ends.load(Relaxed) && !stack.has_ended() {
        if shared.replaces.swap(false, Relaxed) {
            stack.kill();
        }
        while let Ok(n) = socket.recv(&mut buffer) {
            if &buffer[..n] == b"WATCHDOG=1" {
                heard = Instant::now();
            }
        }
        if heard.elapsed() > rules.watchdog {
            eprintln!("bench: the supervisor was silent for {:?} and is killed", rules.watchdog);
            stack.kill();
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests;

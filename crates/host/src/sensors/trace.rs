//! The kernel's own trace events, through a private tracefs instance.
//!
//! Promises: the host's tracing is untouched. Where tracefs is not mounted, a detached mount is used: no other process
//! sees it, and it ends with the descriptor. The instance is removed on drop; [`remove_stale`] removes the instance of
//! a killed eft.

use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use eft_base::Instant;
use eft_machine::{CpuId, CpuSet};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::Tree;

use crate::error::{Error, error};

const PREFIX: &str = "eft-";
/// Per CPU; a busy CPU switches some ten thousand times a second, at about 80 bytes an event.
const BUFFER_KIB: u32 = 4096;

pub struct Tracer {
    instance: PathBuf,
    /// Keeps the detached mount alive.
    _mount: Option<OwnedFd>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// CLOCK_MONOTONIC.
    pub at: Instant,
    pub cpu: CpuId,
    /// The thread that was running.
    pub pid: i32,
    pub name: String,
    pub fields: String,
}

/// Where tracefs is, and the descriptor that keeps it there if we mounted it.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>), Error> {
    let mounted = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if let Some(dir) = mounted.iter().map(Path::new).find(|dir| dir.join("instances").is_dir()) {
        return Ok((dir.to_path_buf(), None));
    }
    let mount = || {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    let mount = mount().map_err(|error| match error {
        rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => error!(Denied, "tracing needs root"),
        error => error!(Missing, "this kernel has no usable tracefs ({error}), so nothing can be traced"),
    })?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

impl Tracer {
    /// Records `events` (`group/name`), on `cpus` only if given, once [`Tracer::start`] is called.
    pub fn new(events: &[&str], cpus: Option<&CpuSet>) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (dir, mount) = tracefs()?;
        let name = format!("{PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let instance = dir.join("instances").join(name);
        fs::create_dir(&instance)
            .map_err(|error| error!(Denied, "no trace instance can be made ({error}); this needs root"))?;
        let tracer = Self { instance, _mount: mount };
        tracer.set("tracing_on", "0")?;
        tracer.set("trace_clock", "mono")?;
        tracer.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        if let Some(cpus) = cpus {
            tracer.set("tracing_cpumask", &cpus.to_mask())?;
        }
        for event in events {
            tracer.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(tracer)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        fs::write(self.instance.join(file), value)
            .map_err(|error| error!(System, "tracefs {file} does not take {value} ({error})"))
    }

    /// Has the stack recorded when a thread that `filter` describes leaves its CPU. False if this kernel does not do that.
    pub fn record_stacks(&self, filter: &str) -> bool {
        self.set("events/sched/sched_switch/trigger", &format!("stacktrace if {filter}")).is_ok()
    }

    pub fn start(&self) -> Result<(), Error> {
        self.set("trace", "0")?;
        self.set("tracing_on", "1")
    }

    pub fn stop(&self) -> Result<(), Error> {
        self.set("tracing_on", "0")
    }

    pub fn read(&self) -> Result<Vec<Event>, Error> {
        let mut bytes = Vec::new();
        let mut file = fs::File::open(self.instance.join("trace"))
            .map_err(|error| error!(System, "tracefs: {error}"))?;
        file.read_to_end(&mut bytes).map_err(|error| error!(System, "tracefs: {error}"))?;
        // Thread names may hold any bytes.
        Ok(parse_all(&String::from_utf8_lossy(&bytes)))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Removes instances of processes that are gone.
pub fn remove_stale() -> usize {
    let Ok((dir, _mount)) = tracefs() else {
        return 0;
    };
    let Ok(entries) = fs::read_dir(dir.join("instances")) else {
        return 0;
    };
    let is_stale = |name: &str| {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok());
        pid.is_some_and(|pid| super::tasks::leader(&Tree::live(), pid).is_none())
    };
    let stale = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_stale));
    stale.filter(|entry| fs::remove_dir(entry.path()).is_ok()).count()
}

/// The name of an event that holds the functions of a stack, innermost first.
pub const STACK: &str = "<stack trace>";

/// Lines of a stack (` => function`) belong to the event before them.
fn parse_all(text: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix(" => "), events.last_mut()) {
            (Some(function), Some(event)) if event.name == STACK => {
                event.fields.push_str(function.trim());
                event.fields.push(' ');
            }
            _ => events.extend(parse(line)),
        }
    }
    events
}

/// `comm-PID  [CPU] flags  seconds.micros: name: fields`. Names may hold blanks and dashes, so the anchors are the
/// CPU's brackets and the colon after the time.
pub fn parse(line: &str) -> Option<Event> {
    if line.starts_with('#') {
        return None;
    }
    let (open, cpu, rest) = line.match_indices(" [").find_map(|(open, _)| {
        let (cpu, rest) = line[open + 2..].split_once("] ")?;
        // The kernel writes at least three digits, and a colon follows the time.
        (cpu.len() >= 3).then_some(())?;
        Some((open, cpu.parse().ok()?, rest))
    })?;
    let pid = line[..open].trim_end().rsplit_once('-')?.1.parse().ok()?;
    let (stamp, event) = rest.split_once(": ")?;
    let (seconds, micros) = stamp.split_whitespace().last()?.split_once('.')?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (name, fields) = event.split_once(": ").unwrap_or((event, ""));
    Some(Event {
        at: Instant::from_micros(at),
        cpu,
        pid,
        name: name.trim().to_string(),
        fields: fields.trim().to_string(),
    })
}

/// The value after `key` up to the next blank.
pub fn field<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let at = fields.rfind(key)? + key.len();
    fields[at..].split_whitespace().next()
}

/// Does a `sched_switch` lead to a task that is no kernel thread? One that has ended since counts as a user's.
pub fn switches_to_user(event: &Event) -> bool {
    next_pid(event).is_some_and(is_user)
}

/// Does a `sched_switch` lead away from a task that is no kernel thread?
pub fn switches_from_user(event: &Event) -> bool {
    next_pid(event).is_some() && is_user(event.pid)
}

fn is_user(pid: i32) -> bool {
    pid != 0 && !super::tasks::leader(&Tree::live(), pid).is_some_and(|task| task.kernel)
}

/// The thread that a `sched_switch` leads to; 0 is the idle task.
pub fn next_pid(event: &Event) -> Option<i32> {
    field(&event.fields, "next_pid=")?.parse().ok()
}

#[cfg(test)]
mod tests;

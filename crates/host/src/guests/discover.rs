//! Finds the guests and the roles of their threads.
//!
//! QEMU guests are found among the processes; their vCPUs by QMP where a socket is given or named on the command line,
//! else by the names that QEMU gives its threads, else by the cgroups that libvirt keeps them in. A cgroup or a list of
//! processes can be managed as if it were a guest.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::qmp;
use crate::error::{Error, error};
use crate::sensors::Tree;
use crate::sensors::tasks::{self, TaskId};

/// What a thread of a guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Vcpu(u32),
    /// An I/O thread or a worker of one.
    Io,
    Vhost,
    Emulator,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    #[serde(flatten)]
    pub id: TaskId,
    pub process: i32,
    pub name: String,
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guest {
    pub name: String,
    /// How its vCPUs were identified: `qmp`, `thread names`, `libvirt cgroups`, `group`.
    pub by: &'static str,
    /// QEMU's process id.
    pub process: Option<i32>,
    pub is_paused: bool,
    /// Hardware virtualisation is used; then counters distinguish guest and host.
    pub kvm: bool,
    pub threads: Vec<Thread>,
}

impl Guest {
    pub fn vcpus(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)))
    }
}

/// `NAME=/sys/fs/cgroup/…`, `NAME=12,34` (processes), or either without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    pub name: String,
    pub members: Members,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    Cgroup(PathBuf),
    Processes(Vec<i32>),
}

impl FromStr for GroupSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad =
            || error!(Invalid, "'{text}' is no group (NAME=/path/of/cgroup, or NAME=12,34 with process ids)");
        let (name, what) = text.split_once('=').unwrap_or((text, text));
        if name.is_empty() || name.contains(char::is_control) {
            return Err(bad());
        }
        let members = if what.starts_with('/') {
            Members::Cgroup(what.into())
        } else {
            let pid = |part: &str| part.parse::<i32>().ok().filter(|pid| *pid > 0);
            Members::Processes(what.split(',').map(pid).collect::<Option<Vec<i32>>>().ok_or_else(bad)?)
        };
        Ok(Self { name: name.into(), members })
    }
}

/// What to look for beside QEMU processes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub qmp: Vec<PathBuf>,
    pub groups: Vec<GroupSpec>,
    /// Leave QEMU guests alone.
    pub groups_only: bool,
    /// Names of the QEMU guests to manage; all if empty.
    pub only: Vec<String>,
}

impl Wanted {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// All guests now, and notes on those that do not answer. `known` are the guests of the last search: a guest whose
/// monitor is busy with another client keeps the threads that were known.
pub fn discover(tree: &Tree, wanted: &Wanted, known: &[Guest]) -> (Vec<Guest>, Vec<String>) {
    let (mut guests, mut notes) = (Vec::new(), Vec::new());
    let answers: Vec<qmp::Answer> = wanted
        .qmp
        .iter()
        .filter_map(|path| qmp::ask(path).map_err(|reason| notes.push(reason.to_string())).ok())
        .collect();
    if !wanted.groups_only {
        for process in tasks::processes(tree) {
            if let Some(command) = qemu_command(tree, process)
                && wanted.wants(&guest_name(tree, &command, process))
            {
                let answer = answers.iter().find(|answer| answer.process == process).cloned();
                let before = known.iter().find(|guest| guest.process == Some(process));
                guests.extend(qemu_guest(tree, process, &command, answer, before, &mut notes));
            }
        }
    }
    for spec in &wanted.groups {
        match group(tree, spec) {
            Ok(guest) => guests.push(guest),
            Err(reason) => notes.push(reason.to_string()),
        }
    }
    (guests, notes)
}

/// The command line, if the process is a QEMU (`kvm` on Proxmox).
fn qemu_command(tree: &Tree, process: i32) -> Option<Vec<String>> {
    let text = tree.text(&format!("proc/{process}/cmdline"))?;
    let words: Vec<String> = text.split('\0').map(str::to_string).collect();
    let program = Path::new(words.first()?).file_name()?.to_str()?;
    let is_qemu = program.starts_with("qemu-system-") || program == "qemu-kvm" || program == "kvm";
    is_qemu.then_some(words)
}

fn option<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).map(String::as_str)
}

fn guest_name(tree: &Tree, words: &[String], process: i32) -> String {
    let named = option(words, "-name").and_then(|value| {
        value
            .split(',')
            .map(|part| part.strip_prefix("guest=").unwrap_or(part))
            .find(|part| !part.contains('='))
    });
    // libvirt: machine-qemu\x2d3\x2dNAME.scope; Proxmox: qemu.slice/100.scope.
    let cgroup = || {
        let text = tree.text(&format!("proc/{process}/cgroup"))?;
        let scope = text
            .lines()
            .find_map(|line| line.rsplit('/').find_map(|part| part.strip_suffix(".scope")))?
            .to_string();
        let plain = scope.replace("\\x2d", "-");
        let name =
            plain.strip_prefix("machine-qemu-").and_then(|rest| rest.split_once('-')).map(|(_, name)| name);
        name.map(str::to_string)
            .or_else(|| plain.chars().all(|c| c.is_ascii_digit()).then_some(plain.clone()))
    };
    let name = named.map(str::to_string).or_else(cgroup).unwrap_or_else(|| format!("qemu-{process}"));
    eft_base::text::one_line(&name)
}

/// The control socket that a command line names, unless libvirt holds it.
fn qmp_socket(words: &[String]) -> Option<PathBuf> {
    let direct =
        option(words, "-qmp").and_then(|value| value.strip_prefix("unix:")).and_then(|v| v.split(',').next());
    let by_chardev = || {
        let monitor = words
            .iter()
            .zip(words.iter().skip(1))
            .filter(|(word, _)| *word == "-mon")
            .map(|(_, value)| value);
        let control = monitor.into_iter().find(|value| value.contains("mode=control"))?;
        let id = control
            .split(',')
            .find_map(|part| part.strip_prefix("chardev=").or(Some(part)).filter(|p| !p.contains('=')))?;
        let devices =
            words.iter().zip(words.iter().skip(1)).filter(|(word, _)| *word == "-chardev").map(|(_, v)| v);
        let device =
            devices.into_iter().find(|value| value.split(',').any(|part| part == format!("id={id}")))?;
        device.split(',').find_map(|part| part.strip_prefix("path="))
    };
    let path = PathBuf::from(direct.or_else(by_chardev)?);
    (path.is_absolute() && !path.starts_with("/var/lib/libvirt")).then_some(path)
}

fn qemu_guest(
    tree: &Tree,
    process: i32,
    words: &[String],
    answer: Option<qmp::Answer>,
    before: Option<&Guest>,
    notes: &mut Vec<String>,
) -> Option<Guest> {
    let name = guest_name(tree, words, process);
    let asked =
        |path: PathBuf| qmp::ask(&path).map_err(|reason| notes.push(format!("{name}: {reason}"))).ok();
    let answer = match answer {
        None if tree.is_live() => qmp_socket(words).and_then(asked),
        given => given,
    };
    let mut threads: Vec<Thread> = tasks::threads(tree, process)
        .into_iter()
        .filter_map(|tid| tasks::read(tree, process, tid))
        .map(|task| Thread { id: task.id, process, role: role_by_name(&task.name), name: task.name })
        .collect();
    threads.extend(vhost_threads(tree, process));
    let is_vcpu = |thread: &Thread| matches!(thread.role, Role::Vcpu(_));
    let mut by = "thread names";
    if answer.is_none() && !threads.iter().any(is_vcpu) {
        for thread in threads.iter_mut().filter(|thread| thread.role != Role::Vhost) {
            thread.role = role_by_cgroup(tree, thread).unwrap_or(thread.role);
        }
        if threads.iter().any(is_vcpu) {
            by = "libvirt cgroups";
        }
    }
    let before = before.filter(|_| answer.is_none() && !threads.iter().any(is_vcpu));
    if let Some(before) = before {
        for thread in &mut threads {
            let same = before.threads.iter().find(|old| old.id == thread.id);
            thread.role = same.map_or(thread.role, |old| old.role);
        }
        by = before.by;
    }
    if let Some(answer) = &answer {
        // A monitor's answer counts for threads of its own process only.
        let own: Vec<&(u32, i32)> = answer
            .vcpus
            .iter()
            .filter(|(_, tid)| threads.iter().any(|thread| thread.id.tid == *tid))
            .collect();
        if own.len() < answer.vcpus.len() {
            notes
                .push(format!("{name}: its monitor names threads that are not its own; they are left alone"));
        }
        for (index, tid) in own {
            if let Some(thread) = threads.iter_mut().find(|thread| thread.id.tid == *tid) {
                thread.role = Role::Vcpu(*index);
            }
        }
        by = "qmp";
    }
    let guest = Guest {
        kvm: uses_kvm(words, &threads),
        by,
        process: Some(process),
        is_paused: answer.map_or(before.is_some_and(|before| before.is_paused), |answer| !answer.is_running),
        threads,
        name,
    };
    if guest.vcpus().next().is_none() {
        notes.push(format!(
            "{}: its vCPUs cannot be told apart; start QEMU with -qmp unix:PATH,server=on,wait=off or -name …,debug-threads=on",
            guest.name
        ));
        return None;
    }
    Some(guest)
}

/// Judges by the names of the vCPUs' threads (`CPU 0/KVM`), else by the command line.
fn uses_kvm(words: &[String], threads: &[Thread]) -> bool {
    let accelerator =
        |thread: &Thread| thread.name.strip_prefix("CPU ")?.split_once('/').map(|(_, by)| by == "KVM");
    threads.iter().find_map(accelerator).unwrap_or_else(|| {
        let value = |name: &str| option(words, name).unwrap_or_default();
        let program = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
        matches!(program, Some("kvm" | "qemu-kvm"))
            || words.iter().any(|word| word == "-enable-kvm")
            || value("-accel").split(',').next() == Some("kvm")
            || ["-machine", "-M"].iter().any(|name| value(name).split(',').any(|part| part == "accel=kvm"))
    })
}

/// QEMU's names, given with `debug-threads=on`, which libvirt and Proxmox do.
fn role_by_name(name: &str) -> Role {
    let vcpu = name.strip_prefix("CPU ").and_then(|rest| rest.split('/').next()?.parse().ok());
    match vcpu {
        Some(index) => Role::Vcpu(index),
        None if name.starts_with("vhost-") => Role::Vhost,
        None if name.starts_with("IO ") || name.starts_with("iothread") || name.starts_with("worker") => {
            Role::Io
        }
        None => Role::Emulator,
    }
}

/// libvirt keeps each vCPU and I/O thread in a cgroup of its own: `…/libvirt/vcpu0`, `iothread1`, `emulator`.
fn role_by_cgroup(tree: &Tree, thread: &Thread) -> Option<Role> {
    let text = tree.text(&format!("proc/{}/task/{}/cgroup", thread.process, thread.id.tid))?;
    let of = |line: &str| {
        let last = line.rsplit('/').next()?;
        let number = |name: &str| last.strip_prefix(name)?.parse::<u32>().ok();
        match (number("vcpu"), number("iothread"), last) {
            (Some(index), ..) => Some(Role::Vcpu(index)),
            (_, Some(_), _) => Some(Role::Io),
            (.., "emulator") => Some(Role::Emulator),
            _ => None,
        }
    };
    text.lines().find_map(of)
}

/// Before Linux 6.4 vhost's workers are kernel threads named after the process.
fn vhost_threads(tree: &Tree, process: i32) -> Vec<Thread> {
    let wanted = format!("vhost-{process}");
    let of = |pid: i32| tasks::leader(tree, pid).filter(|task| task.kernel && task.name == wanted);
    if !tree.is_live() && !tree.exists("proc/2") {
        return Vec::new();
    }
    tasks::processes(tree)
        .into_iter()
        .filter_map(of)
        .map(|task| Thread { id: task.id, process: task.process, name: task.name, role: Role::Vhost })
        .collect()
}

/// Every thread of a group counts as a vCPU.
fn group(tree: &Tree, spec: &GroupSpec) -> Result<Guest, Error> {
    let processes = match &spec.members {
        Members::Processes(pids) => pids.clone(),
        Members::Cgroup(path) => cgroup_processes(path).map_err(|error| {
            error!(System, "group {}: {} cannot be read ({error})", spec.name, path.display())
        })?,
    };
    let mut threads = Vec::new();
    for process in processes {
        let of = tasks::threads(tree, process).into_iter().filter_map(|tid| tasks::read(tree, process, tid));
        for task in of.filter(|task| !task.kernel) {
            let role = Role::Vcpu(threads.len() as u32);
            threads.push(Thread { id: task.id, process, name: task.name, role });
        }
    }
    if threads.is_empty() {
        return Err(error!(Missing, "group {} has no threads", spec.name));
    }
    Ok(Guest { name: spec.name.clone(), by: "group", process: None, is_paused: false, kvm: false, threads })
}

fn cgroup_processes(path: &Path) -> std::io::Result<Vec<i32>> {
    let text = std::fs::read_to_string(path.join("cgroup.procs"))?;
    let mut all: Vec<i32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    for entry in std::fs::read_dir(path)?.flatten().filter(|entry| entry.path().is_dir()) {
        all.extend(cgroup_processes(&entry.path()).unwrap_or_default());
    }
    Ok(all)
}

#[cfg(test)]
mod tests;

//! What eft changed on the host, recorded before each change, so that the next eft can undo it.
//!
//! One journal and one lock for all eft instances of a host. Promises: a change is in the journal before it is made; a
//! line that is torn was never acted upon; undoing goes backwards, and restores only values that are still as eft left
//! them, so that values that others have set meanwhile stay. Must never happen: a change without an owner. When the
//! owner is dead, the next eft undoes it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eft_machine::{CpuId, CpuSet};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::error::{Error, error};
use crate::sensors::Tree;
use crate::sensors::tasks::{self, TaskId, ThreadClass};

/// Where the journal is by default; it does not survive a reboot, and neither do the changes.
pub const STATE_DIR: &str = "/run/eft/cpu";

/// A command holds the lock for some seconds at most; a benchmark for minutes, and others do not wait that long.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// Locks within `patience`.
fn take(lock: &File, patience: Duration) -> rustix::io::Result<()> {
    if patience == Duration::MAX {
        return rustix::fs::flock(lock, FlockOperation::LockExclusive);
    }
    let begin = Instant::now();
    loop {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if begin.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

/// Lists of CPUs are equal if they name the same CPUs, whatever their notation.
pub fn same_value(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim(), right.trim());
    if left == right {
        return true;
    }
    let looks_like_mask =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
    match (left.parse::<CpuSet>(), right.parse::<CpuSet>()) {
        (Ok(left), Ok(right)) if left == right => true,
        _ if looks_like_mask(left) && looks_like_mask(right) && left.len().max(right.len()) >= 8 => {
            CpuSet::from_mask(left).ok() == CpuSet::from_mask(right).ok()
        }
        _ => false,
    }
}

/// A change, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A value of sysfs, procfs or a cgroup.
    Write {
        path: String,
        old: String,
        new: String,
    },
    /// A cgroup; its tasks go to its parent before it is removed.
    MakeCgroup {
        path: String,
    },
    /// The cpuset controller enabled for the children of a cgroup v2.
    Controller {
        path: String,
    },
    /// Processes moved between cgroups.
    Attach {
        processes: Vec<TaskId>,
        from: String,
        to: String,
    },
    /// Affinity masks of threads.
    Masks {
        tasks: Vec<TaskMask>,
    },
    /// A guest's thread, placed anew at every turn: its first mask, and the CPUs that eft chooses from.
    Placed {
        process: i32,
        thread: TaskId,
        old: CpuSet,
        within: CpuSet,
    },
    /// A CPU taken offline, with the cpusets and masks that lose it and get it back.
    Offline {
        cpu: CpuId,
        cpusets: Vec<(String, CpuSet)>,
        tasks: Vec<TaskMask>,
    },
    /// A CPU brought online that was offline before.
    Online {
        cpu: CpuId,
    },
    /// `/sys/kernel/rcu_expedited` raised; lowered when the last of these is done.
    Expedite,
    /// Kernel threads that a switch waits for; they are real-time meanwhile.
    Urgent {
        threads: Vec<ThreadClass>,
    },
    Msr {
        cpu: CpuId,
        register: u64,
        old: u64,
        new: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskMask {
    pub process: i32,
    pub id: TaskId,
    pub old: CpuSet,
    pub new: CpuSet,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub id: u64,
    pub owner: TaskId,
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Done { done: u64 },
    Entry(Entry),
}

/// Parses a journal: the changes that are not undone, oldest first, and a number that no entry in it
/// has or had.
pub fn read(text: &[u8]) -> (Vec<Entry>, u64) {
    let (mut entries, mut next) = (Vec::<Entry>::new(), 1);
    for line in String::from_utf8_lossy(text).lines() {
        match serde_json::from_str(line) {
            // No eft counts this far: the line is damaged, and no number would be left after it.
            Ok(Line::Entry(entry)) if entry.id == u64::MAX => {}
            Ok(Line::Entry(entry)) => {
                next = next.max(entry.id + 1);
                entries.push(entry);
            }
            Ok(Line::Done { done }) => entries.retain(|entry| entry.id != done),
            // Torn by a kill: the change that it announces was not begun.
            Err(_) => {}
        }
    }
    (entries, next)
}

/// The journal, locked against every other eft. Dropping the value releases the lock.
pub struct Journal {
    tree: Tree,
    dir: PathBuf,
    file: File,
    entries: Vec<Entry>,
    next: u64,
    owner: TaskId,
    lock: File,
}

impl Journal {
    /// Waits for the lock for a limited time. Changes belong to this process unless [`Journal::own`] says otherwise.
    pub fn lock(tree: &Tree, dir: &Path) -> Result<Self, Error> {
        Self::lock_within(tree, dir, LOCK_PATIENCE)
    }

    pub fn lock_within(tree: &Tree, dir: &Path, patience: Duration) -> Result<Self, Error> {
        let complain = |what: &Path, error: std::io::Error| {
            error!(
                Denied,
                "{} cannot be used ({error}); this needs root, or another --state-dir",
                what.display()
            )
        };
        fs::create_dir_all(dir).map_err(|error| complain(dir, error))?;
        let open = |name: &str| {
            let path = dir.join(name);
            // The file is not truncated: it may hold another eft's entries.
            let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
            opened.map_err(|error| complain(&path, error))
        };
        let lock = open("lock")?;
        take(&lock, patience).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                error!(
                    Busy,
                    "another eft is at work and holds {}; try again when it is done",
                    dir.join("lock").display()
                )
            }
            error => complain(&dir.join("lock"), error.into()),
        })?;
        let mut journal = Self {
            tree: tree.clone(),
            dir: dir.to_path_buf(),
            file: open("journal")?,
            entries: Vec::new(),
            next: 1,
            owner: tasks::myself(&Tree::live()),
            lock,
        };
        journal.load()?;
        Ok(journal)
    }

    fn load(&mut self) -> Result<(), Error> {
        let mut text = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut text))
            .map_err(|error| self.broken(&error))?;
        let (entries, next) = read(&text);
        self.entries.extend(entries);
        self.next = self.next.max(next);
        if !text.is_empty() && !text.ends_with(b"\n") {
            self.file.write_all(b"\n").map_err(|error| self.broken(&error))?;
        }
        Ok(())
    }

    /// Reads the file anew, after others had the lock.
    pub fn reload(&mut self) -> Result<(), Error> {
        self.entries.clear();
        self.load()
    }

    /// Releases the lock while `wait` runs. Callers that go on must reload.
    pub fn unlocked<T>(&mut self, wait: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let complain = |error| error!(System, "the lock cannot be used ({error})");
        self.trim()?;
        rustix::fs::flock(&self.lock, FlockOperation::Unlock).map_err(complain)?;
        let outcome = wait();
        take(&self.lock, LOCK_PATIENCE).map_err(complain)?;
        self.reload()?;
        outcome
    }

    fn broken(&self, error: &std::io::Error) -> Error {
        error!(System, "the journal in {} cannot be used ({error})", self.dir.display())
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// From here on changes belong to `owner`, which undoes them when it ends.
    pub fn own(&mut self, owner: TaskId) {
        self.owner = owner;
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Announces a change. It may be made as soon as this returns.
    pub fn announce(&mut self, change: Change) -> Result<u64, Error> {
        let entry = Entry { id: self.next, owner: self.owner, change };
        self.append(&Line::Entry(entry.clone()))?;
        self.next += 1;
        self.entries.push(entry);
        Ok(self.next - 1)
    }

    /// The change was undone, or never made.
    pub fn done(&mut self, id: u64) -> Result<(), Error> {
        self.append(&Line::Done { done: id })?;
        self.entries.retain(|entry| entry.id != id);
        Ok(())
    }

    /// Starts the file afresh if nothing is held, so that it does not grow for ever. Not after each change: on a disk
    /// file system that takes longer than the change itself.
    fn trim(&mut self) -> Result<(), Error> {
        let is_used = self.file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        if self.entries.is_empty() && is_used {
            self.file.set_len(0).map_err(|error| self.broken(&error))?;
        }
        Ok(())
    }

    fn append(&mut self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|error| error!(System, "{error}"))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(|error| self.broken(&error))
    }

    /// Writes a value, journaled; nothing if it is there already. The entry is taken back if the write fails.
    pub fn write(&mut self, path: &str, new: &str) -> Result<(), Error> {
        let old = self.tree.read(path)?.trim().to_string();
        if same_value(&old, new) {
            return Ok(());
        }
        // A value changed again keeps its first old value: one undo leads back to the beginning.
        let earlier = self.entries.iter().find_map(|entry| match &entry.change {
            Change::Write { path: known, old, .. } if known == path && entry.owner == self.owner => {
                Some((entry.id, old.clone()))
            }
            _ => None,
        });
        let first = earlier.as_ref().map_or(old, |(_, first)| first.clone());
        let id = self.announce(Change::Write { path: path.into(), old: first, new: new.into() })?;
        if let Err(reason) = self.tree.write(path, new) {
            self.done(id)?;
            return Err(reason);
        }
        if let Some((earlier, _)) = earlier {
            self.done(earlier)?;
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // An error does no harm: a file that is not trimmed has the same meaning.
        let _ = self.trim();
    }
}

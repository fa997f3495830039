//! The keeper: a process that only holds what must outlive a supervisor.
//!
//! Each entry has a name, bytes that the keeper does not interpret, and descriptors. The supervisor puts and drops
//! entries as it runs. When it dies, the keeper waits for another `eft up` of the stack's name, gives it everything,
//! and serves it from then on. If none comes in time, the keeper ends, and so do the connections that it held; it waits for longer
//! while servers live, since connections go on then. It parses nothing but the supervisor's messages and touches no device. Before it ends for lack of a successor, it ends the
//! servers, and removes the stack's folder and the rules that kept the kernel from answering for the stack's
//! addresses.

use crate::devices::packet;
use crate::protocol::{CONTROL_FD, PACKET_MAX, encode};
use crate::{Doing, Error, Result, operator, scm};
use eft_host::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From the supervisor. Brackets name the descriptors that come along.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToKeeper {
    /// Everything is there: from now on a successor may come. [a listening socket]
    Begin {
        place: Option<Place>,
    },
    /// Replaces an earlier entry of the name. [any number]
    Put {
        name: String,
        value: Vec<u8>,
    },
    Drop {
        name: String,
    },
    /// The stack ends.
    End,
}

/// The socket's path, and the one at which successors look: a keeper takes the place of another one when it has everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Place {
    pub from: PathBuf,
    pub to: PathBuf,
}

/// To a successor: every entry, then `All`. Brackets name the descriptors that come along.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromKeeper {
    /// [any number]
    Entry {
        name: String,
        value: Vec<u8>,
    },
    All,
}

/// An entry of the keeper.
#[derive(Debug)]
pub struct Entry {
    pub value: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

pub type Entries = BTreeMap<String, Entry>;

/// How often a keeper without a supervisor looks whether another one has taken its place.
const LOOK: Duration = Duration::from_millis(20);

/// How many times its patience a keeper waits while a server lives. Nobody notices anything then, and a successor may come late
/// on a busy machine; but what nobody starts again must end at last.
const WHILE_SERVERS_LIVE: u32 = 5;

/// How long servers may take to end when no successor has come.
const END: Duration = Duration::from_secs(1);

struct Keeper {
    entries: Entries,
    /// `None`: it died.
    supervisor: Option<OwnedFd>,
    successors: Option<OwnedFd>,
    /// Where successors look, and the number of its file there.
    place: Option<(PathBuf, u64)>,
    ended: bool,
    buffer: Vec<u8>,
}

/// The keeper's process. The supervisor starts it with a socket at [`CONTROL_FD`]. `tables` are those of
/// [`packet::Silencer`], which are removed if no successor comes within `patience`.
pub fn run(stack: &str, patience: Duration, tables: &[String]) -> Result<()> {
    // SAFETY: fcntl on a number; a bad one gives an error.
    if unsafe { libc::fcntl(CONTROL_FD, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(Error::Invalid("the keeper is started by `eft up`, not by hand".into()));
    }
    // SAFETY: the supervisor passed this descriptor to this process alone.
    let supervisor = unsafe { OwnedFd::from_raw_fd(CONTROL_FD) };
    let _ = rustix::thread::set_name(c"eft");
    give_way();
    let mut keeper = Keeper {
        entries: Entries::new(),
        supervisor: Some(supervisor),
        successors: None,
        place: None,
        ended: false,
        buffer: vec![0; PACKET_MAX],
    };
    keeper.keep(patience)?;
    // If there is a supervisor, it has everything from another keeper.
    if !keeper.ended && operator::connect(stack, &operator::control_path(stack)).is_err() {
        keeper.end_servers();
        // The socket is still there: a successor that comes now waits until this process ends, and then starts the
        // stack anew.
        tables.iter().for_each(|table| packet::remove_table(table));
        let _ = std::fs::remove_dir_all(operator::stack_dir(stack));
    }
    Ok(())
}

/// While a dead server's successor starts, the keeper is told of it: it does not take the CPU from them then.
fn give_way() {
    // SAFETY: all zeroes are a valid parameter, and the only one that SCHED_BATCH knows.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameter);
    }
}

impl Keeper {
    /// Runs until the stack ends, or until no new supervisor has come within `patience` after the last one died, or within
    /// [`WHILE_SERVERS_LIVE`] times that as long as a server lives.
    fn keep(&mut self, patience: Duration) -> Result<()> {
        let mut since = None;
        while !self.ended {
            let left = since
                .map(|since| (patience * self.times()).saturating_sub(clock::now().saturating_since(since)));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            self.wait(left.map(|left| left.min(LOOK)))?;
            self.hear();
            if self.supervisor.is_none() && !self.ended {
                if self.is_replaced() {
                    return Err(Error::Gone("another keeper has taken this one's place".into()));
                }
                self.admit();
            }
            since = match self.supervisor {
                Some(_) => None,
                None => Some(since.unwrap_or_else(clock::now)),
            };
        }
        Ok(())
    }

    /// How many times its patience it waits, as things are.
    fn times(&self) -> u32 {
        let processes = self.entries.iter().filter(|(name, _)| is_process(name));
        match processes.flat_map(|(_, entry)| &entry.fds).any(|process| !operator::has_ended(process)) {
            true => WHILE_SERVERS_LIVE,
            false => 1,
        }
    }

    /// Servers that nobody has adopted read the end of their control sockets when these entries are gone, and end, once tcp has told
    /// its peers. One that hangs is killed.
    fn end_servers(&mut self) {
        let processes: Vec<Entry> =
            self.entries.extract_if(.., |name, _| is_process(name)).map(|(_, entry)| entry).collect();
        self.entries.clear();
        let until = clock::now() + END;
        for process in processes.iter().flat_map(|entry| &entry.fds) {
            let left = until.saturating_since(clock::now());
            let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos() as _ };
            if !matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)), Ok(1..)) {
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
        }
    }

    /// Begins to be the one to which successors come.
    fn begin(&mut self, place: Option<Place>) {
        let Some(Place { from, to }) = place else { return };
        let file = std::fs::metadata(&from).map(|file| file.ino());
        if let (Ok(file), Ok(())) = (file, std::fs::rename(&from, &to)) {
            self.place = Some((to, file));
        }
    }

    /// Whether successors come to another keeper, which then has everything, too.
    fn is_replaced(&self) -> bool {
        let Some((path, file)) = &self.place else { return false };
        std::fs::metadata(path).is_ok_and(|there| there.ino() != *file)
    }

    fn wait(&self, patience: Option<Duration>) -> Result<()> {
        // While the supervisor lives, no successor is accepted.
        let from = self.supervisor.as_ref().or(self.successors.as_ref());
        let from = from.ok_or_else(|| Error::Gone("the supervisor died before it began".into()))?;
        let limit = patience.map(|p| Timespec { tv_sec: p.as_secs() as i64, tv_nsec: p.subsec_nanos() as _ });
        match poll(&mut [PollFd::new(from, PollFlags::IN)], limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e).doing("poll"),
        }
    }

    /// Takes everything that the supervisor has sent.
    fn hear(&mut self) {
        while let Some(supervisor) = &self.supervisor {
            match scm::receive(supervisor, &mut self.buffer, true) {
                Ok((n @ 1.., fds)) => match postcard::from_bytes(&self.buffer[..n]) {
                    Ok(message) => self.take(message, fds),
                    Err(_) => self.supervisor = None,
                },
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok(_) | Err(_) => self.supervisor = None,
            }
        }
    }

    fn take(&mut self, message: ToKeeper, fds: Vec<OwnedFd>) {
        match message {
            ToKeeper::Begin { place } => {
                self.begin(place);
                self.successors = fds.into_iter().next();
                // It is also tried when no successor is waiting.
                if let Some(successors) = &self.successors {
                    let _ = rustix::io::ioctl_fionbio(successors, true);
                }
            }
            ToKeeper::Put { name, value } => drop(self.entries.insert(name, Entry { value, fds })),
            ToKeeper::Drop { name } => drop(self.entries.remove(&name)),
            ToKeeper::End => {
                // The entries go first: when the connection ends, the supervisor may rely on their descriptors being
                // closed.
                self.entries.clear();
                (self.supervisor, self.ended) = (None, true);
            }
        }
    }

    /// Accepts a successor and gives it everything. It must be a new supervisor, because no other user may open the
    /// socket.
    fn admit(&mut self) {
        let Some(successors) = &self.successors else { return };
        let Ok(successor) = accept_with(successors, SocketFlags::CLOEXEC) else { return };
        let given = self.entries.iter().try_for_each(|(name, entry)| {
            let message = FromKeeper::Entry { name: name.clone(), value: entry.value.clone() };
            give(&successor, &message, &entry.fds)
        });
        if given.and_then(|()| give(&successor, &FromKeeper::All, &[])).is_ok() {
            self.supervisor = Some(successor);
        }
    }
}

/// Whether an entry is that of a server's process, or of a standby's.
fn is_process(name: &str) -> bool {
    name.starts_with("process/")
}

/// Sends a message. Waits while the receiver is slow, or while the most descriptors that may be in transit are.
fn give(to: &OwnedFd, message: &FromKeeper, fds: &[OwnedFd]) -> std::result::Result<(), Errno> {
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    loop {
        match scm::send(to, &encode(message), &fds, false) {
            Err(Errno::TOOMANYREFS) => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
}

/// The successor's side: takes everything that is kept at this path, and returns the socket at which it tells the keeper more.
/// `None`: there is no keeper, or it was already ending.
pub fn take_over(stack: &str, path: &Path) -> Result<Option<(OwnedFd, Entries)>> {
    loop {
        let socket = match operator::connect(stack, path) {
            Ok(socket) => socket,
            Err(Error::Missing(_)) => return Ok(None),
            Err(why) => return Err(why),
        };
        if let Some(entries) = take_all(&socket)? {
            return Ok(Some((socket, entries)));
        }
        // It ended before it had given anything. Another one may have taken its place.
    }
}

/// `None`: the keeper was already ending.
fn take_all(socket: &OwnedFd) -> Result<Option<Entries>> {
    let mut entries = Entries::new();
    let mut buffer = vec![0; PACKET_MAX];
    loop {
        let (n, fds) = match scm::receive(socket, &mut buffer, false) {
            Err(Errno::CONNRESET) => (0, Vec::new()),
            other => other.doing("keeper")?,
        };
        match postcard::from_bytes(&buffer[..n]) {
            Ok(FromKeeper::Entry { name, value }) => drop(entries.insert(name, Entry { value, fds })),
            Ok(FromKeeper::All) => return Ok(Some(entries)),
            Err(_) if n == 0 && entries.is_empty() => return Ok(None),
            Err(_) => return Err(Error::Protocol("the keeper ended, or is of another version".into())),
        }
    }
}

#[cfg(test)]
mod tests;

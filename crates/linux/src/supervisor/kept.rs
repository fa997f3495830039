//! What the supervisor leaves with its keeper, and how a successor takes it over: see [`crate::keeper`].

use super::inheritance::ring_of_device;
use super::say::say;
use super::{StackConfig, Supervisor, Watched, children};
use crate::devices::DeviceSpec;
use crate::devices::packet::Silencer;
use crate::error::error;
use crate::keeper::{Place, ToKeeper};
use crate::protocol::encode;
use crate::{Error, Result, memory, operator, scm};
use eft_channel::socket::{LAYOUT_OLDEST, LAYOUT_VERSION};
use eft_control::plan;
use eft_host::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::time::Duration;

/// Where the store has what an operator changed of addresses and routes.
pub const NETWORK: &str = "network";
/// What interfaces have learnt by themselves, as ip tells it and its successor gets it.
pub const AUTOCONF: &str = "autoconf";
/// The secret from which identifiers of interfaces are made.
pub const IDENTITY: &str = "identity";
/// Of which several instances of tcp make the same Fast Open cookies.
pub const COOKIE_SECRET: &str = "fastopen-secret";
/// Keys of the store whose values no command line gives: a successor finds them as they were.
pub const REMEMBERED: &[&str] = &[
    "filter",
    NETWORK,
    AUTOCONF,
    IDENTITY,
    COOKIE_SECRET,
    super::scheduling::APPLIED,
    super::scheduling::SETTINGS,
];
/// How many seconds a killed server, or a keeper that is no longer needed, may take to end.
const END_S: i64 = 10;

/// The supervisor's side of its keeper.
pub struct Kept {
    socket: OwnedFd,
    /// `None`: it is a child of a predecessor.
    child: Option<Child>,
    unsent: VecDeque<(Vec<u8>, Vec<Rc<OwnedFd>>)>,
    /// Its listening socket, until everything is sent.
    listener: Option<OwnedFd>,
    /// The one whose place it takes, which is told everything, too, until then.
    old: Option<Box<Kept>>,
    /// What it is to be told waits.
    is_held: bool,
}

impl Kept {
    /// The keeper of a predecessor, at the other end of `socket`.
    pub fn of_predecessor(socket: OwnedFd) -> Kept {
        Kept { socket, child: None, unsent: VecDeque::new(), listener: None, old: None, is_held: false }
    }

    /// Starts a keeper for a stack whose folder exists.
    fn start(config: &StackConfig, tables: &[&str]) -> Result<Kept> {
        let path = next_path(&config.name);
        let _ = std::fs::remove_file(&path);
        let listener = Some(operator::listen(&path)?);
        let (child, socket) = children::spawn_keeper(config, tables)?;
        let unsent = VecDeque::new();
        Ok(Kept { socket, child: Some(child), unsent, listener, old: None, is_held: false })
    }

    /// Everything is sent: the keeper becomes the one to which successors come, as soon as it has taken all of it.
    fn begin(&mut self, stack: &str) {
        if let Some(listener) = self.listener.take() {
            let place = Place { from: next_path(stack), to: operator::keeper_path(stack) };
            self.say(&ToKeeper::Begin { place: Some(place) }, &[&listener]);
        }
    }

    pub fn put(&mut self, name: String, value: &impl Serialize, fds: &[&OwnedFd]) {
        self.say(&ToKeeper::Put { name, value: encode(value) }, fds);
    }

    /// The same without duplicates, if it has to wait.
    pub fn put_shared(&mut self, name: String, value: &impl Serialize, fds: &[&Rc<OwnedFd>]) {
        let message = ToKeeper::Put { name, value: encode(value) };
        let borrowed: Vec<&OwnedFd> = fds.iter().map(|fd| &***fd).collect();
        self.say_with(&message, &borrowed, || Ok(fds.iter().copied().map(Rc::clone).collect()));
    }

    /// Puts a value of the store. It may be longer than a packet, so it goes along as shared memory; an empty one needs none.
    pub fn put_stored(&mut self, key: &str, value: &[u8]) {
        let name = format!("store/{key}");
        if value.is_empty() {
            return self.put(name, &(), &[]);
        }
        let written = memory::create("eft-store", value.len()).and_then(|fd| {
            memory::map(&fd, true)?.write(0, value).map_err(|_| Error::System("store".into()))?;
            Ok(fd)
        });
        if let Ok(fd) = written {
            self.put(name, &(), &[&fd]);
        }
    }

    pub fn forget(&mut self, name: String) {
        self.say(&ToKeeper::Drop { name }, &[]);
    }

    pub fn forget_stored(&mut self, key: &str) {
        self.forget(format!("store/{key}"));
    }

    /// Sends a message without waiting: what the keeper cannot take now waits here.
    fn say(&mut self, message: &ToKeeper, fds: &[&OwnedFd]) {
        self.say_with(message, fds, || fds.iter().map(|fd| fd.try_clone().map(Rc::new)).collect());
    }

    /// The same; `keep` is asked for the descriptors if they have to wait.
    fn say_with(
        &mut self,
        message: &ToKeeper,
        fds: &[&OwnedFd],
        keep: impl FnOnce() -> io::Result<Vec<Rc<OwnedFd>>>,
    ) {
        if let Some(old) = &mut self.old {
            old.say(message, fds);
        }
        let bytes = encode(message);
        if !self.is_held {
            self.flush();
            let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            if self.unsent.is_empty()
                && !super::member::is_full(scm::send(&self.socket, &bytes, &borrowed, true))
            {
                return;
            }
        }
        if let Ok(fds) = keep() {
            self.unsent.push_back((bytes, fds));
        }
    }

    /// Tells the keeper nothing until the next [`Kept::flush`]: it would take a CPU from a successor.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Whether it has everything, and so has the one whose place it takes.
    pub fn has_all(&self) -> bool {
        self.unsent.is_empty() && self.old.as_ref().is_none_or(|old| old.has_all())
    }

    /// Whether it has everything, and no other takes its place.
    fn is_alone(&self) -> bool {
        self.unsent.is_empty() && self.old.is_none()
    }

    pub fn flush(&mut self) {
        self.is_held = false;
        if let Some(old) = &mut self.old {
            old.flush();
        }
        while let Some((bytes, fds)) = self.unsent.front() {
            let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            if super::member::is_full(scm::send(&self.socket, bytes, &borrowed, true)) {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// The supervisor ends: sends what was not sent yet; then a successor may come.
    pub fn leave(mut self) {
        let until = clock::now() + Duration::from_secs(END_S as u64);
        while !self.unsent.is_empty() && clock::now() < until {
            self.flush();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the keeper whose place this one takes, once it has taken it.
    pub fn end_old(&mut self, stack: &str) {
        if self.old.is_some() && self.unsent.is_empty() && !next_path(stack).exists() {
            self.old.take().into_iter().for_each(|old| old.end());
        }
    }

    /// The stack ends on purpose, and with it the keeper.
    pub fn end(mut self) {
        self.old.take().into_iter().for_each(|old| old.end());
        self.say(&ToKeeper::End, &[]);
        let limit = Timespec { tv_sec: END_S, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit));
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

/// Where a keeper listens until it has everything.
fn next_path(stack: &str) -> PathBuf {
    operator::keeper_path(stack).with_extension("next")
}

/// The version of the entries' format.
const FORMAT: u32 = 3;

/// Says in words what makes two configurations the same stack: connections survive only if devices, addresses and
/// memory are the same. Components may run elsewhere, queues may have other lengths, and arenas may be from an older
/// eft, which are converted.
/// An eft that knows of no receive rings would find nothing at a packet socket that has one.
fn likeness(config: &StackConfig, pages: u32, rings: bool) -> String {
    let devices = config.devices.iter().map(|d| {
        let addresses: Vec<String> = d.addresses.iter().map(ToString::to_string).collect();
        let auto = d.auto.iter().map(|method| format!(" {method}"));
        let ring = if rings && matches!(d.spec, DeviceSpec::Packet(_)) { " with a ring" } else { "" };
        format!("{} {}{}{ring}", d.text, addresses.join(" "), auto.collect::<String>())
    });
    let devices: Vec<String> = devices.collect();
    format!("form {FORMAT}, pages {pages}; {}; {}", devices.join(", "), plan::likeness(&config.topology))
}

/// The likenesses that a predecessor may have, newest first: its programs use a version of the pages that this eft
/// speaks, too, and its packet sockets have rings or not.
pub fn likenesses(config: &StackConfig) -> Vec<String> {
    let versions = (LAYOUT_OLDEST..=LAYOUT_VERSION).rev();
    let mut likenesses: Vec<String> =
        versions.flat_map(|pages| [true, false].map(|rings| likeness(config, pages, rings))).collect();
    likenesses.dedup();
    likenesses
}

/// What a stack says of itself.
fn own_likeness(config: &StackConfig) -> String {
    likeness(config, LAYOUT_VERSION, config.devices.iter().any(|d| d.ring.is_some()))
}

impl Supervisor {
    /// Whether connections would survive at a stack of this likeness.
    pub(super) fn may_hand_over(&self, wanted: &str) -> Result<()> {
        if wanted != own_likeness(&self.config) {
            return Err(error!(
                Refused,
                "stack `{}` runs with other devices, addresses or sizes: end it first", self.config.name
            ));
        }
        match self.kept {
            Some(_) => Ok(()),
            None => Err(error!(Busy, "stack `{}` has no keeper at the moment: try again", self.config.name)),
        }
    }

    /// Makes sure that there is a keeper and that it has everything.
    pub(super) fn keep_everything(&mut self) {
        if self.kept.is_none() {
            let tables: Vec<&str> = self.silencers.iter().map(Silencer::table).collect();
            match Kept::start(&self.config, &tables) {
                Ok(kept) => self.kept = Some(kept),
                Err(why) => return self.without_keeper(&why),
            }
        }
        let Some(mut kept) = self.kept.take() else { return };
        if let Err(why) = self.watch(&kept.socket, Watched::Keeper) {
            return self.without_keeper(&why);
        }
        kept.put("stack".into(), &own_likeness(&self.config), &[]);
        kept.put("applications".into(), &(), &[&self.applications]);
        for (i, d) in self.config.devices.iter().enumerate() {
            let nic = self.members.iter().find(|m| m.peer == eft_messages::ComponentId::nic(i as u8));
            let fds: Vec<&OwnedFd> = nic.iter().flat_map(|m| &m.device).collect();
            kept.put(format!("device/{i}"), &(d.mac, d.mtu), &fds);
            if let Some(shape) = d.ring {
                kept.put(ring_of_device(i), &shape, &[]);
            }
        }
        self.keeping.keep(&mut kept);
        self.kept = Some(kept);
        (0..self.members.len()).for_each(|i| self.keep_member(i));
        (0..self.members.len()).for_each(|i| self.keep_standby(i));
        REMEMBERED.iter().for_each(|key| self.keep_stored(key));
        self.keep_for_adoption();
        self.kept.iter_mut().for_each(|kept| kept.begin(&self.config.name));
    }

    /// Replaces a predecessor's keeper, which has that eft's version and patience, by one of this eft's.
    pub(super) fn renew_keeper(&mut self) {
        if self.kept.as_ref().is_none_or(|kept| kept.child.is_some()) {
            return;
        }
        let Some(old) = self.kept.take() else { return };
        self.unwatch(&old.socket, Watched::Keeper);
        self.keep_everything();
        match &mut self.kept {
            Some(kept) => kept.old = Some(Box::new(old)),
            None => {
                let _ = self.watch(&old.socket, Watched::Keeper);
                self.kept = Some(old);
            }
        }
    }

    fn without_keeper(&mut self, why: &Error) {
        say!(
            "eft {}: there is no keeper ({why}): if this supervisor dies, so do the connections",
            self.config.name
        );
    }

    /// Puts a component's memory into the keeper, and its process, which must be dead before there is another.
    pub(super) fn keep_member(&mut self, i: usize) {
        let (Some(kept), member) = (&mut self.kept, &self.members[i]) else { return };
        let fds: Vec<&OwnedFd> = [&*member.status_page.own].into_iter().chain(&member.arena).collect();
        kept.put(format!("member/{}", member.name), &member.generation, &fds);
        if let Some(pidfd) = member.child.as_ref().and_then(|child| child.borrow().pidfd()) {
            kept.put(format!("process/{}", member.name), &(), &[&pidfd]);
        }
    }

    /// Puts a standby into the keeper. It may have the memory of the server whose place it takes before the keeper hears of that.
    pub(super) fn keep_standby(&mut self, i: usize) {
        if self.members[i].standby.is_kept()
            && let Some(pid) = self.members[i].standby.pid()
        {
            self.keep_newcomer(i, pid);
        }
    }

    /// The same of a newcomer, which is a child that has not been reaped.
    pub(super) fn keep_newcomer(&mut self, i: usize, pid: u32) {
        let (Some(kept), member) = (&mut self.kept, &self.members[i]) else { return };
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let Some(pidfd) = pidfd {
            kept.put(format!("process/{}/standby", member.name), &(), &[&pidfd]);
        }
    }

    /// Keeps the keeper from the CPU while this server, which is dead, is succeeded by a process that it knows.
    pub(super) fn hold_keeper(&mut self, i: usize) {
        let knows = self.members[i].standby.is_kept() || self.is_awaited(i);
        if let Some(kept) = self.kept.as_mut().filter(|kept| knows && kept.is_alone()) {
            kept.hold();
        }
    }

    pub(super) fn keep_stored(&mut self, key: &str) {
        if let (Some(kept), Some((_, value))) = (&mut self.kept, self.store.get(key)) {
            kept.put_stored(key, value);
        }
    }

    /// The keeper's socket is readable: the keeper has ended.
    pub(super) fn keeper_ended(&mut self) {
        let Some(mut kept) = self.kept.take() else { return };
        self.unwatch(&kept.socket, Watched::Keeper);
        if let Some(mut child) = kept.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        say!("eft {}: the keeper ended; there will be another", self.config.name);
        self.keeper_due = Some(clock::now() + super::OLD_POOLS);
    }
}

#[cfg(test)]
pub mod tests;

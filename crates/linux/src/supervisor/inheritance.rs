//! What the keeper has of a predecessor, which its successor takes over: see [`crate::keeper`].

use crate::keeper::Entries;
use crate::protocol::RingShape;
use crate::{Error, Result, life, memory};
use eft_base::MacAddress;
use eft_control::store::Store;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use serde::de::DeserializeOwned;
use std::os::fd::{AsRawFd, OwnedFd};

/// How many seconds a killed server may take to end.
const END_S: i64 = 10;

/// Makes sure that a process is dead.
pub fn confirm_death(name: &str, process: &OwnedFd) -> Result<()> {
    let _ = pidfd_send_signal(process, Signal::KILL);
    // It may have stepped aside, and would not end beside busy programs.
    pid_of(process).into_iter().for_each(life::step_forward);
    let limit = Timespec { tv_sec: END_S, tv_nsec: 0 };
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)) {
        Ok(1..) => Ok(()),
        _ => Err(Error::Busy(format!("{name} of the stack that died does not end: it waits in the kernel"))),
    }
}

/// Its number, if it has not ended yet.
fn pid_of(process: &OwnedFd) -> Option<u32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok().filter(|pid| *pid != 0)
}

/// The entries of a predecessor, which are taken one by one.
pub struct Inheritance {
    entries: Entries,
    /// Its servers live, and are taken over as they are.
    pub adopts: bool,
    /// The socket in which lies what a dead sockets had said to a dead supervisor.
    pub(super) last_words: Option<OwnedFd>,
}

/// A device that a predecessor opened.
pub struct InheritedDevice {
    pub mac: MacAddress,
    pub mtu: u16,
    pub ring: Option<RingShape>,
    pub fds: Vec<OwnedFd>,
}

/// The entry of a device's receive ring.
pub fn ring_of_device(number: usize) -> String {
    format!("ring/{number}")
}

impl Inheritance {
    pub fn new(entries: Entries) -> Inheritance {
        Inheritance { entries, adopts: false, last_words: None }
    }

    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        postcard::from_bytes(&self.entries.get(name)?.value).ok()
    }

    /// The first descriptor of an entry.
    pub fn descriptor(&self, name: &str) -> Option<&OwnedFd> {
        self.entries.get(name)?.fds.first()
    }

    pub fn names(&self, prefix: &str) -> Vec<String> {
        self.entries.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    /// Makes sure that a predecessor is dead: only then may a successor map its arena.
    pub fn confirm_death(&self, name: &str) -> Result<()> {
        self.descriptor(name).map_or(Ok(()), |process| confirm_death(name, process))
    }

    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<(T, Vec<OwnedFd>)> {
        let entry = self.entries.remove(name)?;
        Some((postcard::from_bytes(&entry.value).ok()?, entry.fds))
    }

    pub fn device(&mut self, number: usize) -> Option<InheritedDevice> {
        let ((mac, mtu), fds) = self.take(&format!("device/{number}"))?;
        // A predecessor that knew of no rings has no such entry.
        let ring = self.take(&ring_of_device(number)).map(|(shape, _)| shape);
        Some(InheritedDevice { mac, mtu, ring, fds })
    }

    /// The socket at which programs connect.
    pub fn applications(&mut self) -> Option<OwnedFd> {
        self.take::<()>("applications")?.1.into_iter().next()
    }

    /// All entries below a folder, with the numbers in their names.
    pub fn numbered<T: DeserializeOwned>(&mut self, folder: &str) -> Vec<(Vec<u64>, T, Vec<OwnedFd>)> {
        let prefix = format!("{folder}/");
        let names = self.names(&prefix);
        let numbers = |name: &str| {
            name[prefix.len()..].split('/').map(str::parse).collect::<std::result::Result<_, _>>()
        };
        let taken = names.into_iter().filter_map(|name| {
            let (value, fds) = self.take(&name)?;
            Some((numbers(&name).ok()?, value, fds))
        });
        taken.collect()
    }

    pub fn fill_store(&mut self, store: &mut Store, keys: &[&str]) {
        for key in keys {
            let Some((_, fds)) = self.take::<()>(&format!("store/{key}")) else { continue };
            let read = |fd: &OwnedFd| {
                let segment = memory::map(fd, false).ok()?;
                let mut bytes = vec![0; segment.len()];
                segment.read(0, &mut bytes).ok().map(|()| bytes)
            };
            // An empty value comes without memory.
            if let Some(bytes) = fds.first().map_or(Some(Vec::new()), read) {
                store.publish(key, bytes);
            }
        }
    }
}

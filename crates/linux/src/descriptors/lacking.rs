//! Sockets whose programs are to be told something, and whose far ends are not here.
//!
//! sockets gives a far end to the supervisor, which gives it to the transport. Who errs on that way loses it, and the program, which
//! has a descriptor, waits for ever. So a transport that has missed one for a second says so, each second, and sockets, which has
//! a duplicate, gives it once more.

use super::FarEnds;
use eft_base::{Instant, SocketId};
use eft_channel::socket::{SocketPage, wish};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A far end usually comes within a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most that are missed at a time: pages say which sockets have descriptors, and a program may write into its own what it likes.
const MOST: usize = 64;

/// When each is asked for; `None`: it was missed after the last look at the clock.
#[derive(Default)]
pub struct Lacking(BTreeMap<SocketId, Option<Instant>>);

impl Lacking {
    /// There is something to tell, and no descriptor for that.
    pub fn note(&mut self, socket: SocketId) {
        if self.0.len() < MOST {
            self.0.entry(socket).or_default();
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|due| *due).min()
    }
}

/// Whether the program has a descriptor of it. Connections that wait to be accepted have none, and neither have those that are held
/// without one.
pub fn has_descriptor(page: &SocketPage) -> bool {
    page.kind() != 0 && page.inode() != 0 && page.wishes() & wish::HELD == 0
}

/// Whether this is a socket for messages, as all far ends are.
pub fn is_far_end(fd: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_type(fd) == Ok(rustix::net::SocketType::SEQPACKET)
}

impl FarEnds {
    /// The sockets whose far ends are to be asked for now.
    pub fn lacking(&mut self, now: impl Fn() -> Instant) -> Vec<SocketId> {
        let FarEnds { lacking, ends, .. } = self;
        if lacking.0.is_empty() {
            return Vec::new();
        }
        let now = now();
        let is_missed = |socket: &SocketId| {
            ends.get(socket).is_some_and(|far| {
                far.fd.is_none() && far.page.incarnation() == far.incarnation && has_descriptor(&far.page)
            })
        };
        lacking.0.retain(|socket, _| is_missed(socket));
        let mut asked = Vec::new();
        for (socket, due) in &mut lacking.0 {
            if due.is_some_and(|due| now >= due) {
                asked.push(*socket);
            }
            if due.is_none_or(|due| now >= due) {
                *due = Some(now + PATIENCE);
            }
        }
        asked
    }

    /// When [`FarEnds::lacking`] has something to say at the latest.
    pub fn lacking_deadline(&self) -> Option<Instant> {
        self.lacking.deadline()
    }
}

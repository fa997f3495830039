//! Hears what servers say; nothing that sockets says of programs' descriptors is lost, whoever dies meanwhile.
//!
//! A message of a server stays in its control socket until what follows from it is done: a supervisor that dies before leaves it to
//! its successor, to which it is no harm that it comes twice. A far end is in sockets and in the message about it alone until the
//! supervisor has given it to the keeper; if the message was lost, the program's socket would never be heard of again. So what
//! sockets says stays until the keeper has what follows from it. And what a dead sockets had still said is heard.
//!
//! Most connections are short. So the keeper is told of far ends some milliseconds later, and of those that are gone by then it is
//! told nothing. Their messages are looked at one behind the other meanwhile (SO_PEEK_OFF), and taken out together.

use super::Supervisor;
use crate::protocol::{FromServer, PACKET_MAX};
use crate::scm;
use eft_base::Instant;
use eft_host::clock;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long messages stay in sockets' control socket after they were heard, and how many.
const PATIENCE: Duration = Duration::from_millis(20);
const HEARD_MAX: usize = 64;

/// Messages of sockets that were heard and are still in its control socket.
#[derive(Default)]
pub struct Heard {
    count: usize,
    /// When the first of them came.
    since: Option<Instant>,
    /// There may be more that was not looked at.
    pub more: bool,
}

impl Heard {
    /// When they are to be settled.
    pub fn due(&self) -> Option<Instant> {
        // Those that are settled make room for more.
        if self.more && self.count < HEARD_MAX {
            Some(Instant::ZERO)
        } else {
            self.since.map(|since| since + PATIENCE)
        }
    }
}

/// What follows from the message lies with the keeper, or no supervisor needs to know.
fn is_lasting(message: &FromServer) -> bool {
    match message {
        FromServer::Keep { .. } | FromServer::Drop { .. } | FromServer::KeepLoopback { .. } => true,
        FromServer::KeepConnection { .. } | FromServer::DropConnection { .. } => true,
        FromServer::CloseDomain { .. } | FromServer::KeepOwner { .. } => true,
        // A program that waits for a domain asks sockets' successor again.
        FromServer::NewDomain { .. } => false,
        FromServer::Ready { .. }
        | FromServer::Suits { .. }
        | FromServer::Converted
        | FromServer::Placed { .. }
        | FromServer::Arrange { .. }
        | FromServer::Remember { .. }
        | FromServer::Answer { .. }
        | FromServer::HasDomain { .. }
        | FromServer::Dying { .. }
        | FromServer::Accuse { .. }
        | FromServer::AccuseQueue { .. }
        | FromServer::LacksPool { .. }
        | FromServer::Lacks { .. }
        | FromServer::Altered => false,
    }
}

impl Supervisor {
    pub(super) fn server_speaks(&mut self, i: usize) {
        // Kept, since clearing so many bytes for each message takes longer than handling it.
        let mut buffer = std::mem::take(&mut self.packet);
        buffer.resize(PACKET_MAX, 0);
        match self.members[i].peer {
            ComponentId::SOCKETS => self.hear_sockets(i, &mut buffer),
            _ => self.hear(i, &mut buffer),
        }
        self.packet = buffer;
    }

    fn hear(&mut self, i: usize, buffer: &mut [u8]) {
        for _ in 0..64 {
            let Some(control) = &self.members[i].control else { return };
            let (n, fds) = match scm::peek_with_sender(control, buffer) {
                Ok((0, ..)) => return self.fell_silent(i),
                Ok((n, fds, _)) => (n, fds),
                Err(_) => return,
            };
            // A server that went mad may send anything; what does not decode is ignored.
            if let Ok(message) = postcard::from_bytes::<FromServer>(&buffer[..n]) {
                self.heard(i, message, fds);
            }
            if let Some(control) = &self.members[i].control {
                let _ = scm::take_out(control);
            }
        }
    }

    fn hear_sockets(&mut self, i: usize, buffer: &mut [u8]) {
        self.heard_of.more = false;
        loop {
            if self.heard_of.count >= HEARD_MAX {
                self.settle();
                self.heard_of.more = true;
                return;
            }
            let Some(control) = &self.members[i].control else { return };
            let (n, fds) = match scm::peek_with_sender(control, buffer) {
                Ok((0, ..)) => return self.fell_silent(i),
                Ok((n, fds, _)) => (n, fds),
                Err(_) => return,
            };
            self.heard_of.count += 1;
            self.heard_of.since.get_or_insert_with(clock::now);
            let message = postcard::from_bytes::<FromServer>(&buffer[..n]);
            let may_wait = matches!(&message, Ok(FromServer::Keep { .. } | FromServer::Drop { .. }));
            if let Ok(message) = message {
                self.heard(i, message, fds);
            }
            if !may_wait {
                self.settle();
            }
        }
    }

    /// Messages that were heard some time ago are settled; those that nobody has looked at yet are heard.
    pub(super) fn hear_on(&mut self) {
        if self.heard_of.due().is_none_or(|due| clock::now() < due) {
            return;
        }
        if self.heard_of.more {
            if let Some(i) = self.index(ComponentId::SOCKETS) {
                self.server_speaks(i);
            }
        } else {
            self.settle();
        }
    }

    /// Gives the keeper what it does not have of what was heard, and takes the messages out if it has all. If it has not yet, that is
    /// done some time later.
    pub(super) fn settle(&mut self) {
        let control = self.index(ComponentId::SOCKETS).and_then(|i| self.members[i].control.take());
        self.settle_with(control.as_ref());
        if let Some(i) = self.index(ComponentId::SOCKETS) {
            self.members[i].control = control;
        }
    }

    fn settle_with(&mut self, control: Option<&OwnedFd>) {
        self.keep_far_ends();
        if self.kept.as_ref().is_some_and(|kept| !kept.has_all()) {
            self.heard_of.since = self.heard_of.since.map(|_| clock::now());
            return;
        }
        let count = std::mem::take(&mut self.heard_of.count);
        self.heard_of.since = None;
        if let Some(control) = control {
            scm::take_out_some(control, count);
        }
    }

    /// Handles what a dead sockets had still said. It stays in the socket, which the keeper has, too, until it is told to forget
    /// that: behind what follows from it.
    pub(super) fn hear_the_rest(&mut self, control: &OwnedFd) {
        self.keep_far_ends();
        let mut buffer = vec![0; PACKET_MAX];
        while let Ok((n @ 1.., fds, _)) = scm::peek_with_sender(control, &mut buffer) {
            match postcard::from_bytes::<FromServer>(&buffer[..n]) {
                Ok(message) if is_lasting(&message) => self.heard_of_applications(message, fds),
                _ => {}
            }
        }
        self.keep_far_ends();
    }
}

//! The custodian's connection to sockets.

use crate::protocol::ArenaShape;
use crate::scm;
use eft_channel::socket::{Arena, LAYOUT_VERSION};
use eft_messages::control::{REPLY_LEN, Reply, Request, op};
use rustix::event::{PollFd, PollFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use zerocopy::{FromBytes, IntoBytes};

/// How long sockets may take to answer: it may have died and be on its way back.
const PATIENCE: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 2, tv_nsec: 0 };

/// There is no stack, or it has ended.
pub struct Lost;

type Note = (Reply, Option<OwnedFd>);

pub struct Link {
    fd: OwnedFd,
    sequence: u64,
    /// Notes that arrived while an answer was awaited.
    early: Vec<Note>,
}

impl Link {
    pub fn new(fd: OwnedFd) -> Link {
        Link { fd, sequence: 0, early: Vec::new() }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn take_early(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.early)
    }

    /// The next note; `None` if none has come.
    pub fn receive(&mut self) -> Result<Option<Note>, Lost> {
        let mut bytes = [0; REPLY_LEN];
        match scm::receive(&self.fd, &mut bytes, true) {
            Ok((REPLY_LEN, fds)) => {
                let reply = Reply::read_from_bytes(&bytes).map_err(|_| Lost)?;
                Ok(Some((reply, fds.into_iter().next())))
            }
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Ok(_) | Err(_) => Err(Lost),
        }
    }

    /// Sends a request, waits for the answer and returns its error number.
    pub fn ask(&mut self, request: Request, with: &[&OwnedFd]) -> Result<i32, Lost> {
        self.sequence += 1;
        let request = Request { version: LAYOUT_VERSION, sequence: self.sequence, ..request };
        self.send(&request, with)?;
        loop {
            while let Some((reply, fd)) = self.receive()? {
                if reply.sequence == self.sequence {
                    return Ok(reply.errno);
                }
                self.early.push((reply, fd));
            }
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&PATIENCE)) {
                Ok(0) => return Err(Lost),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Lost),
            }
        }
    }

    fn send(&self, request: &Request, with: &[&OwnedFd]) -> Result<(), Lost> {
        let with: Vec<_> = with.iter().map(|fd| fd.as_fd()).collect();
        scm::send(&self.fd, request.as_bytes(), &with, false).map_err(|_| Lost)
    }

    /// Makes a domain at the stack from an arena that already exists.
    pub fn bring_domain(&mut self, arena: &Arena, fd: &OwnedFd, bell: &OwnedFd) -> Result<(), Lost> {
        let geometry = arena.geometry();
        let args = [geometry.slots as u32, geometry.send_len as u32, geometry.receive_len as u32, 0];
        match self.ask(Request { op: op::NEW_DOMAIN, args, ..Request::default() }, &[fd, bell])? {
            0 => Ok(()),
            _ => Err(Lost),
        }
    }

    /// Gives the stack the root socket: from now on the domain's processes say hello to this stack.
    pub fn pass_root(&self, root: &OwnedFd) -> Result<(), Lost> {
        let request = Request { version: LAYOUT_VERSION, op: op::ROOT, ..Request::default() };
        self.send(&request, &[root])
    }
}

/// The shape of an arena, as a reply to Hello or NEW_DOMAIN gives it.
pub fn shape(reply: &Reply) -> ArenaShape {
    let [slots, send_len, receive_len, _] = reply.args.map(|n| n as usize);
    ArenaShape { slots, send_len, receive_len }
}

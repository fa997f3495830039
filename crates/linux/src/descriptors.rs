//! The far ends of applications' descriptors: the readiness of eft sockets, mirrored into the kernel.
//!
//! `eft_channel::token` explains the protocol. The read token is one empty message; the plug is one message of
//! [`PLUG_LEN`] bytes.
//!
//! At the end of a stream one more message goes into the descriptor. No program takes it out. Then the far end is shut
//! down: for sending, or in both directions if the connection is over (the descriptor shows HUP). That message tells
//! the two apart: a far end that was shut down here looks like one whose descriptor was closed, except that the message
//! is still there. See [`is_closed`].

mod handed;
mod lacking;
mod newcomers;
mod owners;

use crate::scm;
use eft_base::{DomainId, Instant, SocketId};
use eft_channel::lookers::{Looker, Told};
use eft_channel::socket::{Arena, SocketPage, flag};
use handed::Handed;
pub use lacking::is_far_end;
use lacking::{Lacking, has_descriptor};
use newcomers::Newcomers;
use owners::Owners;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Bytes of a plug: enough to fill a send buffer of the smallest size.
pub const PLUG_LEN: usize = 1500;

/// [`SocketPage::kind`] of a datagram socket.
const DATAGRAM: u32 = 2;

struct Far {
    /// `None` until it is given, which that of a short connection never is.
    fd: Option<OwnedFd>,
    page: SocketPage,
    arena: Arena,
    /// Of the socket that the slot had.
    incarnation: u32,
    /// Which input of those that came before their far ends was its first.
    heard: Option<u64>,
    ended: bool,
    hung_up: bool,
}

impl Far {
    fn new(fd: Option<OwnedFd>, page: SocketPage, arena: &Arena) -> Far {
        let incarnation = page.incarnation();
        Far { fd, page, arena: arena.clone(), incarnation, heard: None, ended: false, hung_up: false }
    }

    /// Takes the plug out. The page's word says until the end that there is a plug, so a successor takes it out if this
    /// process dies.
    fn take_plug(&self) {
        let Some(fd) = &self.fd else { return };
        let mut plug = [0u8; PLUG_LEN];
        let _ = rustix::net::recv(fd, &mut plug, RecvFlags::DONTWAIT);
        self.page.write_plug().taken();
    }
}

/// The far ends of one transport's sockets.
#[derive(Default)]
pub struct FarEnds {
    ends: HashMap<SocketId, Far>,
    arenas: HashMap<DomainId, Arena>,
    /// System calls made on far ends since the number was last read.
    pub calls: u64,
    /// Sockets whose message the kernel had no memory for. True: a token that the page already announces. False: the
    /// end of a stream.
    owed: Vec<(SocketId, bool)>,
    /// Ends that are not in line with their sockets yet.
    new: Newcomers,
    /// Sockets that had input before their far ends.
    early: u64,
    /// Input that threads are woken for, without a token.
    handed: Handed,
    owners: Owners,
    lacking: Lacking,
}

impl FarEnds {
    /// From now on threads that sleep on pages of this domain are woken, also of sockets whose far ends are not here.
    pub fn add_domain(&mut self, domain: DomainId, arena: &Arena) {
        self.arenas.insert(domain, arena.clone());
    }

    /// Brings a descriptor in line with its socket as it is now, if that is still to be done.
    fn take_up_one(&mut self, socket: SocketId) -> bool {
        let Some((fd, arena)) = self.new.remove(socket) else { return false };
        self.bring_in_line(socket, fd, &arena);
        true
    }

    /// The end of the socket that the slot has now, taken up if that is still to be done. One that is not here is noted
    /// without a descriptor, which is brought in line when it comes.
    fn end(&mut self, socket: SocketId) -> Option<&mut Far> {
        if !self.take_up_one(socket)
            && self.ends.get(&socket).is_none_or(|far| far.page.incarnation() != far.incarnation)
        {
            let arena = self.arenas.get(&socket.domain)?;
            self.ends.insert(socket, Far::new(None, arena.socket(socket.slot)?, arena));
        }
        let far = self.ends.get_mut(&socket)?;
        if far.fd.is_none() && has_descriptor(&far.page) {
            self.lacking.note(socket);
        }
        Some(far)
    }

    fn bring_in_line(&mut self, socket: SocketId, fd: OwnedFd, arena: &Arena) {
        let Some(page) = arena.socket(socket.slot) else { return };
        // A predecessor may have died after it set the token and before it sent the message, or while it took a plug
        // out.
        let token_lost = page.read_token().is_posted() && unread_by_peer(&fd) == 0;
        let plug_left = page.write_plug().is_half_taken();
        let far = Far::new(Some(fd), page, arena);
        if plug_left {
            far.take_plug();
        }
        self.ends.insert(socket, far);
        if token_lost {
            self.send(socket, send_token);
        }
        self.mirror(socket);
    }

    pub fn remove(&mut self, socket: SocketId) {
        self.ends.remove(&socket);
        self.new.remove(socket);
    }

    /// The socket is gone.
    pub fn drop_all(&mut self, socket: SocketId) {
        self.remove(socket);
        self.owners.remove(socket);
    }

    /// Whom [`Self::urgent`] signals from now on.
    pub fn set_owner(&mut self, socket: SocketId, bell: OwnedFd, is_new: bool) {
        let page = self.arenas.get(&socket.domain).and_then(|arena| arena.socket(socket.slot));
        let Some(page) = page else { return };
        if is_new {
            self.calls += Owners::greet(&bell);
        }
        self.owners.insert(socket, bell, page);
    }

    /// Urgent data are announced.
    pub fn urgent(&mut self, socket: SocketId) {
        self.calls += self.owners.signal(socket);
    }

    pub fn remove_domain(&mut self, domain: DomainId) {
        self.arenas.remove(&domain);
        self.ends.retain(|s, _| s.domain != domain);
        self.new.remove_domain(domain);
        self.owners.remove_domain(domain);
    }

    /// Derives the descriptor's state from the page.
    fn mirror(&mut self, socket: SocketId) {
        let Some(far) = self.ends.get(&socket) else { return };
        let (flags, receivable) = (far.page.flags(), far.page.receivable());
        if flags & flag::DEAD != 0 {
            return self.hang_up(socket);
        }
        // A datagram may be refused before its socket's far end arrives here.
        let refused = far.page.kind() == DATAGRAM && (far.page.error() != 0 || far.page.has_errors());
        if receivable > 0 || refused {
            self.readable(socket);
        }
        // An unconnected stream has a plug only while a connect is on its way.
        let settled = flags & (flag::CONNECTED | flag::SEND_CLOSED) != 0;
        if settled || self.ends[&socket].page.kind() == DATAGRAM {
            let page = &self.ends[&socket].page;
            if page.is_worth_writing() || flags & flag::SEND_CLOSED != 0 {
                self.writable(socket);
            }
        }
        if flags & flag::RECEIVE_END != 0 {
            self.end_of_stream(socket);
        }
    }

    pub fn readable(&mut self, socket: SocketId) {
        let next = self.early;
        let Some(far) = self.end(socket).filter(|far| !far.ended) else { return };
        if far.fd.is_none() && far.heard.is_none() {
            far.heard = Some(next);
            self.early = next + 1;
        }
        let Some(far) = self.ends.get(&socket) else { return };
        if self.handed.take_over(socket, &far.page) {
            return;
        }
        match self.handed.tell(socket, &far.page, &far.arena) {
            Told::Marked => {}
            Told::Absent => drop(self.post(socket)),
            Told::Asleep(sleep) => {
                if self.post(socket)
                    && let Some(looker) =
                        self.ends.get(&socket).and_then(|far| looker_of(&far.page, &far.arena))
                {
                    looker.rang(sleep);
                }
            }
        }
    }

    /// Makes the descriptor show the input that there is. True: a message was sent for that.
    fn post(&mut self, socket: SocketId) -> bool {
        let posts = |page: &SocketPage| {
            page.read_token().post(page.receive_end())
                || (page.has_more_to_report() && page.read_token().post_anyway())
                || page.post_edge()
        };
        let is_due =
            self.ends.get(&socket).is_some_and(|far| far.fd.is_some() && !far.ended && posts(&far.page));
        if is_due {
            self.send(socket, send_token);
        }
        is_due
    }

    /// Sends a token. If the kernel has no memory for it, it is sent later.
    fn send(&mut self, socket: SocketId, send: impl Fn(&OwnedFd) -> bool) {
        let Some(Far { fd: Some(fd), page, .. }) = self.ends.get(&socket) else { return };
        self.calls += 1;
        if !send(fd) {
            self.owed.push((socket, true));
        }
        wake_sleepers(page);
    }

    /// At the end of a turn: wakes the threads that are to take its input, and notes when it was told of. Returns when to call [`Self::check_handed`].
    pub fn wake_readers(&mut self, now: impl Fn() -> Instant) -> Option<Instant> {
        if self.handed.is_idle() {
            return None;
        }
        let page_of = |socket| self.ends.get(&socket).map(|far| &far.page);
        self.calls += self.handed.wake(page_of, &now);
        self.handed.forget_taken(page_of);
        self.handed.deadline()
    }

    /// Posts tokens for input that no thread has taken in time.
    pub fn check_handed(&mut self, now: impl Fn() -> Instant) {
        while let Some(socket) = self.handed.overdue(&now) {
            self.take_up_one(socket);
            let is_due = |far: &Far| !far.page.is_told(far.page.receive_end());
            let far = self.ends.get(&socket).filter(|far| is_due(far));
            if far.is_some_and(|far| !self.handed.take_over(socket, &far.page)) {
                self.post(socket);
            }
        }
    }

    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Sends what could not be sent before.
    pub fn settle(&mut self) {
        for (socket, token) in std::mem::take(&mut self.owed) {
            match token {
                true => self.send(socket, send_token),
                false => self.mirror(socket),
            }
        }
    }

    pub fn writable(&mut self, socket: SocketId) {
        let far = self.end(socket);
        if let Some(far) = far.filter(|far| far.fd.is_some() && far.page.write_plug().take()) {
            far.take_plug();
            wake_sleepers(&far.page);
            self.calls += 1;
        }
    }

    /// Marks the end of the stream: the descriptor is readable for good, with RDHUP.
    pub fn end_of_stream(&mut self, socket: SocketId) {
        self.shut(socket, Shutdown::Write);
    }

    /// Marks a connection that is over in both directions: readable and writable for good, with RDHUP and HUP.
    pub fn hang_up(&mut self, socket: SocketId) {
        self.shut(socket, Shutdown::Both);
        self.writable(socket);
    }

    fn shut(&mut self, socket: SocketId, how: Shutdown) {
        let mut calls = 0;
        let Some(far) = self.end(socket) else { return };
        if far.hung_up || far.ended && how != Shutdown::Both {
            return;
        }
        if let Some(fd) = &far.fd {
            if !far.ended {
                calls += 1;
                if !send_token(fd) {
                    // Without this message the end would look like the last close.
                    return self.owed.push((socket, false));
                }
            }
            far.ended = true;
            far.hung_up = how == Shutdown::Both;
            calls += 1;
            let _ = rustix::net::shutdown(fd, how);
        }
        wake_sleepers(&far.page);
        self.calls += calls;
    }
}

/// The looker whose marks tell of the input, if the page names one that exists.
fn looker_of<'a>(page: &SocketPage, arena: &'a Arena) -> Option<&'a Looker> {
    page.looker().and_then(|number| arena.looker(number))
}

/// Wakes threads that sleep on the page and not in the kernel for their descriptor.
fn wake_sleepers(page: &SocketPage) {
    if page.sleepers().silence() {
        crate::futex::wake(page.sleepers().word());
    }
}

/// Puts one empty message into the descriptor of this far end. False: the kernel has no memory for it.
pub fn send_token(fd: &OwnedFd) -> bool {
    let sent = scm::insist(|| rustix::net::send(fd, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL));
    !matches!(sent, Err(Errno::NOMEM | Errno::NOBUFS))
}

/// The kernel's socket `shadow` is readable: makes the eft socket beside it, whose far end is given, readable as well.
/// A program may have emptied the shadow meanwhile; then nothing is sent, since a readable descriptor with nothing to
/// read misleads.
pub fn shadow_ready(page: &SocketPage, far: &OwnedFd, shadow: &OwnedFd) {
    page.add_shadow_arrival();
    if is_readable(shadow) && (page.read_token().post_anyway() || page.post_edge()) {
        // If the message is lost, the program notices with the next one.
        let _ = send_token(far);
    }
}

/// Whether a descriptor is readable; an error counts, too.
fn is_readable(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let zero = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&zero)).is_ok_and(|n| n > 0)
}

/// Whether the last descriptor of this far end was closed, by any process.
///
/// A far end that was shut down here in both directions shows HUP, too, but then a message lies in the descriptor
/// ([`FarEnds::end_of_stream`]). A descriptor that is closed with a message in it makes its far end show ERR (the
/// kernel's `unix_release_sock`), and soon holds no message any more.
pub fn is_closed(far: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(far, PollFlags::empty())];
    let zero = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = rustix::event::poll(&mut fds, Some(&zero));
    let said = fds[0].revents();
    said.contains(PollFlags::HUP) && (said.contains(PollFlags::ERR) || unread_by_peer(far) == 0)
}

/// Bytes of memory of the messages that the peer has not taken (SIOCOUTQ); 0 if there are none.
fn unread_by_peer(fd: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd;
    let mut n: i32 = 0;
    // SAFETY: TIOCOUTQ (= SIOCOUTQ) writes one int.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut n) };
    n
}

#[cfg(test)]
mod tests;

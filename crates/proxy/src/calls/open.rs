//! `socket`, and giving the program a descriptor.

use super::{Answer, Outcome};
use crate::notify::Notification;
use crate::socket::{Socket, State};
use crate::sys::{self, Errno, Result};
use crate::world::World;
use libc::c_int;
use std::os::fd::{AsRawFd, OwnedFd};

pub fn socket(world: &mut World, notification: &Notification) -> Answer {
    let [domain, kind, protocol] = [0, 1, 2].map(|n| notification.args[n] as c_int);
    let flags = kind & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let far = sys::socket(domain, kind & !flags, protocol)?;
    let state = match kind & !flags {
        libc::SOCK_STREAM => State::Fresh,
        libc::SOCK_DGRAM => State::Datagrams,
        _ => return Err(Errno(libc::EPROTONOSUPPORT)),
    };
    give(world, notification, far, state, flags).map_err(|(errno, _)| errno)
}

/// Answers a call with a descriptor of a new pair whose other end leads to `far`. Returns `far` with an error.
pub fn give(
    world: &mut World,
    notification: &Notification,
    far: OwnedFd,
    state: State,
    flags: c_int,
) -> std::result::Result<Outcome, (Errno, OwnedFd)> {
    let (near, program, inode) = match pair_for(state, flags) {
        Ok(pair) => pair,
        Err(errno) => return Err((errno, far)),
    };
    let cloexec = flags & libc::SOCK_CLOEXEC != 0;
    let number = match world.listener.answer_descriptor(notification.id, &program, cloexec) {
        Ok(number) => number,
        Err(errno) => return Err((errno, far)),
    };
    drop(program);
    let mut socket = Socket::new(near, far, inode, state);
    socket.seen = (notification.thread, number);
    // A socket that cannot be watched is closed, which the program notices.
    if let Ok(index) = world.sockets.insert(socket) {
        world.again.push(index);
    }
    Ok(Outcome::Done)
}

/// The proxy's end, the program's end, and the inode of the latter.
fn pair_for(state: State, flags: c_int) -> Result<(OwnedFd, OwnedFd, u64)> {
    let kind = match state {
        // Unlike SOCK_DGRAM, this type reports the last close.
        State::Datagrams => libc::SOCK_SEQPACKET,
        _ => libc::SOCK_STREAM,
    };
    let (near, program) = sys::pair(kind)?;
    if flags & libc::SOCK_NONBLOCK != 0 {
        // SAFETY: takes no addresses.
        sys::int(unsafe { libc::fcntl(program.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    }
    let inode = sys::socket_inode(&program).ok_or(Errno(libc::EBADF))?;
    Ok((near, program, inode))
}

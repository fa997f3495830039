//! `listen` and `accept`.

use super::open::give;
use super::{Answer, Outcome, or_wait};
use crate::notify::Notification;
use crate::socket::State;
use crate::sys::{self, AGAIN, Errno};
use crate::world::{Held, World};
use std::os::fd::AsRawFd;

pub fn listen(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let backlog = world.call(*notification).int(1);
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    // SAFETY: takes no addresses.
    sys::int(unsafe { libc::listen(socket.far.as_raw_fd(), backlog) })?;
    if socket.state == State::Fresh {
        socket.state = State::Listening;
        world.again.push(held.index);
    }
    Ok(Outcome::Value(0))
}

pub fn accept(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (name, name_length, flags) = {
        let call = world.call(*notification);
        let flags = if i64::from(notification.number) == libc::SYS_accept4 { call.int(3) } else { 0 };
        (call.address(1), call.address(2), flags)
    };
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    match socket.state {
        State::Listening => {}
        State::Datagrams => return Err(Errno(libc::EOPNOTSUPP)),
        _ => return Err(Errno(libc::EINVAL)),
    }
    let taken = socket.accept();
    // Without a connection the program's end must not stay readable.
    if matches!(taken, Err(AGAIN)) || taken.is_ok() && !socket.has_connection() {
        socket.retire_tokens(&held.program);
    }
    let (far, peer) = match taken {
        Err(errno) => return or_wait(Err(errno), held, 0, libc::SO_RCVTIMEO),
        Ok(taken) => taken,
    };
    if name != 0 {
        let told = world.call(*notification).tell(peer.bytes(), name, name_length);
        if let Err(errno) = told {
            return keep(world, held, (far, peer), errno);
        }
    }
    give(world, notification, far, State::Connected { told: true }, flags)
        .or_else(|(errno, far)| keep(world, held, (far, peer), errno))
}

/// Keeps a connection for the next call.
fn keep(world: &mut World, held: &Held, taken: (std::os::fd::OwnedFd, sys::Address), errno: Errno) -> Answer {
    if let Some(socket) = world.sockets.get(held.index) {
        socket.taken.push_front(taken);
        socket.post_token();
        world.again.push(held.index);
    }
    Err(errno)
}

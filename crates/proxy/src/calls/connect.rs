//! `connect` and `shutdown`.

use super::{Answer, Outcome, limit};
use crate::notify::Notification;
use crate::pump;
use crate::socket::{Socket, State};
use crate::sys::{self, AGAIN, Errno, Result};
use crate::world::{Held, World};
use std::os::fd::AsRawFd;

pub fn connect(world: &mut World, notification: &Notification, held: &Held, resumed: bool) -> Answer {
    let address = {
        let call = world.call(*notification);
        call.read_address(call.address(1), call.int(2))?
    };
    let World { sockets, buffer, .. } = world;
    let socket = sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    match socket.state {
        State::Datagrams => {
            pump::flush(socket, buffer).or_else(|errno| if errno == AGAIN { Ok(()) } else { Err(errno) })?;
            begin(socket, &address)?;
            Ok(Outcome::Value(0))
        }
        State::Fresh => {
            match begin(socket, &address) {
                Ok(()) => socket.state = State::Connected { told: true },
                Err(Errno(libc::EINPROGRESS)) => return wait(socket, held),
                Err(errno) => return Err(errno),
            }
            world.again.push(held.index);
            Ok(Outcome::Value(0))
        }
        State::Connecting => {
            socket.check_attempt();
            match socket.state {
                State::Connecting if !resumed && !sys::waits(&held.program) => Err(Errno(libc::EALREADY)),
                State::Connecting => wait(socket, held),
                _ => ended(socket),
            }
        }
        State::Connected { .. } | State::Failed => ended(socket),
        State::Listening => Err(Errno(libc::EISCONN)),
    }
}

fn begin(socket: &Socket, to: &sys::Address) -> Result<()> {
    // SAFETY: the address is ours, and of that length.
    sys::int(unsafe { libc::connect(socket.far.as_raw_fd(), to.pointer(), to.len()) }).map(drop)
}

/// The attempt has begun: the call waits, or the program's end is not writable meanwhile.
fn wait(socket: &mut Socket, held: &Held) -> Answer {
    socket.state = State::Connecting;
    if sys::waits(&held.program) {
        return Ok(Outcome::Wait(held.index, limit(&held.program, libc::SO_SNDTIMEO)));
    }
    socket.plug(&held.program);
    Err(Errno(libc::EINPROGRESS))
}

/// The first call after the attempt returns its result.
fn ended(socket: &mut Socket) -> Answer {
    match socket.state {
        State::Connected { told: false } => {
            socket.state = State::Connected { told: true };
            Ok(Outcome::Value(0))
        }
        State::Failed => Err(socket.error.take().unwrap_or(Errno(libc::ECONNABORTED))),
        _ => Err(Errno(libc::EISCONN)),
    }
}

/// Shuts the program's end down; the pump passes that on after the bytes before it.
pub fn shutdown(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let how = world.call(*notification).int(1);
    if !(libc::SHUT_RD..=libc::SHUT_RDWR).contains(&how) {
        return Err(Errno(libc::EINVAL));
    }
    let World { sockets, buffer, .. } = world;
    let socket = sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    match socket.state {
        State::Connected { .. } => Ok(Outcome::GoOn),
        State::Listening => {
            sys::shutdown(&socket.far, how)?;
            socket.post_token();
            world.again.push(held.index);
            Ok(Outcome::Value(0))
        }
        State::Datagrams => {
            let _ = pump::flush(socket, buffer);
            sys::shutdown(&socket.far, how)?;
            Ok(Outcome::GoOn)
        }
        State::Fresh | State::Connecting | State::Failed => Err(Errno(libc::ENOTCONN)),
    }
}

//! `setsockopt` and `getsockopt`.

use super::{Answer, Outcome, groups};
use crate::notify::Notification;
use crate::sys::{self, Errno};
use crate::world::{Held, World};
use libc::c_int;
use std::os::fd::AsRawFd;

/// No option has a longer value: MCAST_MSFILTER of IPv6 has 64 sources.
const VALUE_MAX: usize = 16_384;
const SO_RCVTIMEO_NEW: c_int = 66;
const SO_SNDTIMEO_NEW: c_int = 67;

/// Whether an option concerns reads and writes, which go to the program's end of the pair.
fn is_of_the_pair(level: c_int, name: c_int) -> bool {
    level == libc::SOL_SOCKET
        && matches!(
            name,
            libc::SO_RCVTIMEO
                | libc::SO_SNDTIMEO
                | SO_RCVTIMEO_NEW
                | SO_SNDTIMEO_NEW
                | libc::SO_RCVLOWAT
                | libc::SO_OOBINLINE
        )
}

pub fn set(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (level, name, value) = {
        let call = world.call(*notification);
        let (level, name, len) = (call.int(1), call.int(2), call.int(4));
        if is_of_the_pair(level, name) {
            return Ok(Outcome::GoOn);
        }
        if !(0..=VALUE_MAX as c_int).contains(&len) {
            return Err(Errno(libc::EINVAL));
        }
        let mut value = call.read(call.address(3), len as usize)?;
        groups::translate(level, name, &mut value);
        (level, name, value)
    };
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    let (from, len) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the value is ours and has this length.
    sys::int(unsafe { libc::setsockopt(socket.far.as_raw_fd(), level, name, from, len) })?;
    Ok(Outcome::Value(0))
}

pub fn get(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (level, name, mut value) = {
        let call = world.call(*notification);
        let (level, name) = (call.int(1), call.int(2));
        if is_of_the_pair(level, name) {
            return Ok(Outcome::GoOn);
        }
        let room = call.room(call.address(4))?.min(VALUE_MAX);
        let mut value = match groups::is_filter(level, name) {
            // It says what is asked.
            true => call.read(call.address(3), room)?,
            false => vec![0u8; room],
        };
        groups::translate(level, name, &mut value);
        (level, name, value)
    };
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    socket.check_attempt();
    let mut len = value.len() as libc::socklen_t;
    let own = (level == libc::SOL_SOCKET && name == libc::SO_ERROR).then(|| socket.error.take()).flatten();
    match own {
        Some(Errno(errno)) => {
            len = len.min(4);
            value[..len as usize].copy_from_slice(&errno.to_ne_bytes()[..len as usize]);
        }
        None => {
            let to = value.as_mut_ptr().cast();
            // SAFETY: the value is ours and has this length.
            sys::int(unsafe { libc::getsockopt(socket.far.as_raw_fd(), level, name, to, &mut len) })?;
        }
    }
    let call = world.call(*notification);
    let told = &value[..(len as usize).min(value.len())];
    call.write_all(&[(call.address(3), told), (call.address(4), &len.to_ne_bytes())])?;
    Ok(Outcome::Value(0))
}

//! `sendto`, `sendmsg`, `sendmmsg`.
//!
//! A stream's bytes go into the program's end of the pair. A datagram is sent on the program's behalf, after those that
//! it has written.

use super::message::{BYTES_MAX, ENTRY, HEADER, MESSAGES_MAX};
use super::{Answer, Outcome, or_wait};
use crate::notify::Notification;
use crate::pump;
use crate::socket::State;
use crate::sys::{self, Address, Errno, Result};
use crate::world::{Held, World};
use libc::c_int;
use std::os::fd::AsRawFd;

/// Flags that affect a datagram socket.
const FLAGS: c_int = libc::MSG_DONTROUTE | libc::MSG_MORE | libc::MSG_CONFIRM | libc::MSG_OOB | libc::MSG_EOR;

pub fn to(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (from, len, flags, name, name_len) = {
        let call = world.call(*notification);
        (call.address(1), call.address(2) as usize, call.int(3), call.address(4), call.int(5))
    };
    if let Some(answer) = into_stream(world, held, flags) {
        return answer;
    }
    let sent = (|| {
        if len > BYTES_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        let (bytes, to) = {
            let call = world.call(*notification);
            let to = if name == 0 { Address::NONE } else { call.read_address(name, name_len)? };
            (call.read(from, len)?, to)
        };
        send(world, held, &bytes, &[], &to, flags)
    })();
    or_wait(sent, held, flags, libc::SO_SNDTIMEO)
}

pub fn message(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (at, flags) = {
        let call = world.call(*notification);
        (call.address(1), call.int(2))
    };
    match into_stream(world, held, flags) {
        Some(answer) => answer,
        None => or_wait(send_one(world, notification, held, at, flags), held, flags, libc::SO_SNDTIMEO),
    }
}

pub fn messages(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (at, count, flags) = {
        let call = world.call(*notification);
        (call.address(1), call.address(2) as u32 as usize, call.int(3))
    };
    if let Some(answer) = into_stream(world, held, flags) {
        return answer;
    }
    let mut done = 0;
    while done < count.min(MESSAGES_MAX) {
        let entry = at.wrapping_add((done * ENTRY) as u64);
        let sent = send_one(world, notification, held, entry, flags).and_then(|n| {
            let length_at = entry.wrapping_add(HEADER as u64);
            world.call(*notification).write(length_at, &(n as u32).to_ne_bytes())
        });
        match sent {
            Ok(()) => done += 1,
            Err(_) if done > 0 => break,
            Err(errno) => return or_wait(Err(errno), held, flags, libc::SO_SNDTIMEO),
        }
    }
    Ok(Outcome::Value(done as i64))
}

/// The answer for a stream; `None` for a datagram socket.
fn into_stream(world: &mut World, held: &Held, flags: c_int) -> Option<Answer> {
    let socket = world.sockets.get(held.index)?;
    Some(match socket.state {
        State::Datagrams => return None,
        State::Fresh | State::Listening => Err(Errno(libc::EPIPE)),
        _ if flags & libc::MSG_FASTOPEN != 0 => Err(Errno(libc::EOPNOTSUPP)),
        State::Failed if socket.error.is_some() => Err(socket.error.take().unwrap_or(Errno(libc::EPIPE))),
        _ => {
            if flags & libc::MSG_OOB != 0 {
                socket.expect_urgent();
            }
            Ok(Outcome::GoOn)
        }
    })
}

fn send_one(
    world: &mut World,
    notification: &Notification,
    held: &Held,
    at: u64,
    flags: c_int,
) -> Result<i64> {
    let (bytes, control, to) = {
        let call = world.call(*notification);
        let header = call.read_header(at)?;
        let parts = call.read_parts(&header)?;
        let to = match header.name {
            0 => Address::NONE,
            name => call.read_address(name, header.name_len)?,
        };
        (call.gather(&parts)?, call.read_control(&header)?, to)
    };
    send(world, held, &bytes, &control, &to, flags)
}

fn send(
    world: &mut World,
    held: &Held,
    bytes: &[u8],
    control: &[u8],
    to: &Address,
    flags: c_int,
) -> Result<i64> {
    let World { sockets, buffer, .. } = world;
    let socket = sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    pump::flush(socket, buffer)?;
    if let Some(errno) = socket.error.take() {
        return Err(errno);
    }
    // Aligned like control messages.
    let mut space: Vec<u64> = Vec::new();
    for chunk in control.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        space.push(u64::from_ne_bytes(word));
    }
    let null = std::ptr::null_mut();
    let name = if to.len() == 0 { null } else { to.pointer() as *mut libc::c_void };
    let place = if control.is_empty() { null } else { space.as_mut_ptr().cast() };
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut libc::c_void, iov_len: bytes.len() };
    let message = sys::message((name, to.len() as usize), &mut part, (place, control.len()));
    let flags = flags & FLAGS | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: everything that the message points to lives until after the call, which does not write to it.
    sys::long(unsafe { libc::sendmsg(socket.far.as_raw_fd(), &message, flags) }).map(|n| n as i64)
}

//! `recvfrom`, `recvmsg`, `recvmmsg`.
//!
//! For a stream, the program's end of the pair answers them. A datagram is taken from there on the program's behalf,
//! together with its label.

use super::message::{ENTRY, Header, MESSAGES_MAX, Parts, scatter};
use super::{Answer, Outcome, or_wait};
use crate::label;
use crate::notify::Notification;
use crate::socket::State;
use crate::sys::{self, AGAIN, Address, Errno, Result};
use crate::target::Call;
use crate::world::{Held, World};
use libc::c_int;
use std::os::fd::AsRawFd;

/// A datagram, and what came with it.
struct Datagram {
    bytes: Vec<u8>,
    /// Its whole length.
    len: usize,
    label: Vec<u8>,
    flags: c_int,
}

pub fn from(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (place, size, flags, name, name_length) = {
        let call = world.call(*notification);
        (call.address(1), call.address(2) as usize, call.int(3), call.address(4), call.address(5))
    };
    if let Some(answer) = of_stream(world, held, flags) {
        return answer;
    }
    let taken = take(world, held, flags, size);
    let told = taken.and_then(|datagram| {
        let call = world.call(*notification);
        call.write_all(&[(place, &datagram.bytes)])?;
        if name != 0 {
            call.tell(label::decode(&datagram.label).0, name, name_length)?;
        }
        Ok(length(&datagram, flags))
    });
    or_wait(told, held, flags, libc::SO_RCVTIMEO)
}

pub fn message(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (at, flags) = {
        let call = world.call(*notification);
        (call.address(1), call.int(2))
    };
    match of_stream(world, held, flags) {
        Some(answer) => answer,
        None => or_wait(receive_one(world, notification, held, at, flags), held, flags, libc::SO_RCVTIMEO),
    }
}

/// Receives all that are there. A timeout has no effect: only the first datagram is waited for.
pub fn messages(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let (at, count, flags) = {
        let call = world.call(*notification);
        (call.address(1), call.address(2) as u32 as usize, call.int(3))
    };
    if let Some(answer) = of_stream(world, held, flags) {
        return answer;
    }
    let mut done = 0;
    while done < count.min(MESSAGES_MAX) {
        let entry = at.wrapping_add((done * ENTRY) as u64);
        let received = receive_one(world, notification, held, entry, flags).and_then(|n| {
            let length_at = entry.wrapping_add(super::message::HEADER as u64);
            world.call(*notification).write(length_at, &(n as u32).to_ne_bytes())
        });
        match received {
            Ok(()) => done += 1,
            Err(_) if done > 0 => break,
            Err(errno) => return or_wait(Err(errno), held, flags, libc::SO_RCVTIMEO),
        }
    }
    Ok(Outcome::Value(done as i64))
}

/// The answer for a stream; `None` for a datagram socket.
fn of_stream(world: &mut World, held: &Held, flags: c_int) -> Option<Answer> {
    let socket = world.sockets.get(held.index)?;
    Some(match socket.state {
        State::Datagrams => return None,
        State::Fresh | State::Listening => Err(Errno(libc::ENOTCONN)),
        _ if flags & libc::MSG_ERRQUEUE != 0 => Err(AGAIN),
        State::Failed if socket.error.is_some() => Err(socket.error.take().unwrap_or(AGAIN)),
        _ => Ok(Outcome::GoOn),
    })
}

/// Takes (or peeks at) one datagram, as far as there is room for it.
fn take(world: &mut World, held: &Held, flags: c_int, room: usize) -> Result<Datagram> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return take_error(world, held, room);
    }
    world.serve(held.index, false);
    let World { sockets, buffer, .. } = world;
    let socket = sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    if let Some(errno) = socket.error.take() {
        return Err(errno);
    }
    let room = room.min(buffer.len());
    let (len, cut, label) = label::receive(&held.program, &mut buffer[..room], flags)?;
    let flags = if cut { libc::MSG_TRUNC } else { 0 };
    Ok(Datagram { bytes: buffer[..len.min(room)].to_vec(), len, label, flags })
}

/// Takes an error from eft's error queue (IP_RECVERR).
fn take_error(world: &mut World, held: &Held, room: usize) -> Result<Datagram> {
    let World { sockets, buffer, .. } = world;
    let far = sockets.get(held.index).ok_or(Errno(libc::EBADF))?.far.as_raw_fd();
    let room = room.min(buffer.len());
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: room };
    let mut control = vec![0u64; label::CONTROL_MAX / 8];
    let ((n, used, flags), name) = Address::told(|to, len| {
        let space = (control.as_mut_ptr().cast(), label::CONTROL_MAX);
        let mut message = sys::message((to.cast(), *len as usize), &mut part, space);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: name, buffer and space are ours and live until after the call.
        let n = sys::long(unsafe { libc::recvmsg(far, &mut message, flags) })?;
        *len = message.msg_namelen;
        Ok((n, message.msg_controllen, message.msg_flags))
    })?;
    let control: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).take(used).collect();
    let label = label::encode(name.bytes(), &control);
    Ok(Datagram { bytes: buffer[..n.min(room)].to_vec(), len: n, label, flags })
}

fn length(datagram: &Datagram, flags: c_int) -> i64 {
    if flags & libc::MSG_TRUNC != 0 { datagram.len as i64 } else { datagram.bytes.len() as i64 }
}

fn receive_one(
    world: &mut World,
    notification: &Notification,
    held: &Held,
    at: u64,
    flags: c_int,
) -> Result<i64> {
    let (header, parts) = {
        let call = world.call(*notification);
        let header = call.read_header(at)?;
        let parts = call.read_parts(&header)?;
        (header, parts)
    };
    let room = parts.iter().map(|(_, len)| len).sum();
    let datagram = take(world, held, flags, room)?;
    tell(&world.call(*notification), &header, &parts, &datagram)?;
    Ok(length(&datagram, flags))
}

/// Writes a datagram to where the header points, and the lengths into the header.
fn tell(call: &Call<'_>, header: &Header, parts: &Parts, datagram: &Datagram) -> Result<()> {
    let (name, control) = label::decode(&datagram.label);
    let mut flags = datagram.flags & !libc::MSG_CTRUNC;
    let control_len = match header.control {
        0 => 0,
        _ => control.len().min(header.control_len),
    };
    if control_len < control.len() {
        flags |= libc::MSG_CTRUNC;
    }
    let name_room = if header.name == 0 { 0 } else { header.name_len.max(0) as usize };
    let mut pieces = scatter(&datagram.bytes, parts);
    pieces.push((header.name, &name[..name.len().min(name_room)]));
    pieces.push((header.control, &control[..control_len]));
    let name_len =
        if header.name == 0 { header.name_len.to_ne_bytes() } else { (name.len() as u32).to_ne_bytes() };
    let [control_len, flags] = [(control_len as u64).to_ne_bytes(), (flags as u32 as u64).to_ne_bytes()];
    pieces.push((header.at.wrapping_add(8), &name_len));
    pieces.push((header.at.wrapping_add(40), &control_len));
    pieces.push((header.at.wrapping_add(48), &flags[..4]));
    call.write_all(&pieces)
}

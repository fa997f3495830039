//! splice between a pipe and an eft stream: by copying, since there are no pages to move.
//!
//! Invariant: bytes taken from one side always reach the other. So the destination must have room
//! first, and everything taken is written.

use crate::buffers::Buffers;
use crate::socket::Socket;
use crate::stream::{self, Source};
use crate::sys::{self, Errno, Result};
use crate::{establish, readiness, transfer, urgent};
use core::ffi::{c_int, c_uint};

/// A pipe that is writable has room for this much (PIPE_BUF).
const PIECE: usize = 4096;

/// Nothing to send; only waits until there is room.
struct Room;

impl Source for Room {
    fn left(&self) -> usize {
        1
    }

    fn fill(&mut self, _socket: &Socket, _offset: u64, _n: usize) -> Result<usize> {
        Ok(0)
    }
}

/// Which sides were given an offset. Neither may have one.
#[derive(Clone, Copy)]
pub struct Offsets {
    pub pipe: bool,
    pub socket: bool,
}

/// Checks the two sides: one must be a pipe, the other a stream.
fn check(pipe: c_int, socket: &Socket, offsets: Offsets) -> Result<()> {
    let (_, mode) = sys::identity(pipe)?;
    let possible = mode & libc::S_IFMT == libc::S_IFIFO && socket.is_stream();
    match offsets {
        _ if !possible => Err(Errno(libc::EINVAL)),
        Offsets { pipe: true, .. } => Err(Errno(libc::ESPIPE)),
        Offsets { socket: true, .. } => Err(Errno(libc::EINVAL)),
        _ => Ok(()),
    }
}

/// Waits until a pipe is ready. False if it is not and the call must not wait.
fn ready(pipe: c_int, events: i16, wait: bool) -> Result<bool> {
    match wait {
        true => readiness::wait_for_ever(pipe, events).map(|()| true),
        false => Ok(sys::poll(pipe, events, Some(0))? != 0),
    }
}

fn may_wait(pipe: c_int, flags: c_uint) -> bool {
    flags & libc::SPLICE_F_NONBLOCK == 0 && !sys::is_nonblocking(pipe)
}

/// From a stream into a pipe. Waits for the first piece only, as the kernel does.
pub fn from_stream(
    fd: c_int,
    socket: &Socket,
    pipe: c_int,
    offsets: Offsets,
    len: usize,
    flags: c_uint,
) -> Result<usize> {
    check(pipe, socket, offsets)?;
    let wait = may_wait(pipe, flags);
    let mut piece = [0u8; PIECE];
    let mut done = 0;
    while done < len {
        match ready(pipe, libc::POLLOUT, wait && done == 0) {
            Ok(true) => {}
            Ok(false) if done == 0 => return Err(Errno(libc::EAGAIN)),
            Err(errno) if done == 0 => return Err(errno),
            _ => break,
        }
        if urgent::is_at_mark(socket) && socket.page.receivable() > 0 {
            // It does not pass an urgent byte, on Linux.
            break;
        }
        let buffer = transfer::buffer(piece.as_mut_ptr().cast(), PIECE.min(len - done));
        // SAFETY: our own bytes.
        let mut buffers = unsafe { Buffers::one(&buffer)? };
        let patience = if done == 0 { 0 } else { libc::MSG_DONTWAIT };
        let n = match stream::receive(fd, socket, &mut buffers, patience) {
            Ok(0) => break,
            Ok(n) => n,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        };
        write_all(pipe, &piece[..n])?;
        done += n;
    }
    Ok(done)
}

/// Writes bytes already taken from the stream: another writer may have filled the pipe meanwhile.
fn write_all(pipe: c_int, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match sys::write(pipe, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno(libc::EAGAIN | libc::EINTR)) => {
                let _ = sys::poll(pipe, libc::POLLOUT, None);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// From a pipe into a stream: what the pipe has.
pub fn to_stream(
    pipe: c_int,
    fd: c_int,
    socket: &Socket,
    offsets: Offsets,
    len: usize,
    flags: c_uint,
) -> Result<usize> {
    check(pipe, socket, offsets)?;
    establish::begin_deferred(fd, socket)?;
    let wait = may_wait(pipe, flags);
    let more = if flags & libc::SPLICE_F_MORE != 0 { libc::MSG_MORE } else { 0 };
    let mut piece = [0u8; PIECE];
    let mut done = 0;
    while done < len {
        let first = done == 0;
        let found = ready(pipe, libc::POLLIN, wait && first).and_then(|found| {
            let patience = if first { 0 } else { libc::MSG_DONTWAIT };
            stream::send(fd, socket, &mut Room, patience).map(|_| found)
        });
        match found {
            Ok(true) => {}
            Ok(false) if first => return Err(Errno(libc::EAGAIN)),
            Err(errno) if first => return Err(errno),
            _ => break,
        }
        // SAFETY: our own bytes.
        let n = match unsafe { sys::read_into(pipe, piece.as_mut_ptr(), PIECE.min(len - done), None) } {
            Ok(0) => break,
            Ok(n) => n,
            Err(errno) if first => return Err(errno),
            Err(_) => break,
        };
        send_all(fd, socket, &piece[..n], more)?;
        done += n;
    }
    Ok(done)
}

/// Sends bytes already taken from the pipe, even on a nonblocking socket: there was room.
fn send_all(fd: c_int, socket: &Socket, bytes: &[u8], more: c_int) -> Result<()> {
    let buffer = transfer::buffer(bytes.as_ptr().cast(), bytes.len());
    // SAFETY: our own bytes.
    let mut buffers = unsafe { Buffers::one(&buffer)? };
    while buffers.left() > 0 {
        match stream::send(fd, socket, &mut buffers, more) {
            Ok(_) => {}
            Err(Errno(libc::EAGAIN | libc::EINTR)) => {
                let _ = sys::poll(fd, libc::POLLOUT, None);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

//! Passes bytes and datagrams between the program's sockets and eft's.
//!
//! Nothing is taken from one side while the other has no room, except for one buffer at most, which was taken before.

use crate::label;
use crate::socket::{Rest, Socket, State};
use crate::sys::{self, AGAIN, Address, Errno, Result};
use std::os::fd::AsRawFd;

/// How a socket continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It waits for the next event.
    Rest,
    /// It has more to do, after the others.
    Again,
    /// Both directions are over.
    Close,
    /// eft's connection has failed.
    Reset,
}

/// A whole datagram, or as many bytes of a stream.
pub const BUFFER: usize = 1 << 17;
/// The most buffers that are passed on before other sockets have their turn.
const ROUNDS: usize = 16;

/// The state of one direction after its share.
#[derive(PartialEq, Eq)]
enum Way {
    Waits,
    HasMore,
    Over,
    Broken,
}

/// Does everything that is possible for a socket now.
pub fn pump(socket: &mut Socket, buffer: &mut [u8]) -> Next {
    match socket.state {
        State::Connected { .. } => stream(socket, buffer),
        State::Datagrams => datagrams(socket, buffer),
        State::Fresh | State::Listening | State::Connecting | State::Failed if socket.hung_up => Next::Close,
        State::Failed => refuse(socket),
        State::Fresh | State::Listening | State::Connecting => Next::Rest,
    }
}

/// Reports the failure to a program that writes to a connection that was never made.
fn refuse(socket: &Socket) -> Next {
    if sys::ready(&socket.near, libc::POLLIN) & libc::POLLIN != 0 { Next::Reset } else { Next::Rest }
}

fn stream(socket: &mut Socket, buffer: &mut [u8]) -> Next {
    let up = if socket.up_over && !socket.up.present { Way::Over } else { send_up(socket, buffer) };
    let down = if socket.down_over { Way::Over } else { send_down(socket, buffer) };
    if socket.hung_up && up == Way::Over {
        return Next::Close;
    }
    match (up, down) {
        (_, Way::Broken) => Next::Reset,
        // The program can still read the bytes from before.
        (Way::Broken, Way::Waits) if socket.down.present => Next::Rest,
        (Way::Broken, Way::Waits | Way::Over) => Next::Reset,
        (Way::HasMore, _) | (_, Way::HasMore) => Next::Again,
        _ => Next::Rest,
    }
}

/// Sends the rest first. True if nothing is left of it.
fn send_rest(rest: &mut Rest, to: &std::os::fd::OwnedFd) -> Result<bool> {
    while rest.present {
        let sent = match rest.urgent {
            true => sys::send_urgent(to, rest.bytes[0]),
            false => sys::send(to, &rest.bytes),
        };
        match sent {
            Ok(n) => rest.passed(n),
            Err(AGAIN) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

/// Passes all bytes on, or keeps those that find no room. True if all were sent.
fn pass(to: &std::os::fd::OwnedFd, bytes: &[u8], rest: &mut Rest) -> Result<bool> {
    let sent = match sys::send(to, bytes) {
        Ok(n) => n,
        Err(AGAIN) => 0,
        Err(errno) => return Err(errno),
    };
    if sent < bytes.len() {
        rest.keep(&bytes[sent..], &[]);
    }
    Ok(sent == bytes.len())
}

/// The next bytes of one side: an urgent one by itself, and whether it is one.
fn take(from: &std::os::fd::OwnedFd, urgent: bool, buffer: &mut [u8]) -> Result<(usize, bool)> {
    let urgent = urgent && sys::at_mark(from);
    let room = if urgent { 1 } else { buffer.len() };
    sys::receive(from, &mut buffer[..room]).map(|n| (n, urgent))
}

/// As [`pass`], for an urgent byte.
fn pass_urgent(to: &std::os::fd::OwnedFd, byte: u8, rest: &mut Rest) -> Result<bool> {
    match sys::send_urgent(to, byte) {
        Err(AGAIN) => {
            rest.keep(&[byte], &[]);
            rest.urgent = true;
            Ok(false)
        }
        sent => sent.map(|_| true),
    }
}

fn send_up(socket: &mut Socket, buffer: &mut [u8]) -> Way {
    for _ in 0..ROUNDS {
        match send_rest(&mut socket.up, &socket.far) {
            Ok(true) => {}
            Ok(false) => return Way::Waits,
            Err(_) => return Way::Broken,
        }
        match take(&socket.near, socket.sends_urgent, buffer) {
            Err(AGAIN) => return Way::Waits,
            // The program has closed its end without reading everything.
            Ok((0, _)) | Err(_) => {
                let _ = sys::shutdown(&socket.far, libc::SHUT_WR);
                socket.up_over = true;
                return Way::Over;
            }
            Ok((n, urgent)) => {
                let passed = match urgent {
                    true => pass_urgent(&socket.far, buffer[0], &mut socket.up),
                    false => pass(&socket.far, &buffer[..n], &mut socket.up),
                };
                if passed.is_err() {
                    return Way::Broken;
                }
            }
        }
    }
    Way::HasMore
}

fn send_down(socket: &mut Socket, buffer: &mut [u8]) -> Way {
    for _ in 0..ROUNDS {
        if socket.unread {
            socket.down = Rest::default();
        }
        match send_rest(&mut socket.down, &socket.near) {
            Ok(true) => {}
            Ok(false) => return Way::Waits,
            Err(_) => socket.unread = true,
        }
        match take(&socket.far, true, buffer) {
            Err(AGAIN) => return Way::Waits,
            Ok((0, _)) => {
                let _ = sys::shutdown(&socket.near, libc::SHUT_WR);
                socket.down_over = true;
                return Way::Over;
            }
            Err(_) => return Way::Broken,
            Ok(_) if socket.unread => {}
            Ok((n, urgent)) => {
                let passed = match urgent {
                    true => pass_urgent(&socket.near, buffer[0], &mut socket.down),
                    false => pass(&socket.near, &buffer[..n], &mut socket.down),
                };
                if passed.is_err() {
                    socket.unread = true;
                }
            }
        }
    }
    Way::HasMore
}

fn datagrams(socket: &mut Socket, buffer: &mut [u8]) -> Next {
    let up = write_datagrams(socket, buffer);
    if socket.hung_up && up != Way::HasMore {
        return Next::Close;
    }
    let down = if socket.hung_up { Way::Waits } else { read_datagrams(socket, buffer) };
    if up == Way::HasMore || down == Way::HasMore { Next::Again } else { Next::Rest }
}

/// Sends the datagrams that the program has written. The next call that can report an error does so.
fn write_datagrams(socket: &mut Socket, buffer: &mut [u8]) -> Way {
    for _ in 0..ROUNDS {
        if socket.up.present {
            match sys::send(&socket.far, &socket.up.bytes) {
                Err(AGAIN) => return Way::Waits,
                done => note(socket, done),
            }
            socket.up = Rest::default();
        }
        match sys::receive(&socket.near, buffer) {
            // An empty datagram, or the end.
            Ok(0) if sys::ready(&socket.near, libc::POLLIN) & libc::POLLHUP != 0 => return Way::Over,
            Ok(n) => match sys::send(&socket.far, &buffer[..n]) {
                Err(AGAIN) => {
                    socket.up.keep(&buffer[..n], &[]);
                    return Way::Waits;
                }
                done => note(socket, done),
            },
            Err(_) => return Way::Waits,
        }
    }
    Way::HasMore
}

/// Sends everything that the program has written, before a call of the program sends something else.
pub fn flush(socket: &mut Socket, buffer: &mut [u8]) -> Result<()> {
    while write_datagrams(socket, buffer) == Way::HasMore {}
    if socket.up.present { Err(AGAIN) } else { Ok(()) }
}

fn note(socket: &mut Socket, done: Result<usize>) {
    if let Err(errno) = done {
        socket.error = Some(errno);
    }
}

fn read_datagrams(socket: &mut Socket, buffer: &mut [u8]) -> Way {
    for _ in 0..ROUNDS {
        if socket.down.present {
            match socket.labels.send(&socket.near, &socket.down.bytes, &socket.down.label) {
                Err(AGAIN) => return Way::Waits,
                _ => socket.down = Rest::default(),
            }
        }
        match take_datagram(socket, buffer) {
            Ok((n, label)) => {
                if socket.labels.send(&socket.near, &buffer[..n], &label) == Err(AGAIN) {
                    socket.down.keep(&buffer[..n], &label);
                    return Way::Waits;
                }
            }
            Err(AGAIN) => return Way::Waits,
            Err(errno) => socket.error = Some(errno),
        }
    }
    Way::HasMore
}

/// The next datagram from eft's socket, with its label.
fn take_datagram(socket: &Socket, buffer: &mut [u8]) -> Result<(usize, Vec<u8>)> {
    let mut control = [0u64; label::CONTROL_MAX / 8];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let ((n, used), name) = Address::told(|to, len| {
        let space = (control.as_mut_ptr().cast(), label::CONTROL_MAX);
        let mut message = sys::message((to.cast(), *len as usize), &mut part, space);
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: name, buffer and space are ours and live until after the call.
        let n = sys::long(unsafe { libc::recvmsg(socket.far.as_raw_fd(), &mut message, flags) })?;
        *len = message.msg_namelen;
        Ok((n, message.msg_controllen))
    })?;
    // SAFETY: plain numbers, which may be read as bytes.
    let control: &[u8] = unsafe { std::slice::from_raw_parts(control.as_ptr().cast(), label::CONTROL_MAX) };
    Ok((n, label::encode(name.bytes(), &control[..used.min(label::CONTROL_MAX)])))
}

/// Makes the program see ECONNRESET: the kernel reports it for a Unix socket whose peer was closed with unread data.
/// `program` is the program's end, if it could be found.
pub fn reset(socket: &Socket, program: Option<&std::os::fd::OwnedFd>) -> std::result::Result<(), Errno> {
    if sys::ready(&socket.near, libc::POLLIN) & libc::POLLIN != 0
        && sys::peek(&socket.near).is_ok_and(|n| n > 0)
    {
        return Ok(());
    }
    sys::send(program.ok_or(Errno(libc::EBADF))?, &[0]).map(drop)
}

#[cfg(test)]
mod tests;

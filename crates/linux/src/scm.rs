//! Packets with descriptors over Unix SEQPACKET sockets.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, UCred, recv, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most descriptors in one packet.
pub const FDS_MAX: usize = 64;

pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends one packet. Waits if the peer's queue is full, unless `nonblocking`.
pub fn send(to: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>], nonblocking: bool) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG);
    }
    let mut flags = SendFlags::NOSIGNAL;
    if nonblocking {
        flags |= SendFlags::DONTWAIT;
    }
    insist(|| sendmsg(&to, &[IoSlice::new(bytes)], &mut control, flags)).map(drop)
}

/// How often a call is tried for which the kernel finds no memory. Memory that can be reclaimed is available at once.
const ATTEMPTS: u32 = 16;

/// Repeats a call that was interrupted or for which the kernel had no memory. Nothing else would repeat it, and the
/// message would be lost.
pub fn insist<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut attempts = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::NOMEM | Errno::NOBUFS) if attempts < ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}

/// Receives one packet: its length (0 when the peer is gone) and its descriptors.
pub fn receive(
    from: impl AsFd,
    buffer: &mut [u8],
    nonblocking: bool,
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let flags = if nonblocking { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
    receive_by(from, buffer, flags).map(|(length, fds, _)| (length, fds))
}

/// Like [`receive`] of a packet that is there, but leaves it in the socket. With the sender, as the kernel recorded it at the time
/// of sending, if the socket [asks for it](rustix::net::sockopt::set_socket_passcred).
pub fn peek_with_sender(
    from: impl AsFd,
    buffer: &mut [u8],
) -> Result<(usize, Vec<OwnedFd>, Option<UCred>), Errno> {
    receive_by(from, buffer, RecvFlags::DONTWAIT | RecvFlags::PEEK)
}

/// Takes a packet out of the socket that was [peeked](peek_with_sender) at; its descriptors are closed.
pub fn take_out(from: impl AsFd) -> Result<(), Errno> {
    insist(|| recv(&from, &mut [0u8; 1], RecvFlags::DONTWAIT)).map(drop)
}

fn receive_by(
    from: impl AsFd,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>, Option<UCred>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received =
        rustix::io::retry_on_intr(|| recvmsg(&from, &mut [IoSliceMut::new(buffer)], &mut control, flags))?;
    let (mut fds, mut sender) = (Vec::new(), None);
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(rights) => fds.extend(rights),
            RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials),
            _ => {}
        }
    }
    Ok((received.bytes, fds, sender))
}

#[cfg(test)]
mod tests;

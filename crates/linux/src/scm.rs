//! Packets with descriptors over Unix SEQPACKET sockets.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, UCred, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Descriptors in one packet, at most.
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

/// Attempts at a call that found no memory. What the kernel gives back meanwhile it gives at once.
const ATTEMPTS: u32 = 16;

/// Makes a call again that was interrupted, or for which the kernel had no memory: nobody else would, and what is not said once is
/// never said.
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
    receive_with_sender(from, buffer, nonblocking).map(|(length, fds, _)| (length, fds))
}

/// As [`receive`], and who sent it: told by the kernel at the time of sending, if the socket
/// [asks for it](rustix::net::sockopt::set_socket_passcred).
pub fn receive_with_sender(
    from: impl AsFd,
    buffer: &mut [u8],
    nonblocking: bool,
) -> Result<(usize, Vec<OwnedFd>, Option<UCred>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    if nonblocking {
        flags |= RecvFlags::DONTWAIT;
    }
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

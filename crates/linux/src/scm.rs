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
pub const FDS_MAX: usize = 8;

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
    rustix::io::retry_on_intr(|| sendmsg(&to, &[IoSlice::new(bytes)], &mut control, flags)).map(drop)
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

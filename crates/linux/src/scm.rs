//! Packets with descriptors over Unix SEQPACKET sockets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, UCred, recv, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The most descriptors in one packet.
pub const FDS_MAX: usize = 64;

pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

#[cfg(test)]
pub mod fuse;

/// In a test, a process may die before any step that others notice.
fn step() {
    #[cfg(test)]
    fuse::burn();
}

/// Sends one packet. Waits if the peer's queue is full, unless `nonblocking`.
pub fn send(to: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>], nonblocking: bool) -> Result<(), Errno> {
    step();
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

/// Whether nobody holds the other end any more. A packet of no bytes may come from one who does, or have been misread.
pub fn is_over(end: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&end, PollFlags::empty())];
    insist(|| poll(&mut polled, Some(&Timespec::default()))).is_ok()
        && polled[0].revents().contains(PollFlags::HUP)
}

/// Like [`receive`] of a packet that is there, but leaves it in the socket. With the sender, as the kernel recorded it at the time
/// of sending, if the socket [asks for it](rustix::net::sockopt::set_socket_passcred).
pub fn peek_with_sender(
    from: impl AsFd,
    buffer: &mut [u8],
) -> Result<(usize, Vec<OwnedFd>, Option<UCred>), Errno> {
    receive_by(from, buffer, RecvFlags::DONTWAIT | RecvFlags::PEEK)
}

/// From now on each [look](peek_with_sender) shows the next packet, as long as the one before is not [taken out](take_out). It
/// begins with the first that is there.
pub fn look_on(at: impl AsFd) -> Result<(), Errno> {
    let begin: libc::c_int = 0;
    // SAFETY: an option of one int.
    outcome(unsafe {
        libc::setsockopt(
            at.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            (&raw const begin).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Takes a packet out of the socket that was [looked at](peek_with_sender); its descriptors are closed.
pub fn take_out(from: impl AsFd) -> Result<(), Errno> {
    step();
    insist(|| recv(&from, &mut [0u8; 1], RecvFlags::DONTWAIT)).map(drop)
}

/// Packets taken out by one call.
const OUT_AT_ONCE: usize = 64;

/// Takes the first packets out, if there are so many. Returns how many it took; the end of the socket counts as any number.
pub fn take_out_some(from: impl AsFd, count: usize) -> usize {
    step();
    // SAFETY: all zeroes is a message without any buffer: nothing of the packets is wanted.
    let mut messages: [libc::mmsghdr; OUT_AT_ONCE] = unsafe { std::mem::zeroed() };
    let from = from.as_fd().as_raw_fd();
    let mut taken = 0;
    while taken < count {
        let some = (count - taken).min(OUT_AT_ONCE) as u32;
        // SAFETY: there are so many messages, and no time limit.
        let mut call = || unsafe {
            libc::recvmmsg(from, messages.as_mut_ptr(), some, libc::MSG_DONTWAIT as _, std::ptr::null_mut())
        };
        match insist(|| outcome(call())) {
            Ok(n @ 1..) => taken += n as usize,
            _ => break,
        }
    }
    taken
}

fn outcome(returned: libc::c_int) -> Result<libc::c_int, Errno> {
    match returned {
        0.. => Ok(returned),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
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

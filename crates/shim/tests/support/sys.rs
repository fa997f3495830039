//! The system calls of the fake stack.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;

use eft_channel::segment::Segment;

pub fn pair() -> (OwnedFd, OwnedFd) {
    let mut fds = [-1; 2];
    // SAFETY: fds is ours; both are fresh.
    unsafe {
        let flags = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        assert_eq!(libc::socketpair(libc::AF_UNIX, flags, 0, fds.as_mut_ptr()), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

/// A descriptor that is taken out of an epoll set before it is closed. Closing alone is not enough:
/// while another thread of the test program forks, its child has a copy for a moment.
pub struct Watched {
    fd: OwnedFd,
    set: RawFd,
}

impl Watched {
    pub fn new(fd: OwnedFd, set: RawFd, events: i32, data: u64) -> Watched {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event is ours.
        unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) };
        Watched { fd, set }
    }
}

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: plain numbers.
        unsafe { libc::epoll_ctl(self.set, libc::EPOLL_CTL_DEL, self.as_raw_fd(), std::ptr::null_mut()) };
    }
}

/// A memfd and its mapping.
pub fn memory(len: usize) -> (OwnedFd, Segment) {
    // SAFETY: fresh descriptor and mapping, kept for the whole test.
    unsafe {
        let fd = libc::memfd_create(c"fake".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0);
        assert_eq!(libc::ftruncate(fd, len as i64), 0);
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let p = libc::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, fd, 0);
        assert_ne!(p, libc::MAP_FAILED);
        let pointer = NonNull::new(p.cast()).unwrap();
        let segment = Segment::from_raw(pointer, len, true, Arc::new(()));
        (OwnedFd::from_raw_fd(fd), segment)
    }
}

pub fn eventfd() -> OwnedFd {
    // SAFETY: a fresh descriptor.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
        assert!(fd >= 0);
        OwnedFd::from_raw_fd(fd)
    }
}

/// Sends one message, with descriptors. False if the other side is gone or full.
pub fn send(fd: RawFd, bytes: &[u8], descriptors: &[RawFd]) -> bool {
    let mut iov = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let mut control = [0u64; 16];
    // SAFETY: everything is local; the control buffer holds several descriptors.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let len = 4 * descriptors.len() as u32;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(len) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(len) as _;
            for (i, fd) in descriptors.iter().enumerate() {
                let data = libc::CMSG_DATA(header).cast::<i32>();
                data.add(i).write_unaligned(*fd);
            }
        }
        libc::sendmsg(fd, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) >= 0
    }
}

/// Receives one message with descriptors; `None` if there is none. `Some((0, _))` may be the end.
pub fn receive(fd: RawFd, bytes: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 32];
    let mut descriptors = Vec::new();
    // SAFETY: everything is local; received descriptors are fresh.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = std::mem::size_of_val(&control) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let n = libc::recvmsg(fd, &mut message, flags);
        if n < 0 {
            return None;
        }
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header).cast::<i32>();
            let count = ((*header).cmsg_len as usize - (data as usize - header as usize)) / 4;
            for i in 0..count {
                descriptors.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        Some((n as usize, descriptors))
    }
}

/// Whether a descriptor has something to take.
pub fn is_readable(fd: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 }
}

pub fn shutdown(fd: &impl AsRawFd, how: i32) {
    // SAFETY: plain numbers.
    unsafe { libc::shutdown(fd.as_raw_fd(), how) };
}

/// Waits on several futex words until one changes, 20 ms at most.
pub fn futex_wait_any(words: &[(*const u32, u32)]) {
    #[repr(C)]
    struct Waiter {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }
    const FUTEX_32: u32 = 2;
    let waiters: Vec<Waiter> = words
        .iter()
        .map(|&(address, value)| Waiter {
            value: value as u64,
            address: address as u64,
            flags: FUTEX_32,
            reserved: 0,
        })
        .collect();
    // SAFETY: the structures are ours; the words are mapped.
    unsafe {
        let mut end: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut end);
        end.tv_nsec += 20_000_000;
        if end.tv_nsec >= 1_000_000_000 {
            end.tv_nsec -= 1_000_000_000;
            end.tv_sec += 1;
        }
        libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), waiters.len(), 0, &end, libc::CLOCK_MONOTONIC);
    }
}

fn polled(fd: RawFd, events: i16) -> i16 {
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::poll(&mut poll, 1, 0) };
    poll.revents
}

/// Whether a pair is over in both directions.
pub fn is_hung_up(fd: RawFd) -> bool {
    polled(fd, 0) & libc::POLLHUP != 0
}

/// Whether the other end of a pair is closed, as the servers know it (`eft_linux::descriptors::is_closed`).
pub fn is_closed(fd: RawFd) -> bool {
    let mut unread: i32 = 0;
    // SAFETY: TIOCOUTQ (= SIOCOUTQ) writes one int.
    unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &mut unread) };
    is_hung_up(fd) && (polled(fd, 0) & libc::POLLERR != 0 || unread == 0)
}

/// Tells a program that its owner is known.
pub fn greet_owner(owner: &OwnedFd) {
    // SAFETY: one byte of our own.
    unsafe { libc::send(owner.as_raw_fd(), [0u8].as_ptr().cast(), 1, libc::MSG_DONTWAIT) };
}

/// Makes the kernel signal the owner of a socket that is connected to itself.
pub fn signal_owner(owner: &OwnedFd) {
    let mut byte = 0u8;
    // SAFETY: the byte is ours.
    unsafe {
        libc::send(owner.as_raw_fd(), (&raw const byte).cast(), 1, libc::MSG_DONTWAIT);
        libc::recv(owner.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT);
    }
}

//! System calls, with errors as values.
//!
//! All are made by libc's functions, since the preloaded library must see those on eft's sockets.

use libc::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

pub type Result<T> = std::result::Result<T, Errno>;

/// The error of a call that would have to wait.
pub const AGAIN: Errno = Errno(libc::EAGAIN);

fn last() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

pub fn int(result: c_int) -> Result<c_int> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

pub fn long(result: isize) -> Result<usize> {
    if result < 0 { Err(last()) } else { Ok(result as usize) }
}

/// Takes ownership of a descriptor that a call has made.
pub fn owned(result: c_int) -> Result<OwnedFd> {
    // SAFETY: fresh, and nobody else's.
    int(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Two Unix sockets that are connected to each other.
pub fn pair(kind: c_int) -> Result<(OwnedFd, OwnedFd)> {
    let mut both = [-1; 2];
    // SAFETY: room for two numbers.
    int(unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, both.as_mut_ptr()) })?;
    // SAFETY: fresh, and nobody else's.
    Ok(both.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).into())
}

pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Result<OwnedFd> {
    // SAFETY: takes no addresses.
    owned(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) })
}

const NOW: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

pub fn send(fd: &OwnedFd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the bytes are borrowed for the call.
    long(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), NOW) })
}

/// Sends a byte as urgent data.
pub fn send_urgent(fd: &OwnedFd, byte: u8) -> Result<usize> {
    // SAFETY: the byte is ours.
    long(unsafe { libc::send(fd.as_raw_fd(), (&raw const byte).cast(), 1, NOW | libc::MSG_OOB) })
}

/// Whether the next byte is urgent.
pub fn at_mark(fd: &OwnedFd) -> bool {
    const SIOCATMARK: libc::c_ulong = 0x8905;
    let mut at: c_int = 0;
    // SAFETY: the call writes one int.
    int(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCATMARK as _, &mut at) }).is_ok() && at != 0
}

pub fn receive(fd: &OwnedFd, into: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is borrowed for the call.
    long(unsafe { libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), NOW) })
}

pub fn shutdown(fd: &OwnedFd, how: c_int) -> Result<()> {
    // SAFETY: takes no addresses.
    int(unsafe { libc::shutdown(fd.as_raw_fd(), how) }).map(drop)
}

/// Which of `events`, of error and of hang-up are present now.
pub fn ready(fd: &OwnedFd, events: i16) -> i16 {
    let mut asked = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one entry.
    match unsafe { libc::poll(&mut asked, 1, 0) } {
        1 => asked.revents,
        _ => 0,
    }
}

pub fn option<T: Copy>(fd: &OwnedFd, level: c_int, name: c_int, default: T) -> Result<T> {
    let (mut value, mut len) = (default, size_of::<T>() as libc::socklen_t);
    let place: *mut T = &mut value;
    // SAFETY: the value is ours, and of that length; options are plain numbers.
    int(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, place.cast(), &mut len) })?;
    Ok(value)
}

pub fn set_option<T: Copy>(fd: &OwnedFd, level: c_int, name: c_int, value: &T) -> Result<()> {
    let place: *const T = value;
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is borrowed for the call.
    int(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, place.cast(), len) }).map(drop)
}

/// Takes the error that waits at a socket.
pub fn take_error(fd: &OwnedFd) -> Result<()> {
    match option(fd, libc::SOL_SOCKET, libc::SO_ERROR, 0)? {
        0 => Ok(()),
        errno => Err(Errno(errno)),
    }
}

/// The inode of the open file behind a descriptor, if it is a socket.
pub fn socket_inode(fd: &OwnedFd) -> Option<u64> {
    // SAFETY: all zeroes is a stat; it is ours.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        int(libc::fstat(fd.as_raw_fd(), &mut stat)).ok()?;
        (stat.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(stat.st_ino)
    }
}

/// Whether calls on this open file block.
pub fn waits(fd: &OwnedFd) -> bool {
    // SAFETY: takes no addresses.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) & libc::O_NONBLOCK == 0 }
}

/// A socket address of any family.
#[derive(Clone, Copy)]
pub struct Address {
    bytes: [u8; ADDRESS_MAX],
    len: usize,
}

/// As the kernel's `struct sockaddr_storage`.
pub const ADDRESS_MAX: usize = 128;

impl Address {
    pub const NONE: Address = Address { bytes: [0; ADDRESS_MAX], len: 0 };

    pub fn new(bytes: &[u8]) -> Result<Address> {
        let mut address = Address { bytes: [0; ADDRESS_MAX], len: bytes.len() };
        address.bytes.get_mut(..bytes.len()).ok_or(Errno(libc::EINVAL))?.copy_from_slice(bytes);
        Ok(address)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub fn pointer(&self) -> *const libc::sockaddr {
        self.bytes.as_ptr().cast()
    }

    pub fn len(&self) -> libc::socklen_t {
        self.len as libc::socklen_t
    }

    /// Makes a call that returns an address.
    pub fn told<T>(
        call: impl FnOnce(*mut libc::sockaddr, &mut libc::socklen_t) -> Result<T>,
    ) -> Result<(T, Address)> {
        let mut address = Address::NONE;
        let mut len = ADDRESS_MAX as libc::socklen_t;
        let done = call(address.bytes.as_mut_ptr().cast(), &mut len)?;
        address.len = (len as usize).min(ADDRESS_MAX);
        Ok((done, address))
    }
}

/// A message for `sendmsg` or `recvmsg`; the caller owns what it points to.
pub fn message(
    name: (*mut c_void, usize),
    part: &mut libc::iovec,
    control: (*mut c_void, usize),
) -> libc::msghdr {
    // SAFETY: all zeroes is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_name, message.msg_namelen) = (name.0, name.1 as libc::socklen_t);
    (message.msg_iov, message.msg_iovlen) = (part, 1);
    (message.msg_control, message.msg_controllen) = (control.0, control.1 as _);
    message
}

/// Peeks at one byte.
pub fn peek(fd: &OwnedFd) -> Result<usize> {
    let mut byte = 0u8;
    let place: *mut u8 = &mut byte;
    // SAFETY: one byte of ours.
    long(unsafe { libc::recv(fd.as_raw_fd(), place.cast(), 1, NOW | libc::MSG_PEEK) })
}

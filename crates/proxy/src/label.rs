//! What the kernel's queue cannot store with a datagram: its address, and its control messages.
//!
//! Datagrams lie in the program's Unix socket, so that plain reads work. Each carries a descriptor, its label: a memory
//! file with the sender's address and the control messages. A plain read loses the label, just as a read from a UDP
//! socket loses the address. For all other calls the proxy reads the datagram and its label on the program's behalf.

use crate::sys::{self, Errno, Result};
use libc::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// The most bytes of control messages with one datagram.
pub const CONTROL_MAX: usize = 4096;
const LABEL_MAX: usize = 4 + sys::ADDRESS_MAX + CONTROL_MAX;

/// The last label of a socket: most datagrams come from the same sender as the one before.
#[derive(Default)]
pub struct Labels {
    last: Option<(Vec<u8>, std::fs::File)>,
}

/// Both parts, each preceded by its length.
pub fn encode(name: &[u8], control: &[u8]) -> Vec<u8> {
    let mut label = Vec::with_capacity(4 + name.len() + control.len());
    for part in [name, control] {
        label.extend((part.len() as u16).to_ne_bytes());
        label.extend(part);
    }
    label
}

/// The name and the control messages; both empty if this is not a label.
pub fn decode(label: &[u8]) -> (&[u8], &[u8]) {
    let part = |from: usize| {
        let len = u16::from_ne_bytes([*label.get(from)?, *label.get(from + 1)?]) as usize;
        label.get(from + 2..from + 2 + len)
    };
    let name = part(0).unwrap_or_default();
    (name, part(2 + name.len()).unwrap_or_default())
}

impl Labels {
    /// The file that holds this label.
    fn file(&mut self, label: &[u8]) -> Result<&std::fs::File> {
        if self.last.as_ref().is_none_or(|(last, _)| last != label) {
            // SAFETY: a NUL-terminated name.
            let file = sys::owned(unsafe { libc::memfd_create(c"label".as_ptr(), libc::MFD_CLOEXEC) })?;
            let file = std::fs::File::from(file);
            file.write_all_at(label, 0).map_err(|_| Errno(libc::ENOMEM))?;
            self.last = Some((label.to_vec(), file));
        }
        self.last.as_ref().map(|(_, file)| file).ok_or(Errno(libc::ENOMEM))
    }

    /// Puts a datagram with its label into the program's queue.
    pub fn send(&mut self, near: &OwnedFd, bytes: &[u8], label: &[u8]) -> Result<()> {
        let file = self.file(label)?.as_raw_fd();
        let mut space = Space::default();
        let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut c_void, iov_len: bytes.len() };
        let mut message =
            sys::message((std::ptr::null_mut(), 0), &mut part, (space.0.as_mut_ptr().cast(), ONE));
        // SAFETY: the space has room for one descriptor and is aligned; all lives until after the call, which does not
        // write into the bytes.
        unsafe {
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
            libc::CMSG_DATA(head).cast::<c_int>().write_unaligned(file);
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            sys::long(libc::sendmsg(near.as_raw_fd(), &raw mut message, flags)).map(drop)
        }
    }
}

/// Takes (or peeks at) a datagram from the program's queue: returns its length, whether it was cut, and its label.
pub fn receive(program: &OwnedFd, into: &mut [u8], flags: c_int) -> Result<(usize, bool, Vec<u8>)> {
    let mut space = Space::default();
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut message = sys::message((std::ptr::null_mut(), 0), &mut part, (space.0.as_mut_ptr().cast(), ONE));
    let flags = flags & libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_TRUNC | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: buffer and space are ours and live until after the call; a descriptor that arrives belongs to us alone.
    let (n, file) = unsafe {
        let n = sys::long(libc::recvmsg(program.as_raw_fd(), &mut message, flags))?;
        let head = libc::CMSG_FIRSTHDR(&message);
        let is_file = !head.is_null()
            && (*head).cmsg_type == libc::SCM_RIGHTS
            && (*head).cmsg_len as usize >= libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
        let file = if is_file {
            sys::owned(libc::CMSG_DATA(head).cast::<c_int>().read_unaligned()).ok()
        } else {
            None
        };
        (n, file)
    };
    let mut label = vec![0; LABEL_MAX];
    let len = file.map(std::fs::File::from).and_then(|file| file.read_at(&mut label, 0).ok()).unwrap_or(0);
    label.truncate(len);
    Ok((n, message.msg_flags & libc::MSG_TRUNC != 0, label))
}

/// `CMSG_SPACE` of one descriptor.
const ONE: usize = 24;

/// Aligned like control messages.
#[derive(Default)]
struct Space([u64; ONE / 8]);

#[cfg(test)]
mod tests;

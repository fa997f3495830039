//! sendfile into an eft stream: the file is read straight into the send ring.

use crate::establish;
use crate::socket::Socket;
use crate::stream::{self, Source};
use crate::sys::{self, Errno, Result};
use core::ffi::c_int;

/// A file as a source of bytes.
struct File {
    fd: c_int,
    /// Where to read; `None`: at the file's own position.
    offset: Option<i64>,
    left: usize,
}

impl Source for File {
    fn left(&self) -> usize {
        self.left
    }

    fn fill(&mut self, socket: &Socket, offset: u64, n: usize) -> Result<usize> {
        let mut done = 0;
        for (to, len) in socket.page.send_space(offset, n) {
            if len == 0 {
                break;
            }
            // SAFETY: free bytes of the send ring, ours under the send lock.
            let read = match unsafe { sys::read_into(self.fd, to, len, self.offset) } {
                Ok(read) => read,
                Err(_) if done > 0 => return Ok(done),
                Err(errno) => return Err(errno),
            };
            done += read;
            self.left -= read;
            if let Some(offset) = &mut self.offset {
                *offset += read as i64;
            }
            if read < len {
                break;
            }
        }
        Ok(done)
    }
}

/// `sendfile`.
///
/// # Safety
/// `offset` must be null or valid.
pub unsafe fn send(fd: c_int, socket: &Socket, from: c_int, offset: *mut i64, count: usize) -> Result<usize> {
    let (_, mode) = sys::identity(from)?;
    if !matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFBLK) {
        // As in the kernel: a file that cannot be mapped cannot be sent. Programs then copy by
        // themselves.
        return Err(Errno(libc::EINVAL));
    }
    if !socket.is_stream() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: by the caller.
    let start = (!offset.is_null()).then(|| unsafe { *offset });
    if start.is_some_and(|at| at < 0) {
        return Err(Errno(libc::EINVAL));
    }
    let mut file = File {
        fd: from,
        offset: start,
        // The kernel sends at most this much in one call.
        left: count.min(0x7fff_f000),
    };
    establish::begin_deferred(fd, socket)?;
    let sent = stream::send(fd, socket, &mut file, 0);
    if let (Ok(_), Some(at)) = (&sent, file.offset) {
        // SAFETY: not null, since there was a start.
        unsafe { *offset = at };
    }
    sent
}

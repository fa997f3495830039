//! The program's buffers: where sent bytes come from and received bytes go.

use crate::sys::{self, Errno, Result};
use eft_channel::socket::SocketPage;
use libc::iovec;

const IOV_MAX: usize = 1024;

/// A list of buffers and how much of it was used.
pub struct Buffers<'a> {
    list: &'a [iovec],
    /// Bytes of `list[0]` that were used.
    used: usize,
    left: usize,
}

impl<'a> Buffers<'a> {
    /// # Safety
    /// The buffers must be valid for what is done with them, as for `readv`/`writev`.
    pub unsafe fn new(list: *const iovec, count: usize) -> Result<Buffers<'a>> {
        if count > IOV_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        if count == 0 {
            return Ok(Buffers::over(&[]));
        }
        sys::plausible(list, count * size_of::<iovec>())?;
        // SAFETY: by the caller.
        let list = unsafe { core::slice::from_raw_parts(list, count) };
        let mut total = 0usize;
        for v in list {
            total = total
                .checked_add(v.iov_len)
                .filter(|&t| t <= isize::MAX as usize)
                .ok_or(Errno(libc::EINVAL))?;
        }
        Ok(Buffers::over(list))
    }

    fn over(list: &'a [iovec]) -> Buffers<'a> {
        Buffers { list, used: 0, left: list.iter().map(|v| v.iov_len).sum() }
    }

    /// One buffer.
    ///
    /// # Safety
    /// As for `read`/`write`.
    pub unsafe fn one(one: &'a iovec) -> Result<Buffers<'a>> {
        // SAFETY: by the caller.
        unsafe { Buffers::new(one, 1) }
    }

    /// EFAULT if a buffer cannot be mapped (null, for example). Only a call that does not touch the
    /// buffer may accept it.
    pub fn touchable(&self) -> Result<()> {
        self.list.iter().try_for_each(|v| sys::plausible(v.iov_base, v.iov_len))
    }

    /// The whole list, for the kernel, before any of it is used.
    pub fn list(&self) -> &[iovec] {
        debug_assert!(self.used == 0);
        self.list
    }

    /// Bytes not yet used.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Calls `each` with the pieces that make up the next `n` bytes and moves on.
    fn pieces(&mut self, n: usize, mut each: impl FnMut(*mut u8, usize)) {
        let mut n = n.min(self.left);
        self.left -= n;
        while n > 0 {
            let Some(first) = self.list.first() else {
                return;
            };
            let piece = n.min(first.iov_len - self.used);
            if piece > 0 {
                // SAFETY: within the buffer.
                each(unsafe { first.iov_base.cast::<u8>().add(self.used) }, piece);
            }
            self.used += piece;
            n -= piece;
            if self.used == first.iov_len {
                self.list = &self.list[1..];
                self.used = 0;
            }
        }
    }

    /// Puts as many of `bytes` into the buffers as fit; returns how many.
    pub fn put(&mut self, mut bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.left);
        self.pieces(n, |pointer, len| {
            let (piece, rest) = bytes.split_at(len);
            // SAFETY: the program's buffer, by the contract of `new`.
            unsafe { pointer.copy_from_nonoverlapping(piece.as_ptr(), len) };
            bytes = rest;
        });
        n
    }

    /// Copies the next `n` bytes into the send ring at `offset`.
    pub fn write_send(&mut self, page: &SocketPage, offset: u64, n: usize) {
        let mut at = offset;
        self.pieces(n, |pointer, len| {
            // SAFETY: the program's buffer, by the contract of `new`.
            page.write_send(at, unsafe { core::slice::from_raw_parts(pointer, len) });
            at += len as u64;
        });
    }

    /// Copies `n` bytes of the receive ring at `offset` into the buffers.
    pub fn read_receive(&mut self, page: &SocketPage, offset: u64, n: usize) {
        let mut at = offset;
        self.pieces(n, |pointer, len| {
            // SAFETY: as above; the program owns the buffer.
            page.read_receive(at, unsafe { core::slice::from_raw_parts_mut(pointer, len) });
            at += len as u64;
        });
    }

    /// Counts `n` bytes as used without touching them.
    pub fn skip(&mut self, n: usize) {
        self.pieces(n, |_, _| {});
    }
}

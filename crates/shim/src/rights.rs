//! Descriptors that travel over Unix sockets (SCM_RIGHTS).

use crate::{scan, sys, table};
use core::ffi::c_int;

/// Calls `each` for every descriptor in a message's control data.
///
/// # Safety
/// The message's control buffer must be as a `recvmsg` or a `sendmsg` caller leaves it.
pub unsafe fn each(message: &libc::msghdr, mut each: impl FnMut(c_int)) {
    // SAFETY: by the caller; the macros stay within `msg_controllen`.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(header);
                let start = data as usize - header as usize;
                let count = ((*header).cmsg_len as usize).saturating_sub(start) / 4;
                for i in 0..count {
                    each(data.cast::<c_int>().add(i).read_unaligned());
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// Descriptors came in with a message: notes which of them are eft sockets of the family.
///
/// # Safety
/// As [`each`].
pub unsafe fn adopt(message: &libc::msghdr) {
    if message.msg_controllen == 0 || message.msg_control.is_null() {
        return;
    }
    let mut candidates = Vec::new();
    // SAFETY: by the caller.
    unsafe {
        each(message, |fd| {
            table::forget(fd);
            if scan::may_be_eft(fd)
                && let Ok((inode, _)) = sys::identity(fd)
            {
                candidates.push((fd, inode));
            }
        })
    };
    scan::adopt(&candidates);
}

/// Whether the program may send these descriptors: an eft socket means nothing to a process of
/// another family, and would silently be a dead Unix socket there.
///
/// # Safety
/// As [`each`].
pub unsafe fn may_send(_fd: c_int, _message: &libc::msghdr) -> crate::sys::Result<()> {
    Ok(())
}

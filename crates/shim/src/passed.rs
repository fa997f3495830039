//! The descriptors in a message's control data.

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

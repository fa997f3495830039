//! The pair of Unix sockets of which one end becomes an eft descriptor.

use crate::limit;
use crate::sys::{self, Errno, Result};
use core::ffi::c_int;

/// Both ends of an eft descriptor, the near one with the smallest send buffer, and its inode.
///
/// The far end goes to sockets at once, so it takes none of the numbers that the program may have: a
/// program that has one left can accept.
pub fn make() -> Result<(c_int, c_int, u64)> {
    let [near, far] = match sys::pair() {
        Err(Errno(libc::EMFILE)) => limit::with_one_more(sys::pair)?,
        pair => pair?,
    };
    let _ = sys::set_option(near, libc::SOL_SOCKET, libc::SO_SNDBUF, &1i32.to_ne_bytes());
    match sys::identity(near) {
        Ok((inode, _)) => Ok((near, far, inode)),
        Err(errno) => {
            sys::close(near);
            sys::close(far);
            Err(errno)
        }
    }
}

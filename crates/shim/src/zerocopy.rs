//! MSG_ZEROCOPY: the completions of such sends (Documentation/networking/msg_zerocopy.rst of the kernel).
//!
//! A send is one copy, into the ring, of a stream and of a datagram socket. So the program may use its buffer again as soon as the call returns: its completion is
//! there then, and says that the bytes were copied. Completions that follow each other are told as one range, as on Linux.

use crate::domain;
use crate::socket::{Socket, bit};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_channel::socket::Opt;

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED`.
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;

/// The numbers of the sends that are complete: the first, and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    first: u32,
    last: u32,
}

impl Completed {
    /// The `sock_extended_err`, and room for an offender's address, which a completion has none of: its bytes and how many.
    pub fn extended(self, inet6: bool) -> ([u8; 64], usize) {
        let mut bytes = [0; 64];
        (bytes[4], bytes[6]) = (ORIGIN, COPIED);
        bytes[8..12].copy_from_slice(&self.first.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.last.to_ne_bytes());
        let address = if inet6 { size_of::<libc::sockaddr_in6>() } else { size_of::<libc::sockaddr_in>() };
        (bytes, 16 + address)
    }
}

/// A send took bytes.
pub fn sent(socket: &Socket, flags: c_int) {
    if flags & libc::MSG_ZEROCOPY == 0 || !socket.has(bit::ZEROCOPY) {
        return;
    }
    socket.completions().0.fetch_add(1, Ordering::AcqRel);
    wake(socket);
}

/// Has those woken who wait for a completion.
pub fn wake(socket: &Socket) {
    let count = socket.page.option(Opt::ZeroCopySends);
    socket.page.set_option(Opt::ZeroCopySends, count.wrapping_add(1));
    domain::notify(socket);
}

/// Whether there are completions to take.
#[inline]
pub fn is_pending(socket: &Socket) -> bool {
    socket.has(bit::ZEROCOPY) && {
        let (sends, taken) = socket.completions();
        sends.load(Ordering::Acquire) != taken.load(Ordering::Acquire)
    }
}

/// Takes all completions that are there.
pub fn take(socket: &Socket) -> Option<Completed> {
    let (sends, taken) = socket.completions();
    let first = taken.load(Ordering::Acquire);
    let end = sends.load(Ordering::Acquire);
    if first == end || taken.compare_exchange(first, end, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return None;
    }
    Some(Completed { first, last: end.wrapping_sub(1) })
}

#[cfg(test)]
mod tests;

//! The error queue of a datagram socket, as in ip(7): ICMP errors (IP_RECVERR), and what its sends became of.
//!
//! The transport puts ICMP errors into the socket's page; MSG_ERRQUEUE takes them out. While one waits the descriptor
//! is readable, so that its waiters wake; module `poll` corrects what `poll` then reports.

use crate::buffers::Buffers;
use crate::received::{self, Received};
use crate::socket::Socket;
use crate::stream::Notice;
use crate::sys::Result;
use crate::{address, epoll, refusal, stamps, zerocopy};
use core::ffi::c_int;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use eft_base::Endpoint;
use eft_channel::socket::{ErrorRecord, Opt};

/// The values of `ee_origin` for ICMP and ICMPv6.
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// Sets IP_RECVERR; when it is switched off, waiting errors are dropped.
pub fn set(fd: c_int, socket: &Socket, on: bool) {
    let page = &socket.page;
    page.set_option(Opt::ReceiveErrors, on as u32);
    match on {
        true => {
            watch(fd);
        }
        false => {
            page.set_errors_taken(page.errors_end());
            // Times of sends go with them; Linux keeps those.
            socket.stamps_read().store(0, Ordering::Relaxed);
            received::quieten(fd, socket);
        }
    }
}

/// The socket at `fd` has an error queue from now on.
pub fn watch(fd: c_int) {
    crate::error_watch::watch();
    epoll::widen(fd);
}

/// Takes completions of sends with MSG_ZEROCOPY, or a time of a send, if that is what comes next. Never waits.
pub fn take_notice(fd: c_int, socket: &Socket) -> Option<Notice> {
    let completed = zerocopy::take(socket).map(Notice::Completed);
    let notice = completed.or_else(|| stamps::take_of_datagram(socket).map(Notice::Stamped))?;
    received::quieten(fd, socket);
    Some(notice)
}

/// Takes the oldest error: the quoted payload into the buffers, the destination as the sender. Never waits.
pub fn take(fd: c_int, socket: &Socket, to: &mut Buffers) -> Result<Received> {
    let taken = refusal::take_error(fd, socket, to)?;
    received::quieten(fd, socket);
    Ok(taken)
}

/// The `sock_extended_err` of an error, and the offender's address behind it: its bytes and how many.
pub fn extended(error: &ErrorRecord, inet6: bool) -> ([u8; 64], usize) {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&error.errno.to_ne_bytes());
    let origin = match IpAddr::from(error.destination) {
        IpAddr::V4(_) => ORIGIN_ICMP,
        IpAddr::V6(_) => ORIGIN_ICMP6,
    };
    bytes[4..7].copy_from_slice(&[origin, error.kind, error.code]);
    bytes[8..12].copy_from_slice(&error.info.to_ne_bytes());
    let (offender, len) = address::to_storage(Endpoint::new(error.offender.into(), 0), inet6);
    // SAFETY: a storage is longer than `len`, which is less than 48: an address of either kind.
    let offender = unsafe { core::slice::from_raw_parts((&raw const offender).cast::<u8>(), len) };
    bytes[16..16 + len].copy_from_slice(offender);
    (bytes, 16 + len)
}

//! Flow labels that programs choose (RFC 6437, RFC 3493 §3.3): the low bits of `sin6_flowinfo`, which count if IPV6_FLOWINFO_SEND is
//! on, for a connection from its `connect` on, and for datagrams of a socket without a peer from the `sendto` that named one.

use crate::socket::{Socket, bit};
use core::ffi::c_int;
use eft_channel::socket::{Opt, flow};
use libc::{sockaddr, sockaddr_in6, socklen_t};

/// Where `sin6_flowinfo` ends.
const END: usize = core::mem::offset_of!(sockaddr_in6, sin6_flowinfo) + 4;

/// The socket's packets have the label that its program says with this address, which was read already.
///
/// # Safety
/// `address` must be valid for `len` bytes.
pub unsafe fn choose(socket: &Socket, address: *const sockaddr, len: socklen_t) {
    let word = socket.page.option(Opt::FlowLabel);
    let chosen = match socket.has(bit::SEND_FLOW) {
        // SAFETY: by the caller.
        true => unsafe { said(address, len) },
        false => 0,
    };
    let now = word & !flow::LABEL | chosen;
    if now != word {
        socket.page.set_option(Opt::FlowLabel, now);
    }
}

/// # Safety
/// As [`choose`].
unsafe fn said(address: *const sockaddr, len: socklen_t) -> u32 {
    // SAFETY: by the caller, the family is there.
    let family = unsafe { (&raw const (*address).sa_family).read_unaligned() };
    if c_int::from(family) != libc::AF_INET6 || (len as usize) < END {
        return 0;
    }
    // SAFETY: long enough.
    let flowinfo = unsafe { (&raw const (*address.cast::<sockaddr_in6>()).sin6_flowinfo).read_unaligned() };
    u32::from_be(flowinfo) & flow::LABEL
}

/// Says it in an address that `getpeername` has told, as Linux does.
///
/// # Safety
/// `to` must be valid for `room` bytes.
pub unsafe fn tell(socket: &Socket, to: *mut sockaddr, room: socklen_t) {
    let label = socket.page.option(Opt::FlowLabel) & flow::LABEL;
    if socket.has(bit::SEND_FLOW) && socket.has(bit::INET6) && room as usize >= END {
        // SAFETY: by the caller.
        unsafe { (&raw mut (*to.cast::<sockaddr_in6>()).sin6_flowinfo).write_unaligned(label.to_be()) };
    }
}

/// IPV6_AUTOFLOWLABEL: whether packets have a label though the program chose none.
pub fn set_by_itself(socket: &Socket, on: bool) {
    let label = socket.page.option(Opt::FlowLabel) & flow::LABEL;
    socket.page.set_option(Opt::FlowLabel, label | if on { 0 } else { flow::NOT_BY_ITSELF });
}

pub fn is_by_itself(socket: &Socket) -> bool {
    socket.page.option(Opt::FlowLabel) & flow::NOT_BY_ITSELF == 0
}

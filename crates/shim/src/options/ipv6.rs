//! Options of IPv6 alone that are no plain words.

use super::{computed, int_of};
use crate::socket::Socket;
use crate::sys::{Errno, Result};
use core::ffi::c_int;
use eft_channel::socket::{Opt, SocketPage, flow, fragment};
use libc::{IPPROTO_IPV6, sockaddr_in6};

/// The least MTU of every IPv6 link (RFC 8200 §5).
const MTU_MIN: c_int = 1280;

/// IPV6_MTU: 0, or what every link takes at least.
pub(super) fn check_largest(number: c_int) -> Result<()> {
    match number {
        0 | MTU_MIN.. => Ok(()),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// Whether this limits what the socket sends, which the kernel would not tell again.
pub(super) fn is_limit(value: &[u8]) -> bool {
    int_of(IPPROTO_IPV6, value).is_ok_and(|number| number >= MTU_MIN)
}

/// IPV6_FLOWLABEL_MGR with Linux's `struct in6_flowlabel_req`: labels need no lease, as on Linux while no program has one for itself
/// alone, so any is granted. One that eft would have to choose is not.
pub(super) fn check_lease(value: &[u8]) -> Result<()> {
    const LEN: usize = 32;
    const LABEL: usize = 16;
    const ACTION: usize = 20;
    const RENEW: u8 = 2;
    let Some(request) = value.get(..LEN) else { return Err(Errno(libc::EINVAL)) };
    let mut label = [0; 4];
    label.copy_from_slice(&request[LABEL..LABEL + 4]);
    match u32::from_be_bytes(label) & flow::LABEL != 0 && request[ACTION] <= RENEW {
        true => Ok(()),
        false => Err(Errno(libc::EINVAL)),
    }
}

/// IPV6_DONTFRAG.
pub(super) fn set_never_fragment(page: &SocketPage, on: bool) {
    let others = page.option(Opt::DontFragment) & !fragment::NEVER_IPV6;
    page.set_option(Opt::DontFragment, others | if on { fragment::NEVER_IPV6 } else { 0 });
}

/// IPV6_PATHMTU (`struct ip6_mtuinfo`, RFC 3542 §11.4): as on Linux the address is left out.
pub(super) fn path_mtu_info(socket: &Socket) -> Result<[u8; size_of::<sockaddr_in6>() + 4]> {
    let mut bytes = [0; size_of::<sockaddr_in6>() + 4];
    bytes[size_of::<sockaddr_in6>()..].copy_from_slice(&computed::path_mtu(socket)?.to_ne_bytes());
    Ok(bytes)
}

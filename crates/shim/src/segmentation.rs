//! UDP_SEGMENT: one call sends several datagrams of a size. The device cuts them; here is what Linux refuses at the call.

use crate::interfaces;
use crate::socket::Socket;
use crate::sys::{self, Errno, Result};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use eft_channel::socket::{DatagramHeader, SEGMENTS_MAX};
use libc::{cmsghdr, msghdr};
use std::net::IpAddr;

/// Control data that a program sends along.
#[derive(Clone, Copy)]
pub struct Sent {
    pub pointer: *mut c_void,
    pub len: usize,
}

impl Sent {
    pub const NONE: Sent = Sent { pointer: core::ptr::null_mut(), len: 0 };
}

/// Bytes of each datagram of a send: as its control data say, or as was set for the socket; 0 if it is one datagram.
///
/// # Safety
/// `sent` must be as for `sendmsg`.
pub unsafe fn size(socket: &Socket, sent: Sent) -> Result<u16> {
    let mut size = socket.segment().load(Ordering::Relaxed) as u16;
    if sent.len == 0 {
        return Ok(size);
    }
    sys::plausible(sent.pointer, sent.len)?;
    // SAFETY: all zeroes is a msghdr.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_control = sent.pointer;
    message.msg_controllen = sent.len as _;
    // SAFETY: the macros stay within the control data, and each item's length is looked at before its data.
    unsafe {
        let mut item = libc::CMSG_FIRSTHDR(&message);
        while !item.is_null() {
            let begin = (item as usize).wrapping_sub(sent.pointer as usize);
            let len = (*item).cmsg_len as usize;
            if len < size_of::<cmsghdr>() || len > sent.len - begin {
                return Err(Errno(libc::EINVAL));
            }
            if (*item).cmsg_level == libc::IPPROTO_UDP {
                if (*item).cmsg_type != libc::UDP_SEGMENT || len != libc::CMSG_LEN(2) as usize {
                    return Err(Errno(libc::EINVAL));
                }
                size = libc::CMSG_DATA(item).cast::<u16>().read_unaligned();
            }
            item = libc::CMSG_NXTHDR(&message, item);
        }
    }
    Ok(size)
}

/// Whether `len` bytes may go as the datagrams that their record's header says: each in one packet, and not too many.
pub fn check(socket: &Socket, header: &DatagramHeader, len: usize) -> Result<()> {
    let segment = header.segment as usize;
    if segment == 0 {
        return Ok(());
    }
    let remote = IpAddr::from(header.address);
    let headers = if remote.is_ipv6() { 40 + 8 } else { 20 + 8 };
    let mtu = interfaces::mtu_towards(socket.page.local().address, remote);
    if headers + len.min(segment) > mtu as usize {
        return Err(Errno(libc::EMSGSIZE));
    }
    if len > segment * SEGMENTS_MAX {
        return Err(Errno(libc::EINVAL));
    }
    Ok(())
}

/// `setsockopt`.
pub fn set(socket: &Socket, size: c_int) -> Result<()> {
    let size = u16::try_from(size).map_err(|_| Errno(libc::EINVAL))?;
    socket.segment().store(size.into(), Ordering::Relaxed);
    Ok(())
}

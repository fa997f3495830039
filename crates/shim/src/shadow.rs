//! Datagrams to and from the kernel's loopback, over a socket's shadow.
//!
//! sockets increments a counter in the page whenever something arrives at the shadow; until then
//! receiving makes no system call for it. A shadow that may have something and the ring take turns,
//! so that neither starves; a datagram that was peeked at stays the next one. Invariant: while the
//! page says that the shadow is drained, it is (else the program would hang).

use crate::buffers::Buffers;
use crate::received::Received;
use crate::socket::Socket;
use crate::sys::{self, Errno, Result};
use crate::{address, loopback};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering;
use eft_base::{Endpoint, WireAddress};
use eft_channel::socket::DatagramHeader;
use libc::{msghdr, sockaddr_storage, socklen_t};

/// Where the kernel puts control data.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// The shadow, if it may have something.
#[inline]
pub fn due(socket: &Socket) -> Option<c_int> {
    if socket.shadow_due() { find(socket) } else { None }
}

#[cold]
fn find(socket: &Socket) -> Option<c_int> {
    let arrivals = socket.page.shadow_arrivals();
    let shadow = loopback::of(socket);
    if shadow.is_none() {
        // Not for us to take; marked as seen, or the descriptor would stay readable.
        socket.shadow_seen().store(arrivals, Ordering::Release);
    }
    shadow
}

/// Takes a datagram from the shadow, or peeks at it. Under the receive lock.
pub fn take(socket: &Socket, shadow: c_int, to: &Buffers, peek: bool) -> Result<Option<Received>> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC | if peek { libc::MSG_PEEK } else { 0 };
    let mut control = Control([0; 256]);
    // SAFETY: all zeroes is a sockaddr_storage, and a msghdr.
    let (mut name, mut message): (sockaddr_storage, msghdr) = unsafe { core::mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = size_of::<sockaddr_storage>() as socklen_t;
    message.msg_iov = to.list().as_ptr().cast_mut();
    message.msg_iovlen = to.list().len();
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // Before the receive: what arrives later counts as new.
    let arrivals = socket.page.shadow_arrivals();
    // SAFETY: our own buffers, and the program's.
    let len = match unsafe { sys::receive_message(shadow, &mut message, flags) } {
        Ok(len) => len,
        Err(Errno(libc::EAGAIN)) => {
            socket.shadow_seen().store(arrivals, Ordering::Release);
            return Ok(None);
        }
        Err(errno) => {
            settle(socket, shadow);
            return Err(errno);
        }
    };
    if !peek {
        settle(socket, shadow);
    }
    let from = address::from_storage(&name).unwrap_or(Endpoint::UNSPECIFIED);
    // SAFETY: the kernel filled in the control data.
    let mut header = unsafe { header_of(&message, from.address) };
    header.len = len as u32;
    header.port = from.port;
    header.address = WireAddress::from(from.address);
    header.local_port = socket.page.local().port;
    Ok(Some(Received { len, copied: len.min(to.left()), from, header, at: 0, error: None }))
}

/// Notes if nothing is left, so that the descriptor does not stay readable.
pub fn settle(socket: &Socket, shadow: c_int) {
    let arrivals = socket.page.shadow_arrivals();
    if sys::poll(shadow, libc::POLLIN, Some(0)) == Ok(0) {
        socket.shadow_seen().store(arrivals, Ordering::Release);
    }
}

/// The header of a datagram from its control data: the fields that the program asked the kernel for.
///
/// # Safety
/// The message must be as `recvmsg` left it.
unsafe fn header_of(message: &msghdr, from: IpAddr) -> DatagramHeader {
    let mut header = DatagramHeader {
        local: WireAddress::from(match from {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        }),
        ttl: 64,
        ..DatagramHeader::default()
    };
    // SAFETY: the macros stay within the control data; the kernel's items have these lengths.
    unsafe {
        let mut item = libc::CMSG_FIRSTHDR(message);
        while !item.is_null() {
            let data = libc::CMSG_DATA(item);
            match ((*item).cmsg_level, (*item).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    let v4 = Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr));
                    header.local = WireAddress::from(IpAddr::V4(v4));
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => header.tos = data.read(),
                (libc::IPPROTO_IP, libc::IP_TTL) => {
                    header.ttl = data.cast::<c_int>().read_unaligned() as u8;
                }
                (libc::IPPROTO_UDP, libc::UDP_GRO) => {
                    header.segment = data.cast::<c_int>().read_unaligned() as u16;
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    header.local = WireAddress(data.cast::<[u8; 16]>().read_unaligned());
                }
                _ => {}
            }
            item = libc::CMSG_NXTHDR(message, item);
        }
    }
    header
}

/// Length of the datagram that is next at the shadow, if there is one. Under the receive lock.
pub fn next_len(socket: &Socket, shadow: c_int) -> Option<usize> {
    // SAFETY: no buffers.
    let nothing = unsafe { Buffers::new(core::ptr::null(), 0) }.ok()?;
    take(socket, shadow, &nothing, true).ok().flatten().map(|received| received.len)
}

/// SO_ERROR of the shadow, if it may have one; taken.
pub fn pending_error(socket: &Socket) -> c_int {
    let error = |shadow| sys::get_option_int(shadow, libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or(0);
    match due(socket) {
        None => 0,
        Some(shadow) => {
            let errno = error(shadow);
            settle(socket, shadow);
            errno
        }
    }
}

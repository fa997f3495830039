//! Control data: for received datagrams the destination address, TOS, TTL and the size of merged ones, if the program
//! asked for them, and errors;
//! for a stream how many bytes are left.

use crate::received::Received;
use crate::socket::{Socket, bit};
use crate::stream::Notice;
use crate::{error_queue, stamps, sys};
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_base::address::without_zone;
use eft_channel::socket::Opt;
use libc::msghdr;

/// The number of TCP_INQ's message (`TCP_CM_INQ`).
const CM_INQ: c_int = 36;

/// Appends control messages within the room that the program gave.
struct Writer {
    base: *mut u8,
    room: usize,
    used: usize,
    truncated: bool,
}

impl Writer {
    /// # Safety
    /// `base` must be valid for `room` bytes.
    unsafe fn put(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        // SAFETY: plain arithmetic.
        let (space, len) = unsafe {
            (libc::CMSG_SPACE(data.len() as u32) as usize, libc::CMSG_LEN(data.len() as u32) as usize)
        };
        if self.room - self.used < len {
            self.truncated = true;
            return;
        }
        // SAFETY: `len` bytes are free at `used`.
        unsafe {
            let header = self.base.add(self.used).cast::<libc::cmsghdr>();
            (*header).cmsg_len = len as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            core::ptr::copy_nonoverlapping(data.as_ptr(), libc::CMSG_DATA(header), data.len());
        }
        self.used = (self.used + space).min(self.room);
    }
}

impl Writer {
    /// # Safety
    /// The message must be as for `recvmsg`.
    unsafe fn of(message: &msghdr) -> Writer {
        let room = match sys::plausible(message.msg_control, message.msg_controllen) {
            Ok(()) => message.msg_controllen,
            Err(_) => 0,
        };
        Writer { base: message.msg_control.cast(), room, used: 0, truncated: false }
    }

    /// # Safety
    /// As [`Writer::put`].
    unsafe fn put_error(&mut self, inet6: bool, data: &[u8]) {
        let (level, kind) = match inet6 {
            true => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
            false => (libc::IPPROTO_IP, libc::IP_RECVERR),
        };
        // SAFETY: by the caller.
        unsafe { self.put(level, kind, data) }
    }

    /// # Safety
    /// As [`Writer::put`].
    unsafe fn put_stamp(&mut self, stamp: Option<[u8; 48]>) {
        if let Some(bytes) = stamp {
            // SAFETY: by the caller.
            unsafe { self.put(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &bytes) };
        }
    }

    /// # Safety
    /// As [`Writer::put`].
    unsafe fn put_arrival(&mut self, socket: &Socket, at: u64) {
        for (kind, bytes, len) in stamps::of_arrival(socket, at) {
            // SAFETY: by the caller.
            unsafe { self.put(libc::SOL_SOCKET, kind, &bytes[..len]) };
        }
    }

    fn finish(self, message: &mut msghdr) {
        message.msg_controllen = self.used as _;
        if self.truncated {
            message.msg_flags |= libc::MSG_CTRUNC;
        }
    }
}

/// Fills in a stream's control data: when the bytes came, if an option asks for that, and how many bytes are left to read, if TCP_INQ is on. At the end of the stream that is
/// 1, as on Linux, so that a program reads again.
///
/// # Safety
/// The message must be as for `recvmsg`.
pub unsafe fn write_left(socket: &Socket, message: &mut msghdr) {
    // SAFETY: by the caller.
    let mut writer = unsafe { Writer::of(message) };
    message.msg_flags = 0;
    // SAFETY: the program's control buffer.
    unsafe { writer.put_arrival(socket, socket.page.received_at()) };
    if socket.has(bit::TELL_LEFT) {
        let left = match socket.page.receivable() as c_int {
            0 => socket.is_ended() as c_int,
            left => left,
        };
        // SAFETY: the program's control buffer.
        unsafe { writer.put(libc::IPPROTO_TCP, CM_INQ, &left.to_ne_bytes()) };
    }
    writer.finish(message);
}

/// Fills in the completions of sends with MSG_ZEROCOPY, or a time of a send.
///
/// # Safety
/// The message must be as for `recvmsg`.
pub unsafe fn write_notice(socket: &Socket, notice: &Notice, message: &mut msghdr) {
    // SAFETY: by the caller.
    let mut writer = unsafe { Writer::of(message) };
    message.msg_flags = libc::MSG_ERRQUEUE;
    let inet6 = socket.has(bit::INET6);
    let (bytes, len) = match notice {
        Notice::Completed(completed) => completed.extended(inet6),
        Notice::Stamped(stamp) => {
            if stamps::lacks_packet(socket) {
                message.msg_flags |= libc::MSG_TRUNC;
            }
            // SAFETY: the program's control buffer.
            unsafe { writer.put_stamp(stamps::told(socket, stamp.at)) };
            stamps::extended(socket, stamp, inet6)
        }
    };
    // SAFETY: the program's control buffer.
    unsafe { writer.put_error(inet6, &bytes[..len]) };
    writer.finish(message);
}

/// Fills in the message's control data and flags.
///
/// # Safety
/// The message must be as for `recvmsg`.
pub unsafe fn write(socket: &Socket, received: &Received, message: &mut msghdr) {
    // SAFETY: by the caller.
    let mut writer = unsafe { Writer::of(message) };
    message.msg_flags = if received.error.is_some() { libc::MSG_ERRQUEUE } else { 0 };
    let bits = socket.bits();
    // SAFETY: the program's control buffer.
    unsafe {
        writer.put_arrival(socket, received.at);
        if bits & bit::PACKET_INFO != 0 {
            put_packet_info(&mut writer, bits & bit::INET6 != 0, received);
        }
        put_hop_fields(&mut writer, bits, received);
        // Last, as of Linux.
        if received.header.segment != 0 && socket.page.option(Opt::MergeReceived) != 0 {
            let segment = c_int::from(received.header.segment);
            writer.put(libc::IPPROTO_UDP, libc::UDP_GRO, &segment.to_ne_bytes());
        }
        if let Some(error) = &received.error {
            let inet6 = bits & bit::INET6 != 0;
            let (bytes, len) = error_queue::extended(error, inet6);
            writer.put_error(inet6, &bytes[..len]);
        }
    }
    writer.finish(message);
}

/// The hop and service fields of a packet's header, by the options of its IP version.
///
/// # Safety
/// As [`write`].
unsafe fn put_hop_fields(writer: &mut Writer, bits: u32, received: &Received) {
    let (ttl, tos) = (received.header.ttl as c_int, received.header.tos);
    // SAFETY: by the caller.
    unsafe {
        if received.from.address.is_ipv6() {
            if bits & bit::RECEIVE_HOP_LIMIT != 0 {
                writer.put(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &ttl.to_ne_bytes());
            }
            if bits & bit::RECEIVE_CLASS != 0 {
                writer.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &c_int::from(tos).to_ne_bytes());
            }
            return;
        }
        if bits & bit::RECEIVE_TOS != 0 {
            writer.put(libc::IPPROTO_IP, libc::IP_TOS, &[tos]);
        }
        if bits & bit::RECEIVE_TTL != 0 {
            writer.put(libc::IPPROTO_IP, libc::IP_TTL, &ttl.to_ne_bytes());
        }
    }
}

/// # Safety
/// As [`write`].
unsafe fn put_packet_info(writer: &mut Writer, inet6: bool, received: &Received) {
    let local: IpAddr = received.header.local.into();
    let index = match received.header.interface {
        0 => crate::interfaces::index_of(local) as c_int,
        index => index.into(),
    };
    // SAFETY: by the caller.
    unsafe {
        if inet6 {
            let mut bytes = [0u8; 20];
            bytes[..16].copy_from_slice(&WireAddress::from(without_zone(local)).0);
            bytes[16..].copy_from_slice(&index.to_ne_bytes());
            writer.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &bytes);
        } else if let IpAddr::V4(v4) = local {
            let mut bytes = [0u8; 12];
            bytes[..4].copy_from_slice(&index.to_ne_bytes());
            bytes[4..8].copy_from_slice(&crate::interfaces::own(v4, index as u32).octets());
            bytes[8..].copy_from_slice(&v4.octets());
            writer.put(libc::IPPROTO_IP, libc::IP_PKTINFO, &bytes);
        }
    }
}

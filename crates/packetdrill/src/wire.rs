//! The wire: a packet socket at the Linux side of the stack's TAP device.
//!
//! A thread takes frames as they come, so that questions for the gateway are answered also while packetdrill waits for
//! something else. The time of a packet is the kernel's, of its arrival.

use crate::cut::{VNET_LEN, cut, merged};
use crate::neighbour::{ETHERNET_LEN, MAC, answer};
use crate::settle;
use core::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ETH_P_ALL: u16 = 3;
const SOL_PACKET: c_int = 263;
const PACKET_VNET_HDR: c_int = 15;
const PACKET_IGNORE_OUTGOING: c_int = 23;
/// Of the scripts' IPv4 device, which is the smaller one.
const MTU: usize = 1500;
const FRAME_MAX: usize = VNET_LEN + ETHERNET_LEN + 65535 + 64;
/// Longer than any script waits for a packet. After that it gets none, and fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// An IP packet, and when it came, in microseconds of the wall's clock.
pub type Packet = (Vec<u8>, c_longlong);

pub struct Wire {
    socket: Arc<OwnedFd>,
    /// The stack's Ethernet address.
    stack: [u8; 6],
    packets: Mutex<Receiver<Packet>>,
}

impl Wire {
    /// The wire that `flags` name: its device's name, a comma, and the stack's Ethernet address there.
    pub fn open(flags: &str) -> Result<Wire> {
        let (device, mac) = flags.split_once(',').ok_or_else(|| Error::other("no address is told"))?;
        let stack = address(mac).ok_or_else(|| Error::other("that is no Ethernet address"))?;

        let socket = Arc::new(packet_socket(device)?);
        let (sender, packets) = channel();
        let its_socket = Arc::clone(&socket);
        std::thread::Builder::new().name("wire".into()).spawn(move || take_frames(&its_socket, &sender))?;
        Ok(Wire { socket, stack, packets: Mutex::new(packets) })
    }

    /// Sends an IP packet to the stack.
    pub fn send(&self, packet: &[u8]) -> Result<()> {
        let kind: [u8; 2] =
            if packet.first().is_some_and(|b| b >> 4 == 6) { [0x86, 0xdd] } else { [0x08, 0x00] };
        if carries_data(packet) {
            settle::settle_shortly();
        }
        let (header, packet) = merged(packet.to_vec(), ETHERNET_LEN, MTU);
        send_frame(&self.socket, &[&header[..], &self.stack, &MAC, &kind, &packet].concat())?;
        settle::note();
        Ok(())
    }

    /// The next IP packet of the stack; `None` if none comes.
    pub fn receive(&self) -> Option<Packet> {
        self.receive_within(PATIENCE)
    }

    /// The next IP packet of the stack, if it comes in this time.
    pub fn receive_within(&self, time: Duration) -> Option<Packet> {
        self.packets.lock().expect("nobody panics with it").recv_timeout(time).ok()
    }
}

/// Whether an IPv4 packet is a TCP segment with data.
fn carries_data(packet: &[u8]) -> bool {
    const TCP: u8 = 6;
    let header = usize::from(packet.first().map_or(0, |b| b & 15)) * 4;
    let words = packet.get(header + 12).map_or(0, |b| usize::from(b >> 4));
    packet.get(9) == Some(&TCP) && packet[0] >> 4 == 4 && packet.len() > header + words * 4
}

fn address(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// The kernel's number of a device: libc's own answer, since libeft.so knows the stack's devices.
fn index_of(name: &CStr) -> Result<c_uint> {
    type Ask = unsafe extern "C" fn(*const c_char) -> c_uint;
    // SAFETY: strings; libc is loaded, and its symbol of this name has this type, by C's headers.
    let index = unsafe {
        let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let symbol = libc::dlsym(libc, c"if_nametoindex".as_ptr());
        if symbol.is_null() {
            return Err(Error::other("libc has no if_nametoindex"));
        }
        core::mem::transmute::<*mut c_void, Ask>(symbol)(name.as_ptr())
    };
    if index == 0 { Err(Error::last_os_error()) } else { Ok(index) }
}

fn packet_socket(device: &str) -> Result<OwnedFd> {
    let index = index_of(&std::ffi::CString::new(device)?)?;
    // SAFETY: plain numbers.
    let fd = unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, c_int::from(ETH_P_ALL.to_be()))
    };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: it is ours.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(&socket, SOL_PACKET, PACKET_VNET_HDR)?;
    set_option(&socket, SOL_PACKET, PACKET_IGNORE_OUTGOING)?;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMP)?;
    // SAFETY: all zeroes is a sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ETH_P_ALL.to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: an address of that length.
    let bound = unsafe { libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32) };
    if bound < 0 { Err(Error::last_os_error()) } else { Ok(socket) }
}

fn set_option(socket: &OwnedFd, level: c_int, name: c_int) -> Result<()> {
    let on: c_int = 1;
    // SAFETY: a number.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const on).cast(), size_of::<c_int>() as u32)
    };
    if set < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Sends a frame with what stands before it.
fn send_frame(socket: &OwnedFd, frame: &[u8]) -> Result<()> {
    // SAFETY: bytes that live for the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn take_frames(socket: &OwnedFd, packets: &Sender<Packet>) {
    let mut buffer = vec![0; FRAME_MAX];
    while let Ok((len, time)) = receive_frame(socket, &mut buffer) {
        let Some((header, frame)) = buffer[..len].split_at_checked(VNET_LEN) else { continue };
        if frame.len() < ETHERNET_LEN {
            continue;
        }
        if let Some(reply) = answer(frame) {
            let _ = send_frame(socket, &[&[0; VNET_LEN][..], &reply].concat());
            continue;
        }
        let Some(packet) = ip_packet(frame) else { continue };
        let size = usize::from(u16::from_ne_bytes([header[4], header[5]]));
        let gone = cut(packet, size).into_iter().any(|piece| packets.send((piece, time)).is_err());
        if gone {
            return;
        }
    }
}

/// A frame's IP packet without padding, if it is one for packetdrill's eyes: not what hosts say to each other of themselves.
fn ip_packet(frame: &[u8]) -> Option<Vec<u8>> {
    const ICMPV6: u8 = 58;
    let packet = &frame[ETHERNET_LEN..];
    let len = match (&frame[12..14], packet.first()? >> 4) {
        ([0x08, 0x00], 4) => usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?])),
        ([0x86, 0xdd], 6) => 40 + usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?])),
        _ => return None,
    };
    // Of groups they speak behind options hop by hop.
    let of_the_link = match (packet[0] >> 4, packet.get(6)) {
        (6, Some(&ICMPV6)) => *packet.get(40)? >= 130,
        (6, Some(0)) => *packet.get(40)? == ICMPV6 && *packet.get(48)? >= 130,
        _ => false,
    };
    (!of_the_link).then(|| packet.get(..len).map(<[u8]>::to_vec))?
}

/// A frame into `buffer`: its length, and when it came.
fn receive_frame(socket: &OwnedFd, buffer: &mut [u8]) -> Result<(usize, c_longlong)> {
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast::<c_void>(), iov_len: buffer.len() };
    // SAFETY: all zeroes is a msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), control.0.len());
    // SAFETY: our own buffers, for the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    if len < 0 {
        return Err(Error::last_os_error());
    }
    let mut time = 0;
    // SAFETY: the kernel filled in the control data; SO_TIMESTAMP's is a timeval.
    unsafe {
        let item = libc::CMSG_FIRSTHDR(&raw const message);
        if !item.is_null()
            && ((*item).cmsg_level, (*item).cmsg_type) == (libc::SOL_SOCKET, libc::SO_TIMESTAMP)
        {
            let at = libc::CMSG_DATA(item).cast::<libc::timeval>().read_unaligned();
            time = at.tv_sec * 1_000_000 + at.tv_usec;
        }
    }
    Ok((len as usize, time))
}

//! ip ↔ nic.
//!
//! **Buffers.** Going out, ip owns the frame slot (a [`FrameDescriptor`]); payload lies where the
//! transport said. Coming in, frames lie in the NIC's pool until [`IpToNic::Done`].
//!
//! **Full.** `Send` waits: ip checks for room first. Received frames are dropped (counted) by the
//! NIC when less than half of the queue or no pool slot is free.
//!
//! **Lost.** ip repeats a `Send` that was not answered within a second or two, in the same slot: the NIC ignores that while the
//! frame waits for the device, and else answers again. The NIC repeats a `Received` in the same way: ip ignores that while it or a
//! transport has the frame, and else gives it back again.
//!
//! **Restart.** nic reborn: ip resubmits unanswered `Send`s; a frame may go out twice. ip reborn:
//! the NIC delivers every frame that was not given back to the new ip again.

use crate::seal::seal;
use eft_base::{MacAddress, PacketRef, RequestId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

crate::messages! {
    /// From ip to a NIC.
    pub enum IpToNic {
        /// Send the frame that the [`FrameDescriptor`] at `descriptor` describes.
        1 => Send { request: RequestId, descriptor: PacketRef },
        /// A received frame is no longer needed.
        2 => Done { packet: PacketRef },
    }
}

crate::messages! {
    /// From a NIC to ip.
    pub enum NicToIp {
        /// The device took the frame (`errno` 0), or refused it.
        1 => Sent { request: RequestId, errno: i32 },
        /// A frame, from its Ethernet header on. `checksum_ok`: the transport checksum needs no
        /// check. `segment_size`: as in `Deliver`.
        2 => Received { packet: PacketRef, checksum_ok: bool, segment_size: u16 },
        /// The device as it is now; sent at start, on change, and again while frames pass. `segment_max`: largest TCP or UDP
        /// payload of one frame that the NIC segments (0: none). `checksum`: it completes checksums.
        3 => Link { mac: MacAddress, mtu: u16, up: bool, checksum: bool, segment_max: u32 },
    }
}

/// Ethernet + IPv6 with a fragment header + TCP with full options, rounded up.
pub const FRAME_HEADER_MAX: usize = 128;
/// Payload references in a frame.
pub const FRAME_PAYLOAD_MAX: usize = 4;
/// Slot size of ip's frame pool.
pub const FRAME_SLOT_LEN: usize = 256;

/// A slot for a whole packet: a segment of 64 KB with its headers, on whole pages.
pub const PACKET_SLOT_LEN: usize = 17 * 4096;

/// A frame to send: headers by value, payload by reference.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FrameDescriptor {
    /// Bytes of `header` in use: Ethernet, IP and transport header.
    pub header_len: u16,
    pub payload_count: u16,
    /// Where the transport's header begins. If `flags` has [`FRAME_CHECKSUM`]: sum from here to the end and put the complement at
    /// `checksum_start + checksum_offset`, where the pseudo-header's sum already is.
    pub checksum_start: u16,
    pub checksum_offset: u16,
    /// TCP or UDP payload per segment, 0 for one frame.
    pub segment_size: u16,
    pub flags: u8,
    pub reserved: u8,
    /// Of the header from `checksum_start` on, of which the checksum is left out, and of the payload ([`crate::seal`]); 0: there is
    /// none.
    pub seal: u32,
    pub payload: [PacketRef; FRAME_PAYLOAD_MAX],
    pub header: [u8; FRAME_HEADER_MAX],
}

impl FrameDescriptor {
    /// Whether it is what a transport has sealed, if one has.
    #[inline]
    pub fn is_as_sealed(&self) -> bool {
        let header = self.header.get(self.checksum_start as usize..self.header_len as usize);
        let payload = self.payload.get(..self.payload_count as usize);
        self.seal == 0
            || header.zip(payload).is_some_and(|(header, payload)| {
                seal(header, self.checksum_offset.into(), payload) == self.seal
            })
    }
}

pub const FRAME_CHECKSUM: u8 = 1;

const _: () = assert!(size_of::<FrameDescriptor>() <= FRAME_SLOT_LEN);

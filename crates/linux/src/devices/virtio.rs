//! The header before a frame of a TAP device or a packet socket: what of it is left to do.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct virtio_net_hdr` (virtio 1.2 §5.1.6, legacy length), in this machine's byte order (little-endian).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    pub hdr_len: u16,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

pub const VNET_HEADER_LEN: usize = 10;
const _: () = assert!(size_of::<VnetHeader>() == VNET_HEADER_LEN);

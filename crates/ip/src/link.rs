//! A device, as its NIC describes it.

use eft_base::MacAddress;

/// What every link must carry (RFC 791 §3.2); a device that reports less is not believed.
pub(crate) const MTU_MIN: u16 = 576;

/// A device as its NIC last described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub mac: MacAddress,
    pub mtu: u16,
    pub up: bool,
    pub checksum: bool,
    pub segment_max: u32,
}

//! A device, as its NIC describes it.

use eft_base::MacAddress;

/// A device as its NIC last described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub mac: MacAddress,
    pub mtu: u16,
    pub up: bool,
    pub checksum: bool,
    pub segment_max: u32,
}

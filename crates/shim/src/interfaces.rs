//! The stack's interfaces, as the program may ask for them.

use crate::family::family;
use core::net::IpAddr;
use eft_messages::control::InterfaceInfo;
use zerocopy::FromBytes;

/// The stack's interface records, one per address.
pub fn records() -> Vec<InterfaceInfo> {
    let Some(family) = family() else {
        return Vec::new();
    };
    let (header, bytes) = family.info();
    bytes
        .chunks_exact(size_of::<InterfaceInfo>())
        .take(header.interfaces as usize)
        .filter_map(|chunk| InterfaceInfo::read_from_bytes(chunk).ok())
        .collect()
}

/// The index of the interface that has this address; 0 if none has.
pub fn index_of(address: IpAddr) -> u16 {
    records()
        .iter()
        .find(|record| IpAddr::from(record.address) == address)
        .map_or(0, |record| record.index)
}

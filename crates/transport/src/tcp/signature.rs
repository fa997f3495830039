//! The signature of a segment (RFC 2385): an MD5 digest over its addresses, its header, its data, and a key that both ends were told.
//! Its use is in [`super::signing`].

use super::options::Signature;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_base::address::without_zone;
use eft_base::wire::{PROTOCOL_TCP, TcpHeader};
use eft_channel::socket::SignatureKey;
use md5::{Digest as _, Md5};

/// What a connection knows of its key.
#[derive(Default)]
pub(crate) struct Signing {
    pub key: Option<Rc<SignatureKey>>,
    /// [`Opt::SignatureKeys`](eft_channel::socket::Opt) when it was chosen.
    pub seen: u32,
}

/// What signs an outgoing segment.
pub(super) struct Signed {
    pub key: Rc<SignatureKey>,
    /// The segment's payload.
    pub data: Vec<u8>,
}

impl Signed {
    /// For a segment without payload.
    pub fn bare(key: Rc<SignatureKey>) -> Signed {
        Signed { key, data: Vec::new() }
    }
}

/// The digest of a segment (RFC 2385 §2.0): `header` without options and with a checksum of 0, which the length counts all the same.
pub(super) fn digest(
    key: &SignatureKey,
    (source, destination): (WireAddress, WireAddress),
    header: &[u8; size_of::<TcpHeader>()],
    len: u32,
    data: &[u8],
) -> Signature {
    let mut sum = Md5::new();
    match (without_zone(source.into()), without_zone(destination.into())) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            sum.update(source.octets());
            sum.update(destination.octets());
            sum.update([0, PROTOCOL_TCP]);
            sum.update((len as u16).to_be_bytes());
        }
        // RFC 8200 §8.1.
        (source, destination) => {
            for address in [source, destination] {
                sum.update(WireAddress::from(address).0);
            }
            sum.update(len.to_be_bytes());
            sum.update([0, 0, 0, PROTOCOL_TCP]);
        }
    }
    sum.update(header);
    sum.update(data);
    sum.update(key.bytes());
    sum.finalize().into()
}

/// Whether two digests are equal, in the same time whichever byte differs first.
pub(super) fn are_equal(a: &Signature, b: &Signature) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | a ^ b) == 0
}

#[cfg(test)]
mod tests;

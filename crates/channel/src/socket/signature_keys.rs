//! Keys that sign a stream's segments (TCP_MD5SIG, TCP_AO_ADD_KEY), as the application set them: the transport reads them, and never
//! those of a socket that set none.
//!
//! A page has room for [`FIRST_KEYS`]; a listener, which sends no bytes, has its other keys in its send ring. A key is written before
//! [`Opt::SignatureKeys`], which says how many there are and how often they changed: while they change, a transport may read a
//! mixture of both, and reads again when it is told.
//!
//! Everybody who maps the arena can read them, as all that its programs send: ip and the nics, too.

use super::records::RECORDS;
use super::{Opt, SOCKET_HEADER_LEN, SocketPage};
use core::net::IpAddr;
use eft_base::WireAddress;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most bytes of a key, as on Linux (`TCP_MD5SIG_MAXKEYLEN`).
pub const KEY_BYTES_MAX: usize = 80;
/// Keys of a socket that does not listen.
pub const FIRST_KEYS: usize = 5;
const KEY_LEN: usize = size_of::<SignatureKey>();
/// Before the records of a stream, in space that no version has used before.
pub(super) const KEYS: usize = RECORDS - FIRST_KEYS * KEY_LEN;
const _: () = assert!(super::statistics::LATER_END <= KEYS && RECORDS <= SOCKET_HEADER_LEN);
/// Bits of [`Opt::SignatureKeys`] that are their number; the others count changes.
const COUNT_MASK: u32 = 0xffff;

/// Values of [`SignatureKey::algorithm`].
pub mod algorithm {
    /// RFC 2385, which was the only one at first.
    pub const MD5: u8 = 0;
    /// TCP-AO (RFC 5925) with HMAC-SHA-1-96 and KDF_HMAC_SHA1 (RFC 5926 §3).
    pub const HMAC_SHA1: u8 = 1;
    /// TCP-AO with AES-128-CMAC-96 and KDF_AES_128_CMAC.
    pub const AES_CMAC: u8 = 2;
}

/// Most bytes of a message authentication code: those of both algorithms of RFC 5926.
pub const MAC_MAX: usize = 12;

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SignatureKey {
    /// Peers whose addresses begin with [`SignatureKey::prefix_len`] bits of this one have it.
    pub address: WireAddress,
    /// Of [`SignatureKey::address`], which is always one of 128 bits: an IPv4 address has 96 bits before it.
    pub prefix_len: u8,
    pub len: u8,
    /// One of [`algorithm`]. What follows is of TCP-AO's keys.
    pub algorithm: u8,
    /// KeyID of segments that are signed with it, and of segments that it verifies (SendID and RecvID of RFC 5925 §3.1).
    pub send_id: u8,
    pub receive_id: u8,
    /// Bytes of a segment's code, 1 to [`MAC_MAX`].
    pub mac_len: u8,
    /// 1: the code does not cover other options.
    pub excludes_options: u8,
    pub reserved: [u8; 9],
    pub bytes: [u8; KEY_BYTES_MAX],
}

impl SignatureKey {
    /// Whether this key is for a peer. Addresses of IPv4 and IPv6 never have a common prefix here, not even an empty one.
    pub fn is_for(&self, peer: WireAddress) -> bool {
        let alike = IpAddr::from(self.address).is_ipv4() == IpAddr::from(peer).is_ipv4();
        let bits = u32::from(self.prefix_len.min(128));
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let [own, other] = [self.address, peer].map(|address| u128::from_be_bytes(address.0));
        alike && (own ^ other) & mask == 0
    }

    /// Whether it is one of TCP-AO.
    pub fn is_ao(&self) -> bool {
        matches!(self.algorithm, algorithm::HMAC_SHA1 | algorithm::AES_CMAC)
    }

    /// The key itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(KEY_BYTES_MAX)]
    }
}

/// How many keys a word of [`Opt::SignatureKeys`] speaks of.
pub fn count(word: u32) -> usize {
    (word & COUNT_MASK) as usize
}

/// The word after a change.
pub fn changed(word: u32, count: usize) -> u32 {
    (word & !COUNT_MASK).wrapping_add(COUNT_MASK + 1) | count as u32 & COUNT_MASK
}

impl SocketPage {
    /// How many keys fit. `listens`: the send ring is free for some.
    pub fn signature_keys_max(&self, listens: bool) -> usize {
        FIRST_KEYS
            + if listens { (self.send_len() / KEY_LEN).min(COUNT_MASK as usize - FIRST_KEYS) } else { 0 }
    }

    /// The key of this number, which must be less than [`SocketPage::signature_keys_max`].
    pub fn signature_key(&self, number: usize) -> SignatureKey {
        let mut bytes = [0; KEY_LEN];
        match number.checked_sub(FIRST_KEYS) {
            None => self.read_bytes(KEYS + number * KEY_LEN, &mut bytes),
            Some(more) => self.read_send((more * KEY_LEN) as u64, &mut bytes),
        }
        zerocopy::transmute!(bytes)
    }

    /// Writes the key of this number, which must be less than [`SocketPage::signature_keys_max`].
    pub fn write_signature_key(&self, number: usize, key: &SignatureKey) {
        match number.checked_sub(FIRST_KEYS) {
            None => self.write_bytes(KEYS + number * KEY_LEN, key.as_bytes()),
            Some(more) => self.write_send((more * KEY_LEN) as u64, key.as_bytes()),
        }
    }

    /// Tells the transport how many keys there are now.
    pub fn tell_signature_keys(&self, count: usize) {
        self.set_option(Opt::SignatureKeys, changed(self.option(Opt::SignatureKeys), count));
    }
}

#[cfg(test)]
mod tests;

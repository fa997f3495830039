//! TCP-AO's cryptography (RFC 5925 §5, RFC 5926): a traffic key, made of a master key and what is particular to a connection, and
//! the code that it makes of a segment. Who has which key is in [`super::ao_keys`].

use super::covered::Covered;
use super::options::mac_range;
use aes::Aes128;
use alloc::rc::Rc;
use cmac::Cmac;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_base::address::without_zone;
use eft_channel::socket::SignatureKey;
use eft_channel::socket::signature_keys::{MAC_MAX, algorithm};
use hmac::{Hmac, Mac};
use sha1::Sha1;

/// RFC 5926 §3.1.1: i and Label of the one iteration that there is.
const PREFIX: &[u8] = b"\x01TCP-AO";
const CMAC_KEY_LEN: usize = 16;

/// A traffic key (RFC 5925 §3.2), ready for use.
#[derive(Clone)]
pub(super) enum TrafficKey {
    HmacSha1(Hmac<Sha1>),
    AesCmac(Cmac<Aes128>),
}

/// What signs a segment.
#[derive(Clone)]
pub(super) struct AoSigner {
    pub key: Rc<TrafficKey>,
    pub key_id: u8,
    pub next_id: u8,
    pub mac_len: u8,
    pub covers_options: bool,
    /// Of the segment's sequence number (RFC 5925 §6.2).
    pub extension: u32,
}

/// What a traffic key is particular to (RFC 5925 §5.2): sender first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Particulars {
    pub addresses: (WireAddress, WireAddress),
    pub ports: (u16, u16),
    /// Initial sequence numbers; that of a SYN's receiver is 0.
    pub isns: (u32, u32),
}

/// The code of a segment, cut to [`MAC_MAX`] bytes.
pub(super) type Code = [u8; MAC_MAX];

fn hmac_sha1(key: &[u8]) -> Hmac<Sha1> {
    Hmac::new_from_slice(key).expect("a key of any length")
}

fn aes_cmac(key: &[u8; CMAC_KEY_LEN]) -> Cmac<Aes128> {
    Cmac::new(key.into())
}

impl TrafficKey {
    /// RFC 5926 §3.1.1.
    pub fn derive(master: &SignatureKey, of: &Particulars) -> TrafficKey {
        match master.algorithm {
            algorithm::AES_CMAC => {
                // §3.1.1.2: a key of another length is made one of 128 bits first.
                let key = <[u8; CMAC_KEY_LEN]>::try_from(master.bytes()).unwrap_or_else(|_| {
                    aes_cmac(&[0; CMAC_KEY_LEN]).chain_update(master.bytes()).finalize().into_bytes().into()
                });
                TrafficKey::AesCmac(aes_cmac(
                    &context(aes_cmac(&key), of, 128).finalize().into_bytes().into(),
                ))
            }
            _ => TrafficKey::HmacSha1(hmac_sha1(
                &context(hmac_sha1(master.bytes()), of, 160).finalize().into_bytes(),
            )),
        }
    }

    /// The code of a segment (RFC 5925 §5.1, RFC 5926 §3.2) with the sequence number's extension `extension` (§6.2), and with these options, among
    /// them TCP-AO's. `all`: the others are covered, too.
    pub fn code(&self, covered: &Covered, extension: u32, options: &[u8], all: bool) -> Code {
        let mut code = [0; MAC_MAX];
        match self {
            TrafficKey::HmacSha1(key) => {
                let sum = sum(key.clone(), covered, extension, options, all).finalize().into_bytes();
                code.copy_from_slice(&sum[..MAC_MAX]);
            }
            TrafficKey::AesCmac(key) => {
                let sum = sum(key.clone(), covered, extension, options, all).finalize().into_bytes();
                code.copy_from_slice(&sum[..MAC_MAX]);
            }
        }
        code
    }
}

/// i, Label, Context and Output_Length, in bits.
fn context<M: Mac>(mut prf: M, of: &Particulars, bits: u16) -> M {
    prf.update(PREFIX);
    for address in [of.addresses.0, of.addresses.1] {
        match without_zone(address.into()) {
            IpAddr::V4(address) => prf.update(&address.octets()),
            IpAddr::V6(address) => prf.update(&address.octets()),
        }
    }
    for part in [of.ports.0, of.ports.1] {
        prf.update(&part.to_be_bytes());
    }
    for part in [of.isns.0, of.isns.1] {
        prf.update(&part.to_be_bytes());
    }
    prf.update(&bits.to_be_bytes());
    prf
}

fn sum<M: Mac>(mut mac: M, covered: &Covered, extension: u32, options: &[u8], all: bool) -> M {
    mac.update(&extension.to_be_bytes());
    covered.pseudo_header(|bytes| mac.update(bytes));
    mac.update(covered.header);
    if let Some(place) = mac_range(options) {
        let (before, after) = if all {
            (&options[..place.start], &options[place.end..])
        } else {
            (&options[place.start - 4..place.start], &[][..])
        };
        mac.update(before);
        place.for_each(|_| mac.update(&[0]));
        mac.update(after);
    }
    mac.update(covered.data);
    mac
}

#[cfg(test)]
mod tests;

//! The keys of our Fast Open cookies (RFC 7413 §4.1.2), and the cookies that they make: as on Linux, so that several hosts
//! behind one address, some of which may run Linux, give and take the same.

use super::fast_open::Cookie;
use core::fmt;
use core::hash::Hasher;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;
use eft_base::address::without_zone;
use eft_base::hash::{Key, SipHasher24};
use eft_base::{Instant, WireAddress};
use thiserror::Error;

/// Bytes of a key.
const KEY_LEN: usize = 16;
/// How long keys of our own are in use: a cookie is valid in its own period and in the next.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// One key or two: the first makes cookies, and cookies of the second are valid, too, while clients learn new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieKeys {
    primary: [u8; KEY_LEN],
    backup: Option<[u8; KEY_LEN]>,
}

/// The validity of a client's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Current,
    /// Valid, but not for much longer: the client should get a new one.
    Old,
    Nothing,
}

impl CookieKeys {
    /// From the bytes of TCP_FASTOPEN_KEY: one key or two.
    pub fn from_bytes(bytes: &[u8]) -> Option<CookieKeys> {
        let (primary, rest) = bytes.split_first_chunk()?;
        let backup = match rest {
            [] => None,
            rest => Some(rest.try_into().ok()?),
        };
        Some(CookieKeys { primary: *primary, backup })
    }

    /// Keys that change daily, for a stack that was given none; the previous day's is the second.
    pub(super) fn of_day(secret: Key, now: Instant) -> CookieKeys {
        let day = now.as_nanos() / PERIOD.as_nanos() as u64;
        let key = |day: u64| {
            let halves = [0u8, 1].map(|half| secret.hash(b'F', &(day, half)));
            zerocopy::transmute!(halves)
        };
        CookieKeys { primary: key(day), backup: Some(key(day.wrapping_sub(1))) }
    }

    /// The cookie of a client at one of our addresses.
    pub(super) fn make(&self, client: WireAddress, own: WireAddress) -> Cookie {
        cookie(&self.primary, client, own)
    }

    /// Whether a client's cookie is valid.
    pub(super) fn judge(&self, shown: &Cookie, client: WireAddress, own: WireAddress) -> Worth {
        let is_of = |key: &[u8; KEY_LEN]| cookie(key, client, own).bytes() == shown.bytes();
        if is_of(&self.primary) {
            Worth::Current
        } else if self.backup.as_ref().is_some_and(is_of) {
            Worth::Old
        } else {
            Worth::Nothing
        }
    }
}

/// SipHash-2-4 over the SYN's source and destination, as they are on the wire.
fn cookie(key: &[u8; KEY_LEN], client: WireAddress, own: WireAddress) -> Cookie {
    let mut hasher = SipHasher24::new_with_key(key);
    for address in [client, own] {
        match without_zone(address.into()) {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
    }
    Cookie::parse(&hasher.finish().to_le_bytes()).unwrap_or(Cookie::REQUEST)
}

impl fmt::Display for CookieKeys {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, key) in [Some(self.primary), self.backup].into_iter().flatten().enumerate() {
            let [a, b, c, d]: [[u8; 4]; 4] = zerocopy::transmute!(key);
            let [a, b, c, d] = [a, b, c, d].map(u32::from_le_bytes);
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{a:08x}-{b:08x}-{c:08x}-{d:08x}")?;
        }
        Ok(())
    }
}

impl FromStr for CookieKeys {
    type Err = UnknownKey;

    /// As Linux's `net.ipv4.tcp_fastopen_key`: four hexadecimal words of 32 bits with `-` between them; a second key may
    /// follow a comma.
    fn from_str(text: &str) -> Result<CookieKeys, UnknownKey> {
        let (primary, backup) = text.split_once(',').map_or((text, None), |(a, b)| (a, Some(b)));
        Ok(CookieKeys { primary: key(primary)?, backup: backup.map(key).transpose()? })
    }
}

fn key(text: &str) -> Result<[u8; KEY_LEN], UnknownKey> {
    let mut bytes = [0; KEY_LEN];
    let mut words = text.split('-');
    for place in bytes.chunks_exact_mut(4) {
        let word = words.next().filter(|word| (1..=8).contains(&word.len()) && !word.starts_with('+'));
        let word = word.and_then(|word| u32::from_str_radix(word, 16).ok()).ok_or(UnknownKey)?;
        place.copy_from_slice(&word.to_le_bytes());
    }
    words.next().map_or(Ok(bytes), |_| Err(UnknownKey))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "is no key: write four hexadecimal words of 32 bits, as 01234567-89abcdef-01234567-89abcdef, and perhaps a comma and a second key"
)]
pub struct UnknownKey;

#[cfg(test)]
mod tests;

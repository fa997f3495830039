//! TCP Fast Open (RFC 7413): whether it is used at all, its option, and our cookies.
//!
//! What the engine does with them as a server is in [`super::early`], as a client in [`super::early_connect`].

use core::str::FromStr;
use core::time::Duration;
use eft_base::hash::Key;
use eft_base::{Instant, WireAddress};
use thiserror::Error;

/// RFC 7413 §4.1.1.
const COOKIE_MIN: usize = 4;
const COOKIE_MAX: usize = 16;
/// How long we give out the same cookie. A cookie is valid in its own period and in the next (RFC 7413 §4.1.2: the key
/// changes now and then, and both keys are good for a while).
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Which sides of it are used, as `eft up --fastopen` says; like Linux's `net.ipv4.tcp_fastopen`, whose default is the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastOpen {
    Off,
    #[default]
    Client,
    Server,
    Both,
}

impl FastOpen {
    pub fn name(self) -> &'static str {
        match self {
            FastOpen::Off => "off",
            FastOpen::Client => "client",
            FastOpen::Server => "server",
            FastOpen::Both => "both",
        }
    }

    pub(super) fn asks(self) -> bool {
        matches!(self, FastOpen::Client | FastOpen::Both)
    }

    pub(super) fn serves(self) -> bool {
        matches!(self, FastOpen::Server | FastOpen::Both)
    }
}

impl FromStr for FastOpen {
    type Err = UnknownFastOpen;

    fn from_str(text: &str) -> Result<FastOpen, UnknownFastOpen> {
        let all = [FastOpen::Off, FastOpen::Client, FastOpen::Server, FastOpen::Both];
        all.into_iter().find(|which| which.name() == text).ok_or(UnknownFastOpen)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not one of off, client, server and both")]
pub struct UnknownFastOpen;

/// The content of the option: a cookie, or nothing, which asks for one (RFC 7413 §4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; COOKIE_MAX],
    len: u8,
}

impl Cookie {
    /// Asks for one.
    pub const REQUEST: Cookie = Cookie { bytes: [0; COOKIE_MAX], len: 0 };

    /// Reads the option's data; `None` if their length is invalid, so that the option is ignored (RFC 7413 §4.1.1).
    pub fn parse(data: &[u8]) -> Option<Cookie> {
        let fits = data.is_empty() || (COOKIE_MIN..=COOKIE_MAX).contains(&data.len());
        if !fits || !data.len().is_multiple_of(2) {
            return None;
        }
        let mut cookie = Cookie { len: data.len() as u8, ..Cookie::REQUEST };
        cookie.bytes[..data.len()].copy_from_slice(data);
        Some(cookie)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub fn is_request(&self) -> bool {
        self.len == 0
    }

    fn of_period(key: Key, client: WireAddress, period: u64) -> Cookie {
        let hash = key.hash(b'F', &(client, period)).to_be_bytes();
        let mut cookie = Cookie { len: hash.len() as u8, ..Cookie::REQUEST };
        cookie.bytes[..hash.len()].copy_from_slice(&hash);
        cookie
    }

    /// Our cookie for a client: a keyed hash of its address (RFC 7413 §4.1.2).
    pub(super) fn ours(key: Key, client: WireAddress, now: Instant) -> Cookie {
        Cookie::of_period(key, client, period(now))
    }

    /// Whether a client's cookie is valid.
    pub(super) fn judge(&self, key: Key, client: WireAddress, now: Instant) -> Worth {
        let current = period(now);
        if *self == Cookie::of_period(key, client, current) {
            Worth::Current
        } else if *self == Cookie::of_period(key, client, current.wrapping_sub(1)) {
            Worth::Old
        } else {
            Worth::Nothing
        }
    }
}

/// The validity of a client's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Current,
    /// Valid, but not for much longer: the client should get a new one.
    Old,
    Nothing,
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

#[cfg(test)]
mod tests;

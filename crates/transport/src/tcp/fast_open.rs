//! TCP Fast Open (RFC 7413): where it is used, and its option.
//!
//! What the engine does with them as a server is in [`super::early`], as a client in [`super::early_connect`].

use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// RFC 7413 §4.1.1.
const COOKIE_MIN: usize = 4;
const COOKIE_MAX: usize = 16;

/// Where it is used, as `eft up --fastopen` says. The bits are those of Linux's `net.ipv4.tcp_fastopen`, whose default is
/// the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen(u32);

impl FastOpen {
    pub const OFF: FastOpen = FastOpen(0);
    /// Programs that connect may send with the SYN.
    pub const CLIENT: FastOpen = FastOpen(1);
    /// Listeners may take data that come with a SYN.
    pub const SERVER: FastOpen = FastOpen(2);
    pub const BOTH: FastOpen = FastOpen(3);
    /// Clients send data without a cookie (RFC 7413 §4.1.2 advises against it beyond a private network).
    pub const CLIENT_NO_COOKIE: FastOpen = FastOpen(4);
    /// Listeners take data without a cookie.
    pub const SERVER_NO_COOKIE: FastOpen = FastOpen(0x200);
    /// Every listener has it, not only those with TCP_FASTOPEN.
    pub const ALL_LISTENERS: FastOpen = FastOpen(0x400);

    const PARTS: [(FastOpen, &str); 5] = [
        (FastOpen::CLIENT, "client"),
        (FastOpen::SERVER, "server"),
        (FastOpen::CLIENT_NO_COOKIE, "client-no-cookie"),
        (FastOpen::SERVER_NO_COOKIE, "server-no-cookie"),
        (FastOpen::ALL_LISTENERS, "all-listeners"),
    ];

    /// By a value of Linux's variable; bits without a meaning are left out.
    pub fn of_linux(bits: u32) -> FastOpen {
        let known = FastOpen::PARTS.iter().fold(0, |all, (part, _)| all | part.0);
        FastOpen(bits & known)
    }

    pub fn has(self, part: FastOpen) -> bool {
        self.0 & part.0 == part.0
    }
}

impl Default for FastOpen {
    fn default() -> FastOpen {
        FastOpen::CLIENT
    }
}

impl fmt::Display for FastOpen {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            FastOpen::OFF => f.write_str("off"),
            FastOpen::BOTH => f.write_str("both"),
            _ => {
                let parts = FastOpen::PARTS.iter().filter(|(part, _)| self.has(*part));
                parts.enumerate().try_for_each(|(i, (_, name))| {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}")
                })
            }
        }
    }
}

impl FromStr for FastOpen {
    type Err = UnknownFastOpen;

    fn from_str(text: &str) -> Result<FastOpen, UnknownFastOpen> {
        match text {
            "off" => Ok(FastOpen::OFF),
            _ => text.split(',').try_fold(FastOpen::OFF, |all, word| {
                let part = match word {
                    "both" => Some(FastOpen::BOTH),
                    _ => FastOpen::PARTS.iter().find(|(_, name)| *name == word).map(|(part, _)| *part),
                };
                part.map(|part| FastOpen(all.0 | part.0)).ok_or(UnknownFastOpen)
            }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "is neither off nor a list, with commas, of client, server, both, client-no-cookie, server-no-cookie and all-listeners"
)]
pub struct UnknownFastOpen;

/// The content of the option: a cookie, or nothing, which asks for one (RFC 7413 §4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; COOKIE_MAX],
    len: u8,
    /// It comes, or goes, in the experimental option (RFC 6994) that was used before the RFC: some peers know no other.
    pub experimental: bool,
}

impl Cookie {
    /// Asks for one.
    pub const REQUEST: Cookie = Cookie { bytes: [0; COOKIE_MAX], len: 0, experimental: false };

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

    /// The same in the other option, or in this one.
    pub fn in_option(self, experimental: bool) -> Cookie {
        Cookie { experimental, ..self }
    }
}

#[cfg(test)]
mod tests;

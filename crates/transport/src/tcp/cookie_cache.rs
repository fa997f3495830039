//! A Fast Open client's cache of servers (RFC 7413 §4.1.3): their cookies, and servers with which Fast Open failed.
//!
//! It lasts for one life of the engine: a forgotten cookie costs its next connection a round trip, in which a new one
//! comes, so a commit per handshake would cost too much.

use super::fast_open::Cookie;
use core::time::Duration;
use eft_base::hash::{Key, Map};
use eft_base::{Instant, WireAddress};

/// Most servers; the one with the oldest entry makes room for another.
const SERVERS_MAX: usize = 1024;
/// How often in a row Fast Open to a server must fail before it is avoided: one failure may be an ordinary loss.
const FAILURES: u8 = 2;
/// How long it is avoided then; twice as long after each further failure (RFC 7413 §4.1.3.1).
const AVOIDED: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u8 = 6;
/// The MSS of a server that has announced none yet: the path alone limits a SYN.
const MSS_UNKNOWN: u16 = u16::MAX;

/// What a SYN to a server may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Data, with its cookie unless none is needed; `mss` as the server last announced it.
    Data { cookie: Option<Cookie>, mss: u16 },
    /// A request for a cookie, in the experimental option (RFC 6994) or not.
    Ask { experimental: bool, mss: u16 },
    /// No option: something on the path drops such SYNs.
    Nothing,
}

/// In which option a server that gave no cookie is asked next. Some know the experimental one alone; a server that answers
/// neither is asked in the standard one from then on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Standard,
    Experimental,
    Both,
}

#[derive(Clone, Copy)]
struct Server {
    cookie: Cookie,
    mss: u16,
    asked: Asked,
    failures: u8,
    avoided_until: Instant,
    told_at: Instant,
}

/// Entries by the server's address.
pub(super) struct CookieCache(Map<WireAddress, Server>);

impl CookieCache {
    pub fn new(key: Key) -> CookieCache {
        CookieCache(Map::with_hasher(key))
    }

    pub fn offer(&self, now: Instant, server: WireAddress) -> Offer {
        match self.0.get(&server) {
            Some(known) if known.avoided_until > now => Offer::Nothing,
            Some(known) if !known.cookie.is_request() => {
                Offer::Data { cookie: Some(known.cookie), mss: known.mss }
            }
            Some(known) => Offer::Ask { experimental: known.asked == Asked::Experimental, mss: known.mss },
            None => Offer::Ask { experimental: false, mss: MSS_UNKNOWN },
        }
    }

    /// Forgets all servers.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A server sent a cookie.
    pub fn learn(&mut self, now: Instant, server: WireAddress, cookie: Cookie, mss: u16) {
        let known = self.enter(now, server);
        *known = Server { cookie, mss, failures: 0, avoided_until: Instant::ZERO, told_at: now, ..*known };
    }

    /// The server accepted data of a SYN.
    pub fn succeed(&mut self, now: Instant, server: WireAddress, mss: u16) {
        let known = self.enter(now, server);
        (known.mss, known.failures, known.told_at) = (mss, 0, now);
    }

    /// The server answered a request for a cookie without one.
    pub fn refuse(&mut self, now: Instant, server: WireAddress, mss: u16) {
        let known = self.enter(now, server);
        (known.mss, known.failures, known.told_at) = (mss, 0, now);
        if known.cookie.is_request() {
            known.asked = if known.asked == Asked::Standard { Asked::Experimental } else { Asked::Both };
        }
    }

    /// A SYN with the option was not answered, or its data were not accepted (RFC 7413 §4.1.3.1).
    pub fn fail(&mut self, now: Instant, server: WireAddress, mss: u16) {
        let known = self.enter(now, server);
        known.failures = (known.failures + 1).min(FAILURES + DOUBLINGS_MAX);
        if let Some(further) = known.failures.checked_sub(FAILURES) {
            known.cookie = Cookie::REQUEST;
            known.avoided_until = now + AVOIDED * (1 << further);
        }
        (known.mss, known.told_at) = (mss, now);
    }

    fn enter(&mut self, now: Instant, server: WireAddress) -> &mut Server {
        if self.0.len() >= SERVERS_MAX && !self.0.contains_key(&server) {
            let oldest = self.0.iter().min_by_key(|(_, known)| known.told_at).map(|(address, _)| *address);
            oldest.map(|address| self.0.remove(&address));
        }
        let unknown = Server {
            cookie: Cookie::REQUEST,
            mss: MSS_UNKNOWN,
            asked: Asked::Standard,
            failures: 0,
            avoided_until: Instant::ZERO,
            told_at: now,
        };
        self.0.entry(server).or_insert(unknown)
    }
}

#[cfg(test)]
mod tests;

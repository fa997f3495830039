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
/// How long Fast Open to a server is avoided after a failure; twice as long after each further one (RFC 7413 §4.1.3.1).
const AVOIDED: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u8 = 6;

/// What a SYN to a server may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Its cookie, and data; `mss` as the server last announced it.
    Data { cookie: Cookie, mss: u16 },
    /// A request for a cookie.
    Ask,
    /// No option: something on the path drops such SYNs.
    Nothing,
}

#[derive(Clone, Copy)]
struct Server {
    cookie: Cookie,
    mss: u16,
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
            Some(known) if !known.cookie.is_request() => Offer::Data { cookie: known.cookie, mss: known.mss },
            _ => Offer::Ask,
        }
    }

    /// A server sent a cookie.
    pub fn learn(&mut self, now: Instant, server: WireAddress, cookie: Cookie, mss: u16) {
        let known = self.enter(now, server);
        *known = Server { cookie, mss, failures: 0, avoided_until: Instant::ZERO, told_at: now };
    }

    /// The server accepted the data that came with its cookie.
    pub fn succeed(&mut self, now: Instant, server: WireAddress, mss: u16) {
        if let Some(known) = self.0.get_mut(&server) {
            (known.mss, known.failures, known.told_at) = (mss, 0, now);
        }
    }

    /// A SYN with the option was not answered, or its data were not accepted (RFC 7413 §4.1.3.1).
    pub fn fail(&mut self, now: Instant, server: WireAddress) {
        let known = self.enter(now, server);
        known.cookie = Cookie::REQUEST;
        known.avoided_until = now + AVOIDED * (1 << known.failures);
        known.failures = (known.failures + 1).min(DOUBLINGS_MAX);
        known.told_at = now;
    }

    fn enter(&mut self, now: Instant, server: WireAddress) -> &mut Server {
        if self.0.len() >= SERVERS_MAX && !self.0.contains_key(&server) {
            let oldest = self.0.iter().min_by_key(|(_, known)| known.told_at).map(|(address, _)| *address);
            oldest.map(|address| self.0.remove(&address));
        }
        let unknown = Server {
            cookie: Cookie::REQUEST,
            mss: 0,
            failures: 0,
            avoided_until: Instant::ZERO,
            told_at: now,
        };
        self.0.entry(server).or_insert(unknown)
    }
}

#[cfg(test)]
mod tests;

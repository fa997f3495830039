//! The client's states (RFC 2131 §4.4, figure 5), and what it sends in each.
//!
//! Before an address is used, the link is asked whether another host has it (RFC 5227 §2.1), three times within a second: faster
//! than that document says, as IPv6 does it.

use super::message::{Kind, Message, Reply, parse};
use crate::identity::Identity;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;
use eft_base::{Cidr, Instant, MacAddress, Random};
use serde::{Deserialize, Serialize};

/// RFC 2131 §4.1: how long to wait for an answer, at first and at most, and how much chance there is in it.
const PATIENCE_FIRST: Duration = Duration::from_secs(4);
const PATIENCE_LAST: Duration = Duration::from_secs(64);
const CHANCE_MS: u64 = 1000;
/// So many requests for an offer; then the client begins anew (§3.1, point 5).
const REQUESTS_MAX: u8 = 4;
/// §4.4.5: least time between two requests to renew a lease.
const RENEWAL_MIN: Duration = Duration::from_secs(60);
/// After a refusal, or an address that another host has (§3.1, point 5), the client waits before it begins anew.
const PAUSE: Duration = Duration::from_secs(10);
const PROBES: u8 = 3;
const PROBE_INTERVAL: Duration = Duration::from_millis(300);

/// An address for some time, and what the server said beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub prefix_len: u8,
    pub server: Ipv4Addr,
    /// When the server is asked to renew it, and when all servers are. `None`: never.
    pub renew: Option<Instant>,
    pub rebind: Option<Instant>,
    /// `None`: for ever.
    pub until: Option<Instant>,
    pub routes: Vec<(Cidr, Option<Ipv4Addr>)>,
    pub name_servers: Vec<Ipv4Addr>,
    pub search: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// From no address.
    All,
    Server {
        server: Ipv4Addr,
        from: Ipv4Addr,
    },
    /// From an address, to all.
    AllFrom(Ipv4Addr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    Message {
        to: To,
        bytes: Vec<u8>,
    },
    /// Whether another host has this address.
    Probe(Ipv4Addr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The link was never up.
    Off,
    Selecting,
    Requesting {
        address: Ipv4Addr,
        server: Ipv4Addr,
        left: u8,
    },
    /// A lease that may hold in this network, too, is confirmed (INIT-REBOOT, REBOOTING).
    Confirming {
        left: u8,
    },
    /// The address of a lease is tried out.
    Probing {
        lease: Lease,
        left: u8,
    },
    Bound,
    /// To the server, until the lease is to be rebound.
    Renewing,
    Rebinding,
}

pub struct Client {
    client_id: Vec<u8>,
    mac: MacAddress,
    state: State,
    /// The one in force.
    pub lease: Option<Lease>,
    xid: u32,
    /// When it began to ask.
    since: Instant,
    next: Option<Instant>,
    patience: Duration,
}

impl Client {
    /// `lease`: what a predecessor had.
    pub fn new(interface: &str, identity: &Identity, lease: Option<Lease>) -> Client {
        Client {
            client_id: identity.client_id(interface),
            mac: MacAddress::default(),
            state: State::Off,
            lease,
            xid: 0,
            since: Instant::ZERO,
            next: None,
            patience: PATIENCE_FIRST,
        }
    }

    /// The link came up. A successor goes on with its predecessor's lease; after that, the link may lead to another network,
    /// so the lease is confirmed (§3.2).
    pub fn start(&mut self, now: Instant, mac: MacAddress, random: &mut Random) {
        self.mac = mac;
        self.drop_expired(now);
        match (&self.lease, &self.state) {
            (Some(lease), State::Off) => {
                self.next = lease.renew;
                self.state = State::Bound;
            }
            (Some(_), _) => self.begin(State::Confirming { left: REQUESTS_MAX }, now, random),
            (None, _) => self.begin(State::Selecting, now, random),
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        let end = self.lease.as_ref().and_then(|lease| lease.until);
        self.next.into_iter().chain(end).min()
    }

    /// The address that is tried out.
    pub fn probed(&self) -> Option<Ipv4Addr> {
        match &self.state {
            State::Probing { lease, .. } => Some(lease.address),
            _ => None,
        }
    }

    /// What an answer must bear.
    pub fn awaits_answer(&self) -> bool {
        !matches!(self.state, State::Off | State::Bound | State::Probing { .. })
    }

    fn drop_expired(&mut self, now: Instant) {
        if self.lease.as_ref().and_then(|lease| lease.until).is_some_and(|until| until <= now) {
            self.lease = None;
        }
    }

    /// A new exchange begins, a little later than now: hosts that start together do not ask together.
    fn begin(&mut self, state: State, now: Instant, random: &mut Random) {
        self.begin_at(state, now + Duration::from_millis(random.below(CHANCE_MS)), random);
    }

    fn begin_at(&mut self, state: State, at: Instant, random: &mut Random) {
        (self.state, self.xid, self.since) = (state, random.next_u32(), at);
        (self.next, self.patience) = (Some(at), PATIENCE_FIRST);
    }

    /// Lets the lease end, and says what is to be sent.
    pub fn expire(&mut self, now: Instant, random: &mut Random) -> Option<Send> {
        let had = self.lease.is_some();
        self.drop_expired(now);
        let is_of_lease = matches!(self.state, State::Bound | State::Renewing | State::Rebinding);
        if had && self.lease.is_none() && (is_of_lease || matches!(self.state, State::Confirming { .. })) {
            self.begin(State::Selecting, now, random);
        }
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        match self.state.clone() {
            State::Off => None,
            State::Selecting => {
                self.wait_for_answer(now, random);
                Some(self.message(now, Kind::Discover, To::All, |_| {}))
            }
            State::Requesting { left: 0, .. } | State::Confirming { left: 0 } => {
                self.give_up_asking(now, random)
            }
            State::Requesting { address, server, left } => {
                self.state = State::Requesting { address, server, left: left - 1 };
                self.wait_for_answer(now, random);
                let request = |m: &mut Message| (m.requested, m.server) = (Some(address), Some(server));
                Some(self.message(now, Kind::Request, To::All, request))
            }
            State::Confirming { left } => {
                self.state = State::Confirming { left: left - 1 };
                self.wait_for_answer(now, random);
                let address = self.lease.as_ref().map(|lease| lease.address);
                Some(self.message(now, Kind::Request, To::All, |m| m.requested = address))
            }
            State::Probing { lease, left: 0 } => {
                self.bind(lease);
                None
            }
            State::Probing { lease, left } => {
                self.next = Some(now + PROBE_INTERVAL);
                let probe = Send::Probe(lease.address);
                self.state = State::Probing { lease, left: left - 1 };
                Some(probe)
            }
            State::Bound => {
                self.begin_at(State::Renewing, now, random);
                self.renew(now)
            }
            State::Renewing | State::Rebinding => self.renew(now),
        }
    }

    /// RFC 2131 §4.1: exponential backoff with some chance.
    fn wait_for_answer(&mut self, now: Instant, random: &mut Random) {
        let chance = Duration::from_millis(random.below(2 * CHANCE_MS + 1));
        self.next = Some(now + (self.patience + chance).saturating_sub(Duration::from_millis(CHANCE_MS)));
        self.patience = (self.patience * 2).min(PATIENCE_LAST);
    }

    /// No server answers. A lease that could not be confirmed is used on, as it lives (§3.2, point 3).
    fn give_up_asking(&mut self, now: Instant, random: &mut Random) -> Option<Send> {
        match self.lease.clone() {
            Some(lease) => self.bind(lease),
            None => self.begin(State::Selecting, now, random),
        }
        None
    }

    /// §4.4.5: asks the server, or all of them, for more time; again at half the time that is left, at least a minute later.
    fn renew(&mut self, now: Instant) -> Option<Send> {
        let lease = self.lease.clone()?;
        let rebinds = lease.rebind.is_some_and(|rebind| rebind <= now);
        let end = if rebinds { lease.until } else { lease.rebind };
        let left = end.map(|end| end.saturating_since(now)).unwrap_or(RENEWAL_MIN);
        let again = now + (left / 2).max(RENEWAL_MIN);
        self.next = Some(end.filter(|end| !rebinds && *end < again).unwrap_or(again));
        self.state = if rebinds { State::Rebinding } else { State::Renewing };
        let from = lease.address;
        let to = if rebinds { To::AllFrom(from) } else { To::Server { server: lease.server, from } };
        Some(self.message(now, Kind::Request, to, |m| m.has = Some(from)))
    }

    fn message(&self, now: Instant, kind: Kind, to: To, fill: impl FnOnce(&mut Message)) -> Send {
        let seconds = now.saturating_since(self.since).as_secs().min(u16::MAX.into()) as u16;
        let mut message = Message {
            kind,
            xid: self.xid,
            seconds,
            mac: self.mac,
            client_id: &self.client_id,
            has: None,
            requested: None,
            server: None,
        };
        fill(&mut message);
        Send::Message { to, bytes: message.bytes() }
    }

    fn bind(&mut self, lease: Lease) {
        self.next = lease.renew;
        self.lease = Some(lease);
        self.state = State::Bound;
    }

    /// A message that came to the client's port.
    pub fn receive(&mut self, now: Instant, bytes: &[u8], random: &mut Random) {
        if !self.awaits_answer() {
            return;
        }
        let Some(reply) = parse(bytes, self.xid, self.mac) else { return };
        match (reply.kind, self.state.clone()) {
            (Kind::Offer, State::Selecting) => {
                if let Some(server) = reply.server.filter(|_| lease_of(now, &reply, random).is_some()) {
                    self.state = State::Requesting { address: reply.address, server, left: REQUESTS_MAX };
                    (self.next, self.patience) = (Some(now), PATIENCE_FIRST);
                }
            }
            (Kind::Ack, State::Requesting { address, server, .. }) => {
                if let Some(lease) = lease_of(now, &reply, random)
                    && (lease.address, lease.server) == (address, server)
                {
                    self.state = State::Probing { lease, left: PROBES };
                    self.next = Some(now);
                }
            }
            (Kind::Ack, State::Confirming { .. } | State::Renewing | State::Rebinding) => {
                let same =
                    |lease: &Lease| self.lease.as_ref().is_some_and(|old| old.address == lease.address);
                if let Some(lease) = lease_of(now, &reply, random).filter(same) {
                    self.bind(lease);
                }
            }
            (Kind::Nak, State::Requesting { server, .. }) if reply.server == Some(server) => {
                self.begin_at(State::Selecting, now + PAUSE, random);
            }
            // §3.2, §4.4.5: the address is not ours in this network.
            (Kind::Nak, State::Confirming { .. } | State::Renewing | State::Rebinding) => {
                self.lease = None;
                self.begin(State::Selecting, now, random);
            }
            _ => {}
        }
    }

    /// Another host has the address that is tried out: the server is told (§4.4.4), and the client begins anew.
    pub fn conflict(&mut self, now: Instant, random: &mut Random) -> Option<Send> {
        let State::Probing { lease, .. } = &self.state else { return None };
        let (address, server) = (lease.address, lease.server);
        self.xid = random.next_u32();
        let decline = self.message(now, Kind::Decline, To::All, |m| {
            (m.requested, m.server, m.seconds) = (Some(address), Some(server), 0);
        });
        self.begin_at(State::Selecting, now + PAUSE, random);
        Some(decline)
    }

    /// The interface gives its address back (§4.4.6).
    pub fn release(&mut self, now: Instant, random: &mut Random) -> Option<Send> {
        let lease = self.lease.take()?;
        (self.state, self.next, self.xid) = (State::Off, None, random.next_u32());
        let to = To::Server { server: lease.server, from: lease.address };
        Some(self.message(now, Kind::Release, to, |m| {
            (m.has, m.server, m.seconds) = (Some(lease.address), Some(lease.server), 0);
        }))
    }
}

/// What an offer or acknowledgement gives; `None`: nothing that a host could use.
fn lease_of(now: Instant, reply: &Reply, random: &mut Random) -> Option<Lease> {
    let (server, seconds) = (reply.server?, reply.lease_s?);
    let address = Cidr { address: reply.address.into(), prefix_len: reply.prefix_len };
    let is_host = |a: Ipv4Addr| !(a.is_unspecified() || a.is_loopback() || a.octets()[0] >= 224);
    let usable = is_host(reply.address) && is_host(server) && address.is_host() && reply.prefix_len > 0;
    (usable && seconds > 0).then_some(())?;
    let forever = seconds == u32::MAX;
    let lease = u64::from(seconds) * 1000;
    // §4.4.5: by default at half and at seven eighths of the lease, with some chance; never later than it ends.
    let chance = random.below(lease / 64 + 1);
    let within = |given: Option<u32>, default: u64, most: u64| {
        given.map_or(default, |s| u64::from(s) * 1000).clamp(1, most.max(1))
    };
    let rebind = within(reply.rebinding_s, lease / 8 * 7 - chance, lease);
    let renew = within(reply.renewal_s, lease / 2 - chance, rebind);
    let at = |ms: u64| (!forever).then(|| now + Duration::from_millis(ms));
    Some(Lease {
        address: reply.address,
        prefix_len: reply.prefix_len,
        server,
        renew: at(renew),
        rebind: at(rebind),
        until: at(lease),
        routes: reply.routes.clone(),
        name_servers: reply.name_servers.iter().copied().filter(|a| is_host(*a)).collect(),
        search: reply.search.clone(),
    })
}

#[cfg(test)]
mod tests;

//! A host's part of router discovery (RFC 4861 §6.3) and stateless address autoconfiguration (RFC 4862 §5.5), for one link.

pub mod message;

use crate::identity::Identity;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use eft_base::{Cidr, Instant, Random};
use message::{Advertisement, Prefix};
use serde::{Deserialize, Serialize};

/// RFC 4861 §10, RFC 7559 §2.
const SOLICITATION_FIRST: Duration = Duration::from_secs(4);
const SOLICITATION_LAST: Duration = Duration::from_secs(3600);
/// RFC 4861 §6.3.7: hosts that start together do not ask together.
const DELAY_MAX_MS: u64 = 1000;
/// RFC 4862 §5.5.3 (e): an unauthenticated advertisement does not shorten the life of an address below that.
const TWO_HOURS: Duration = Duration::from_secs(7200);
/// RFC 7217 §6: so many other addresses are tried if another host has one.
const RETRIES_MAX: u8 = 3;
/// RFC 4861 §6.3.4: at least two default routers, and all prefixes up to a limit.
const ROUTERS_MAX: usize = 4;
const PREFIXES_MAX: usize = 8;
const ADDRESSES_MAX: usize = 8;
const NAME_SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = crate::domains::DOMAINS_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Link-local, without zone.
    pub address: Ipv6Addr,
    pub preference: i8,
    pub until: Instant,
}

/// Destinations that are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnLink {
    pub network: Ipv6Addr,
    pub prefix_len: u8,
    /// `None`: for ever.
    pub valid: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub address: Ipv6Addr,
    pub valid: Option<Instant>,
    pub preferred: Option<Instant>,
    /// Addresses of the prefix before it that another host had.
    pub conflicts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameServer {
    pub address: Ipv6Addr,
    pub until: Option<Instant>,
}

/// A domain in which names are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    pub domain: String,
    pub until: Option<Instant>,
}

/// What routers advertised, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advertised {
    pub routers: Vec<Router>,
    pub on_link: Vec<OnLink>,
    pub addresses: Vec<Address>,
    pub name_servers: Vec<NameServer>,
    pub search: Vec<Search>,
    /// Prefixes of which other hosts had every address that was tried.
    pub hopeless: Vec<Ipv6Addr>,
}

impl Advertised {
    /// The prefix length of an address: all bits if its network was not said to be on the link (RFC 5942 §4).
    pub fn prefix_len_of(&self, address: Ipv6Addr) -> u8 {
        let of = |p: &OnLink| Cidr { address: p.network.into(), prefix_len: p.prefix_len };
        let near = self.on_link.iter().filter(|p| p.prefix_len == 64 && of(p).contains(address.into()));
        near.map(|p| p.prefix_len).next().unwrap_or(128)
    }

    /// A server that went mad may have told anything.
    fn limit(&mut self) {
        self.routers.truncate(ROUTERS_MAX);
        self.on_link.truncate(PREFIXES_MAX);
        self.addresses.truncate(ADDRESSES_MAX);
        self.name_servers.truncate(NAME_SERVERS_MAX);
        self.search.truncate(SEARCH_MAX);
        self.hopeless.truncate(PREFIXES_MAX);
    }

    fn drop_expired(&mut self, now: Instant) {
        self.routers.retain(|r| r.until > now);
        self.on_link.retain(|p| lives(p.valid, now));
        self.addresses.retain(|a| lives(a.valid, now));
        self.name_servers.retain(|s| lives(s.until, now));
        self.search.retain(|s| lives(s.until, now));
    }

    /// The next end after `now`: a preferred lifetime that is over hides none.
    fn next_end(&self, now: Instant) -> Option<Instant> {
        let routers = self.routers.iter().map(|r| r.until);
        let networks = self.on_link.iter().filter_map(|p| p.valid);
        let addresses = self.addresses.iter().flat_map(|a| [a.valid, a.preferred]).flatten();
        let servers = self.name_servers.iter().filter_map(|s| s.until);
        let search = self.search.iter().filter_map(|s| s.until);
        routers.chain(networks).chain(addresses).chain(servers).chain(search).filter(|end| *end > now).min()
    }
}

fn lives(until: Option<Instant>, now: Instant) -> bool {
    until.is_none_or(|until| until > now)
}

/// The end of a lifetime in seconds; all ones stand for ever (RFC 4861 §4.6.2).
fn end(now: Instant, seconds: u32) -> Option<Instant> {
    (seconds != u32::MAX).then(|| now + Duration::from_secs(seconds.into()))
}

/// The host's side on one link.
pub struct Discovery {
    interface: String,
    identity: Identity,
    pub advertised: Advertised,
    /// When a router is solicited next, and how long after that again.
    solicit_at: Option<Instant>,
    interval: Duration,
    /// What the last advertisement said of DHCPv6.
    pub managed: bool,
    pub other: bool,
}

impl Discovery {
    /// `advertised`: what a predecessor knew.
    pub fn new(interface: String, identity: Identity, mut advertised: Advertised) -> Discovery {
        advertised.limit();
        let interval = SOLICITATION_FIRST;
        Discovery {
            interface,
            identity,
            advertised,
            solicit_at: None,
            interval,
            managed: false,
            other: false,
        }
    }

    /// The link came up, or ip is reborn: routers are asked (RFC 4861 §6.3.7).
    pub fn start(&mut self, now: Instant, random: &mut Random) {
        self.advertised.drop_expired(now);
        self.interval = SOLICITATION_FIRST;
        self.solicit_at = Some(now + Duration::from_millis(random.below(DELAY_MAX_MS)));
    }

    /// When [`Discovery::expire`] has something to do.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let ends = self.advertised.next_end(now);
        self.solicit_at.into_iter().chain(ends).min()
    }

    /// Lets lifetimes end. True: a router is to be solicited now.
    pub fn expire(&mut self, now: Instant, random: &mut Random) -> bool {
        self.advertised.drop_expired(now);
        let due = self.solicit_at.is_some_and(|at| at <= now);
        if due {
            // RFC 7559 §2: at growing intervals with some chance in them, until a router answers.
            let ms = self.interval.as_millis() as u64;
            let jitter = ms / 10 * 9 + random.below(ms / 5 + 1);
            self.solicit_at = Some(now + Duration::from_millis(jitter));
            self.interval = (self.interval * 2).min(SOLICITATION_LAST);
        }
        due
    }

    /// A router's advertisement; `from` is its link-local address without zone. The caller has checked that it comes from the
    /// link itself.
    pub fn receive(&mut self, now: Instant, from: Ipv6Addr, a: &Advertisement) {
        self.advertised.drop_expired(now);
        (self.managed, self.other) = (a.managed, a.other);
        if a.router_s > 0 {
            self.solicit_at = None;
        }
        self.note_router(now, from, a);
        for prefix in &a.prefixes {
            self.note_prefix(now, prefix);
        }
        for (address, seconds) in &a.name_servers {
            self.note_name_server(*address, *seconds, now);
        }
        for (domain, seconds) in &a.search {
            self.note_search(domain, *seconds, now);
        }
    }

    /// RFC 4861 §6.3.4.
    fn note_router(&mut self, now: Instant, address: Ipv6Addr, a: &Advertisement) {
        let routers = &mut self.advertised.routers;
        let there = routers.iter().position(|r| r.address == address);
        if a.router_s == 0 {
            there.map(|n| routers.remove(n));
            return;
        }
        let until = now + Duration::from_secs(a.router_s.into());
        let router = Router { address, preference: a.preference, until };
        match there {
            Some(n) => routers[n] = router,
            None if routers.len() < ROUTERS_MAX => routers.push(router),
            None => {}
        }
    }

    fn note_prefix(&mut self, now: Instant, p: &Prefix) {
        let network = Cidr { address: p.prefix.into(), prefix_len: p.prefix_len }.network();
        let IpAddr::V6(prefix) = network.address else { return };
        // §6.3.4, RFC 4862 §5.5.3 (b): the link-local prefix is not advertised. Nor is a network in which no host is.
        let is_usual = !prefix.is_multicast() && prefix.to_bits() >> 118 != 0xfe80 >> 6 && p.prefix_len > 0;
        if !is_usual || prefix.is_loopback() || prefix.is_unspecified() || prefix.to_ipv4_mapped().is_some() {
            return;
        }
        if p.on_link {
            self.note_on_link(now, prefix, p);
        }
        // RFC 4862 §5.5.3 (c), (d): a preferred lifetime beyond the valid one, or a prefix that leaves no room for an
        // interface identifier of 64 bits, is ignored.
        if p.autonomous && p.preferred_s <= p.valid_s && p.prefix_len == 64 {
            self.note_autonomous(now, network, p);
        }
    }

    fn note_on_link(&mut self, now: Instant, network: Ipv6Addr, p: &Prefix) {
        let all = &mut self.advertised.on_link;
        let there = all.iter().position(|o| (o.network, o.prefix_len) == (network, p.prefix_len));
        let valid = end(now, p.valid_s);
        match there {
            Some(n) if p.valid_s == 0 => drop(all.remove(n)),
            Some(n) => all[n].valid = valid,
            None if p.valid_s > 0 && all.len() < PREFIXES_MAX => {
                all.push(OnLink { network, prefix_len: p.prefix_len, valid });
            }
            None => {}
        }
    }

    fn note_autonomous(&mut self, now: Instant, network: Cidr, p: &Prefix) {
        let preferred = end(now, p.preferred_s);
        if let Some(a) = self.advertised.addresses.iter_mut().find(|a| network.contains(a.address.into())) {
            a.preferred = preferred;
            // RFC 4862 §5.5.3 (e).
            let offered = end(now, p.valid_s);
            let floor = Some(now + TWO_HOURS);
            let is_longer = |x: Option<Instant>, y: Option<Instant>| match (x, y) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(x), Some(y)) => x > y,
            };
            if is_longer(offered, floor) || is_longer(offered, a.valid) {
                a.valid = offered;
            } else if is_longer(a.valid, floor) {
                a.valid = floor;
            }
            return;
        }
        let is_hopeless = self.advertised.hopeless.iter().any(|h| network.contains((*h).into()));
        if p.valid_s == 0 || is_hopeless || self.advertised.addresses.len() >= ADDRESSES_MAX {
            return;
        }
        if let Some(address) = self.identity.address_in(&network, &self.interface, 0) {
            let valid = end(now, p.valid_s);
            self.advertised.addresses.push(Address { address, valid, preferred, conflicts: 0 });
        }
    }

    fn note_name_server(&mut self, address: Ipv6Addr, seconds: u32, now: Instant) {
        let all = &mut self.advertised.name_servers;
        // A link-local server would need its zone in every program; the stack's look-ups do not have it.
        let is_usable =
            !address.is_multicast() && !address.is_unspecified() && !address.is_unicast_link_local();
        let there = all.iter().position(|s| s.address == address);
        match there {
            // RFC 8106 §5.1: a lifetime of zero takes the server away.
            Some(n) if seconds == 0 => drop(all.remove(n)),
            Some(n) => all[n].until = end(now, seconds),
            None if seconds > 0 && is_usable && all.len() < NAME_SERVERS_MAX => {
                all.push(NameServer { address, until: end(now, seconds) });
            }
            None => {}
        }
    }

    /// As with name servers (RFC 8106 §5.2).
    fn note_search(&mut self, domain: &str, seconds: u32, now: Instant) {
        let all = &mut self.advertised.search;
        match all.iter().position(|s| s.domain == domain) {
            Some(n) if seconds == 0 => drop(all.remove(n)),
            Some(n) => all[n].until = end(now, seconds),
            None if seconds > 0 && all.len() < SEARCH_MAX => {
                all.push(Search { domain: domain.into(), until: end(now, seconds) });
            }
            None => {}
        }
    }

    /// Another host has this address: another one of the prefix takes its place, a few times (RFC 7217 §6).
    pub fn conflict(&mut self, address: Ipv6Addr) {
        let Some(n) = self.advertised.addresses.iter().position(|a| a.address == address) else { return };
        let conflicts = self.advertised.addresses[n].conflicts + 1;
        let network = Cidr { address: address.into(), prefix_len: 64 }.network();
        let next = self
            .identity
            .address_in(&network, &self.interface, conflicts)
            .filter(|_| conflicts <= RETRIES_MAX);
        match next {
            Some(next) => {
                let a = &mut self.advertised.addresses[n];
                (a.address, a.conflicts) = (next, conflicts);
            }
            None => {
                self.advertised.addresses.remove(n);
                if self.advertised.hopeless.len() < PREFIXES_MAX {
                    self.advertised.hopeless.push(address);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

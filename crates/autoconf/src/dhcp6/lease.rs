//! What a server lends (RFC 8415 §21.4, §21.6).

use super::message::Reply;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;
use eft_base::Instant;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub address: Ipv6Addr,
    pub preferred: Option<Instant>,
    pub valid: Option<Instant>,
}

/// Addresses for some time, and what the server said beside them; or that alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    pub server: Vec<u8>,
    pub addresses: Vec<Address>,
    /// When the server is asked to renew it, and when all servers are. `None`: never.
    pub renew: Option<Instant>,
    pub rebind: Option<Instant>,
    pub name_servers: Vec<Ipv6Addr>,
    pub search: Vec<String>,
}

/// What a server gives; `None`: no address that a host could use.
pub fn lease_of(now: Instant, reply: &Reply) -> Option<Lease> {
    let end = |s: u32| (s != u32::MAX).then(|| now + Duration::from_secs(s.into()));
    let is_host = |a: &Ipv6Addr| {
        let is_special = a.is_unspecified() || a.is_loopback() || a.is_multicast();
        !is_special && a.to_ipv4_mapped().is_none() && !a.is_unicast_link_local()
    };
    let usable = reply.addresses.iter().filter(|(a, _, valid)| is_host(a) && *valid > 0);
    let addresses: Vec<Address> = usable
        .clone()
        .map(|(address, preferred, valid)| Address {
            address: *address,
            preferred: end(*preferred),
            valid: end(*valid),
        })
        .collect();
    // §21.4: where the server leaves it open, at half and at four fifths of the shortest preferred lifetime.
    let shortest =
        usable.map(|(_, preferred, valid)| if *preferred > 0 { *preferred } else { *valid }).min()?;
    let share = |given: u32, numerator: u32, denominator: u32| match given {
        0 if shortest == u32::MAX => u32::MAX,
        0 => (shortest / denominator * numerator).max(1),
        given => given,
    };
    let rebind = share(reply.rebind_s, 4, 5);
    let renew = share(reply.renew_s, 1, 2).min(rebind);
    Some(Lease {
        server: reply.server.clone(),
        addresses,
        renew: end(renew),
        rebind: end(rebind),
        name_servers: reply.name_servers.iter().copied().filter(is_host).collect(),
        search: reply.search.clone(),
    })
}

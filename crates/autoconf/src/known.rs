//! What is known of an interface, how long it holds, and its text, in which the supervisor keeps it for ip's successor.
//!
//! The text is JSON, so that another version of eft can read it: what is missing has its default, what is new is ignored.

use crate::router::Advertised;
use crate::{dhcp4, dhcp6};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::{Cidr, Instant};
use serde::{Deserialize, Serialize};

/// The metric of routes from routers, as on Linux; those of a preference above and below differ by one.
const METRIC_ROUTER: u32 = 1024;

/// All that is known of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    pub advertised: Advertised,
    pub lease4: Option<dhcp4::Lease>,
    pub lease6: Option<dhcp6::Lease>,
}

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Router,
    Dhcp4,
    Dhcp6,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Router => "slaac",
            Origin::Dhcp4 => "dhcp4",
            Origin::Dhcp6 => "dhcp6",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub cidr: Cidr,
    pub origin: Origin,
    /// `None`: for ever.
    pub valid: Option<Instant>,
    /// After that, new connections use another address if there is one.
    pub preferred: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub destination: Cidr,
    /// `None`: the destinations are neighbours.
    pub gateway: Option<IpAddr>,
    pub metric: u32,
    pub origin: Origin,
    pub until: Option<Instant>,
}

impl Known {
    pub fn addresses(&self) -> Vec<Address> {
        let advertised = self.advertised.addresses.iter().map(|a| Address {
            cidr: Cidr { address: a.address.into(), prefix_len: self.advertised.prefix_len_of(a.address) },
            origin: Origin::Router,
            valid: a.valid,
            preferred: a.preferred,
        });
        let leased = self.lease4.iter().map(|lease| Address {
            cidr: Cidr { address: lease.address.into(), prefix_len: lease.prefix_len },
            origin: Origin::Dhcp4,
            valid: lease.until,
            preferred: lease.until,
        });
        // RFC 8415 §18.2.10.1: which destinations are neighbours, only routers say.
        let leased6 = self.lease6.iter().flat_map(|lease| &lease.addresses).map(|a| Address {
            cidr: Cidr { address: a.address.into(), prefix_len: self.advertised.prefix_len_of(a.address) },
            origin: Origin::Dhcp6,
            valid: a.valid,
            preferred: a.preferred,
        });
        leased.chain(leased6).chain(advertised).collect()
    }

    pub fn routes(&self) -> Vec<Route> {
        let networks = self.advertised.on_link.iter().map(|p| Route {
            destination: Cidr { address: p.network.into(), prefix_len: p.prefix_len },
            gateway: None,
            metric: METRIC_ROUTER,
            origin: Origin::Router,
            until: p.valid,
        });
        let everywhere = Cidr { address: IpAddr::from([0; 16]), prefix_len: 0 };
        let routers = self.advertised.routers.iter().map(|r| Route {
            destination: everywhere,
            gateway: Some(r.address.into()),
            // RFC 4191 §3.2: a router of higher preference is used first.
            metric: METRIC_ROUTER.saturating_add_signed(-i32::from(r.preference.signum())),
            origin: Origin::Router,
            until: Some(r.until),
        });
        let leased = self.lease4.iter().flat_map(|lease| {
            lease.routes.iter().enumerate().map(|(n, (destination, router))| Route {
                destination: *destination,
                gateway: router.map(IpAddr::V4),
                // RFC 2132 §3.5: the first of several is preferred.
                metric: METRIC_ROUTER.saturating_add(n as u32),
                origin: Origin::Dhcp4,
                until: lease.until,
            })
        });
        leased.chain(networks).chain(routers).collect()
    }

    /// The name servers, the best first.
    pub fn name_servers(&self) -> Vec<IpAddr> {
        let leased = self.lease4.iter().flat_map(|lease| lease.name_servers.iter().map(|a| IpAddr::V4(*a)));
        let leased6 = self.lease6.iter().flat_map(|lease| lease.name_servers.iter().map(|a| IpAddr::V6(*a)));
        let leased = leased.chain(leased6);
        leased.chain(self.advertised.name_servers.iter().map(|s| IpAddr::V6(s.address))).collect()
    }

    /// Domains in which names are looked up.
    pub fn search(&self) -> Vec<&str> {
        let leased = self.lease4.iter().flat_map(|lease| lease.search.iter().map(String::as_str));
        let leased6 = self.lease6.iter().flat_map(|lease| lease.search.iter().map(String::as_str));
        let leased = leased.chain(leased6);
        leased.chain(self.advertised.search.iter().map(|s| s.domain.as_str())).collect()
    }
}

/// What is known of all interfaces, by name.
pub type All = BTreeMap<String, Known>;

/// Reads what [`text`] wrote. Anything else is as if nothing were known.
pub fn parse(text: &[u8]) -> All {
    serde_json::from_slice(text).unwrap_or_default()
}

pub fn text(all: &All) -> Vec<u8> {
    serde_json::to_vec(all).unwrap_or_default()
}

//! What is known of an interface, how long it holds, and its text, in which the supervisor keeps it for ip's successor.
//!
//! The text is JSON, so that another version of eft can read it: what is missing has its default, what is new is ignored.

use crate::router::Advertised;
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
}

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Router,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Router => "slaac",
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
        advertised.collect()
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
        networks.chain(routers).collect()
    }

    /// The name servers, the best first.
    pub fn name_servers(&self) -> Vec<IpAddr> {
        self.advertised.name_servers.iter().map(|s| IpAddr::V6(s.address)).collect()
    }

    /// Domains in which names are looked up.
    pub fn search(&self) -> Vec<&str> {
        self.advertised.search.iter().map(|s| s.domain.as_str()).collect()
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

//! Ways in which an interface gets addresses by itself.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From router advertisements (RFC 4862).
    Slaac,
    /// From a DHCPv4 server (RFC 2131).
    Dhcp4,
    /// From a DHCPv6 server (RFC 8415); beside SLAAC if routers say so.
    Dhcp6,
}

impl Method {
    pub const ALL: [Method; 3] = [Method::Slaac, Method::Dhcp4, Method::Dhcp6];

    pub fn name(self) -> &'static str {
        match self {
            Method::Slaac => "slaac",
            Method::Dhcp4 => "dhcp4",
            Method::Dhcp6 => "dhcp6",
        }
    }

    /// Whether the interface speaks IPv6 for it, even without an address.
    pub fn needs_ipv6(self) -> bool {
        match self {
            Method::Slaac | Method::Dhcp6 => true,
            Method::Dhcp4 => false,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Method, &'static str> {
        Method::ALL
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or("is none of slaac, dhcp4 and dhcp6")
    }
}

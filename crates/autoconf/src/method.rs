//! Ways in which an interface gets addresses by itself.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From router advertisements (RFC 4862).
    Slaac,
}

impl Method {
    pub const ALL: [Method; 1] = [Method::Slaac];

    pub fn name(self) -> &'static str {
        match self {
            Method::Slaac => "slaac",
        }
    }

    /// Whether the interface speaks IPv6 for it, even without an address.
    pub fn needs_ipv6(self) -> bool {
        match self {
            Method::Slaac => true,
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
        Method::ALL.into_iter().find(|method| method.name() == text).ok_or("is none of slaac")
    }
}

//! Everything that a simulation is made of besides its seed.

use super::{Faults, address, address6};
use crate::link::Conditions;
use crate::sizes::Sizes;
use eft_base::{Cidr, MacAddress};
use eft_channel::socket::Geometry;
use eft_component::DeviceInfo;

#[derive(Clone, Debug)]
pub struct Settings {
    pub conditions: Conditions,
    pub faults: Faults,
    pub topology: String,
    /// Settings of tcp and udp, as `eft up` has them.
    pub transport: Vec<(&'static str, &'static str)>,
    /// pf.conf text for both stacks.
    pub rules: String,
    pub geometry: Geometry,
    pub sizes: Sizes,
    pub device: DeviceInfo,
    /// Record ip, the filter, tcp and udp for the replay oracle.
    pub record: bool,
    /// Bytes of calls after which a recording is full.
    pub record_max: usize,
    /// The stacks have IPv6 addresses as well, and speak to each other by these.
    pub ipv6: bool,
    /// Beside the program whose streams are compared, each stack has a hostile one.
    pub hostile: bool,
    /// No server dies, and so nobody counts what servers write into pages, which is how long one lives that is to die in a turn.
    pub is_lasting: bool,
}

impl Settings {
    /// The address by which a side is spoken to.
    pub fn address(&self, side: usize) -> Cidr {
        if self.ipv6 { address6(side) } else { address(side) }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            conditions: Conditions::default(),
            faults: Faults::default(),
            topology: include_str!("../../../../topologies/default.toml").to_string(),
            rules: "block all\npass proto { icmp icmp6 }\npass proto { tcp udp } keep state\n".to_string(),
            transport: Vec::new(),
            geometry: Geometry { slots: 32, send_len: 1 << 18, receive_len: 1 << 18 },
            sizes: Sizes::default(),
            device: DeviceInfo {
                mac: MacAddress::default(),
                mtu: 1500,
                up: true,
                checksum: true,
                segment_max: 60000,
                datagrams: true,
                coalesce: true,
            },
            record: false,
            record_max: usize::MAX,
            ipv6: false,
            hostile: false,
            is_lasting: false,
        }
    }
}

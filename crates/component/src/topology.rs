//! The whole system on one page: which components exist, who may talk to whom, how large the
//! queues are, where each runs.
//!
//! A topology file is checked as a whole before anything starts; every error is one line that names
//! what is wrong.

use crate::scheduling::Scheduling;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use eft_base::text::complaint;
use eft_messages::{ComponentId, Role};
use serde::Deserialize;

/// A checked topology.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The components besides the NICs, which follow from the devices. `nic` here sets how they all
    /// run.
    pub component: Vec<ComponentSpec>,
    /// Who may talk to whom.
    pub edge: Vec<EdgeSpec>,
    #[serde(default)]
    pub memory: MemorySpec,
    #[serde(default)]
    pub limits: Limits,
    /// How `cores` decides; only with that component.
    #[serde(default)]
    pub scheduling: Option<Scheduling>,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentSpec {
    pub name: String,
    /// CPU number; absent: wherever the kernel likes.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// Alone on its CPU: it may poll for a bounded time before it sleeps.
    #[serde(default)]
    pub dedicated: bool,
}

/// A pair of queues.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSpec {
    pub between: [String; 2],
    /// Messages in each direction; a power of two from 64 to 65536.
    #[serde(default = "default_capacity")]
    pub capacity: usize,
}

fn default_capacity() -> usize {
    1024
}

/// Sizes of memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySpec {
    /// Bytes of each socket's send ring; a power of two.
    pub send_ring_bytes: usize,
    /// Bytes of each socket's receive ring; a power of two.
    pub receive_ring_bytes: usize,
    /// Frames that a NIC holds at most; each slot has room for a 64 KB segment.
    pub nic_frames: usize,
}

impl Default for MemorySpec {
    fn default() -> Self {
        // The receive ring bounds the window, and with it bulk over a path of a few processes: 1 MB held
        // it to 11 Gb/s where 4 MB gave 14 (docs/performance.md).
        MemorySpec { send_ring_bytes: 1 << 20, receive_ring_bytes: 1 << 22, nic_frames: 256 }
    }
}

/// Quotas.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Program families at a time.
    pub families: usize,
    /// Sockets of one family (of each kind, tcp and udp).
    pub sockets_per_family: usize,
    /// Listeners of one family.
    pub listeners_per_family: usize,
    /// TCP connections of the whole stack, those in TIME_WAIT too.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { families: 96, sockets_per_family: 4096, listeners_per_family: 256, connections: 16384 }
    }
}

/// What may exist: name and role. NICs are made from devices.
const ROLES: &[(&str, Option<ComponentId>)] = &[
    ("sockets", Some(ComponentId::SOCKETS)),
    ("tcp", Some(ComponentId::TCP)),
    ("udp", Some(ComponentId::UDP)),
    ("ip", Some(ComponentId::IP)),
    ("filter", Some(ComponentId::FILTER)),
    ("nic", None),
    // It has no edge and moves no packet: whoever counts peers does not mean it.
    ("cores", None),
];

/// The edges that the contracts in `messages` define; no other may be drawn.
const EDGES: &[(&str, &str)] =
    &[("sockets", "tcp"), ("sockets", "udp"), ("tcp", "ip"), ("udp", "ip"), ("ip", "filter"), ("ip", "nic")];

impl Topology {
    /// Reads and checks a topology file.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let topology: Topology = toml::from_str(text).map_err(|e| complaint(text, e.span(), e.message()))?;
        topology.check()?;
        Ok(topology)
    }

    fn check(&self) -> Result<(), String> {
        for (i, c) in self.component.iter().enumerate() {
            if !ROLES.iter().any(|(name, _)| *name == c.name) {
                let known: Vec<&str> = ROLES.iter().map(|(n, _)| *n).collect();
                return Err(format!("unknown component `{}`; there are: {}", c.name, known.join(", ")));
            }
            if self.component[..i].iter().any(|d| d.name == c.name) {
                return Err(format!("component `{}` is named twice", c.name));
            }
            if c.dedicated && c.cpu.is_none() {
                return Err(format!("component `{}` is dedicated but has no `cpu`", c.name));
            }
        }
        for needed in ["sockets", "ip", "nic"] {
            if !self.has(needed) {
                return Err(format!("component `{needed}` is missing; no stack works without it"));
            }
        }
        if !self.has("tcp") && !self.has("udp") {
            return Err("neither `tcp` nor `udp` is there: a stack needs a transport".into());
        }
        for (i, e) in self.edge.iter().enumerate() {
            let [a, b] = &e.between;
            for name in [a, b] {
                if !self.has(name) {
                    return Err(format!("edge {a} - {b}: there is no component `{name}`"));
                }
            }
            if !EDGES.iter().any(|(x, y)| (a == x && b == y) || (a == y && b == x)) {
                return Err(format!("edge {a} - {b} is forbidden: these two have no contract"));
            }
            if self.edge[..i].iter().any(|f| f.joins(a, b)) {
                return Err(format!("edge {a} - {b} is drawn twice"));
            }
            if !e.capacity.is_power_of_two() || !(64..=65536).contains(&e.capacity) {
                return Err(format!("edge {a} - {b}: capacity must be a power of two from 64 to 65536"));
            }
        }
        for (x, y) in EDGES {
            if self.has(x) && self.has(y) && !self.edge.iter().any(|e| e.joins(x, y)) {
                return Err(format!("edge {x} - {y} is missing: both components are there"));
            }
        }
        let m = &self.memory;
        for (name, value) in
            [("send_ring_bytes", m.send_ring_bytes), ("receive_ring_bytes", m.receive_ring_bytes)]
        {
            if !value.is_power_of_two() || !(1 << 16..=1 << 26).contains(&value) {
                return Err(format!("memory.{name} must be a power of two from 65536 to 67108864"));
            }
        }
        if !(32..=4096).contains(&m.nic_frames) {
            return Err("memory.nic_frames must be from 32 to 4096".into());
        }
        let l = &self.limits;
        for (name, value, max) in [
            ("families", l.families, 96),
            ("sockets_per_family", l.sockets_per_family, 4096),
            ("listeners_per_family", l.listeners_per_family, 4096),
            ("connections", l.connections, 1 << 20),
        ] {
            if !(1..=max).contains(&value) {
                return Err(format!("limits.{name} must be from 1 to {max}"));
            }
        }
        match &self.scheduling {
            Some(_) if !self.has("cores") => {
                Err("[scheduling] needs a component that follows it: add [[component]] name = \"cores\""
                    .into())
            }
            Some(s) => s.check(),
            None => Ok(()),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.component.iter().any(|c| c.name == name)
    }

    /// How the component of this role runs.
    pub fn spec(&self, peer: ComponentId) -> Option<&ComponentSpec> {
        let name = role_name(peer);
        self.component.iter().find(|c| c.name == name)
    }

    /// The capacity of the queues between two components, if they may talk.
    pub fn capacity(&self, a: ComponentId, b: ComponentId) -> Option<usize> {
        self.edge.iter().find(|e| e.joins(role_name(a), role_name(b))).map(|e| e.capacity)
    }

    /// The components of a stack with `nics` devices, in the order in which packets go out.
    pub fn peers(&self, nics: usize) -> Vec<ComponentId> {
        let mut peers: Vec<ComponentId> =
            ROLES.iter().filter(|(name, _)| self.has(name)).filter_map(|(_, p)| *p).collect();
        peers.extend((0..nics).map(|n| ComponentId::nic(n as u8)));
        peers
    }
}

impl EdgeSpec {
    fn joins(&self, a: &str, b: &str) -> bool {
        let [x, y] = &self.between;
        (x == a && y == b) || (x == b && y == a)
    }
}

/// The name of a role in a topology file.
pub fn role_name(peer: ComponentId) -> &'static str {
    match peer.role {
        Role::Sockets => "sockets",
        Role::Tcp => "tcp",
        Role::Udp => "udp",
        Role::Ip => "ip",
        Role::Filter => "filter",
        Role::Nic => "nic",
        Role::Cores => "cores",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = include_str!("../../../topologies/default.toml");

    fn error(from: &str, to: &str) -> String {
        assert!(DEFAULT.contains(from), "{from}");
        Topology::parse(&DEFAULT.replacen(from, to, 1)).unwrap_err()
    }

    #[test]
    fn shipped_topologies_are_sound() {
        let t = Topology::parse(DEFAULT).unwrap();
        assert_eq!(t.peers(1).len(), 6);
        let t = Topology::parse(include_str!("../../../topologies/no-filter.toml")).unwrap();
        assert!(!t.has("filter"));
        let t = Topology::parse(include_str!("../../../topologies/adaptive.toml")).unwrap();
        assert_eq!(t.scheduling.unwrap().managed.to_string(), "0-1");
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert!(error("name = \"udp\"", "name = \"upd\"").contains("unknown component `upd`"));
        assert!(error("[\"ip\", \"filter\"]", "[\"tcp\", \"filter\"]").contains("forbidden"));
        assert!(error("[\"ip\", \"filter\"]", "[\"ip\", \"tcp\"]").contains("twice"));
        assert!(error("[\"ip\", \"filter\"]", "[\"ip\", \"foo\"]").contains("`foo`"));
        assert!(error("capacity = 1024", "capacity = 1000").contains("power of two"));
        assert!(error("name = \"filter\"", "name = \"filter\"\nfoo = 1").contains("foo"));
        assert!(error("name = \"filter\"", "name = \"filter\"\ndedicated = true").contains("no `cpu`"));
    }

    #[test]
    fn scheduling_is_checked_with_the_rest() {
        let with = |table: &str| Topology::parse(&format!("{DEFAULT}\n[scheduling]\n{table}\n"));
        let t = with("policy = \"adaptive\"\nobjective = \"least-power\"\nfloor = 0.9\nmanaged = \"0-1\"")
            .unwrap();
        assert_eq!(t.peers(1).len(), 6, "cores moves no packets");
        assert_eq!(t.scheduling.unwrap().managed.to_string(), "0-1");
        assert!(with("policy = \"adaptve\"").unwrap_err().contains("adaptve"));
        assert!(with("objective = \"speed\"").unwrap_err().contains("speed"));
        assert!(with("floor = 2.0").unwrap_err().contains("floor is 2"));
        assert!(with("managed = \"1-\"").unwrap_err().contains("managed"));
        let without = DEFAULT.replacen("[[component]]\nname = \"cores\"\n", "", 1);
        let alone = Topology::parse(&format!("{without}\n[scheduling]\n"));
        assert!(alone.unwrap_err().contains("add [[component]]"));
    }
}

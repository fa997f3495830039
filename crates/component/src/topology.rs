//! The whole system on one page: which components exist, who may talk to whom, how large the
//! queues are, where each runs.
//!
//! A topology file is checked as a whole before anything starts; every error is one line that names
//! what is wrong.

use crate::scheduling::{PolicyName, Scheduling};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use eft_base::text::complaint;
use eft_channel::dirty::DIRTY_SLOTS;
use eft_channel::socket::INSTANCES_MAX;
use eft_machine::CpuId;
use eft_messages::{ComponentId, Role};
use serde::Deserialize;

/// The topology that a stack has unless it is told another one.
pub const DEFAULT: &str = include_str!("../../../topologies/default.toml");
/// What stands between the transports and the wire in one process.
pub const EDGE: &str = include_str!("../../../topologies/edge.toml");
/// All that a packet passes in one process; what programs ask for in another.
pub const STACK: &str = include_str!("../../../topologies/stack.toml");
/// All but `cores` in one process.
pub const WHOLE: &str = include_str!("../../../topologies/whole.toml");

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
    pub cpu: Option<CpuId>,
    /// Alone on its CPU: it may poll for a bounded time before it sleeps.
    #[serde(default)]
    pub dedicated: bool,
    /// Components that name the same process run in one, and die and are reborn together; absent: a process of its own.
    #[serde(default)]
    pub process: Option<String>,
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
    /// Program domains at a time.
    pub domains: usize,
    /// Sockets of one domain with each transport. Absent: [`SOCKETS_PER_DOMAIN`], or fewer beside more than two transports.
    #[serde(deserialize_with = "sockets_asked")]
    pub sockets_per_domain: usize,
    /// Listeners of one domain.
    pub listeners_per_domain: usize,
    /// TCP connections of the whole stack, those in TIME_WAIT too.
    pub connections: usize,
}

/// Of a program and its descendants. They cost addresses; memory only when they are used.
pub const SOCKETS_PER_DOMAIN: usize = 100_000;
/// The file does not say. None of its numbers is 0.
const AS_MANY_AS_FIT: usize = 0;

fn sockets_asked<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match usize::deserialize(from)? {
        AS_MANY_AS_FIT => Err(serde::de::Error::custom("limits.sockets_per_domain must be at least 1")),
        sockets => Ok(sockets),
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            domains: 96,
            sockets_per_domain: AS_MANY_AS_FIT,
            listeners_per_domain: 256,
            connections: 131_072,
        }
    }
}

/// The edges that the contracts in `messages` define; no other may be drawn.
const EDGES: &[(Role, Role)] = &[
    (Role::Sockets, Role::Tcp),
    (Role::Sockets, Role::Udp),
    (Role::Tcp, Role::Ip),
    (Role::Udp, Role::Ip),
    (Role::Ip, Role::Filter),
    (Role::Ip, Role::Nic),
];

/// A component as files name it: that of a [`ComponentId`], or `nic` for all drivers, which are made from devices.
fn named(name: &str) -> Option<ComponentId> {
    if name == Role::Nic.name() {
        return Some(ComponentId::nic(0));
    }
    name.parse().ok().filter(|id: &ComponentId| id.role != Role::Nic)
}

impl Topology {
    /// Reads and checks a topology file.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let mut topology: Topology =
            toml::from_str(text).map_err(|e| complaint(text, e.span(), e.message()))?;
        let fit = DIRTY_SLOTS / topology.transports().len().max(1);
        if topology.limits.sockets_per_domain == AS_MANY_AS_FIT {
            topology.limits.sockets_per_domain = SOCKETS_PER_DOMAIN.min(fit);
        }
        topology.check()?;
        Ok(topology)
    }

    fn check(&self) -> Result<(), String> {
        for (i, c) in self.component.iter().enumerate() {
            let Some(id) = named(&c.name) else {
                let known = Role::ALL.map(Role::name).join(", ");
                return Err(format!(
                    "unknown component `{}`; there are: {known}; a second tcp or udp is tcp1 or udp1",
                    c.name
                ));
            };
            if id.instance as usize >= INSTANCES_MAX {
                return Err(format!("component `{}`: there may be {INSTANCES_MAX} of a role", c.name));
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
        if self.transports().is_empty() {
            return Err("neither `tcp` nor `udp` is there: a stack needs a transport".into());
        }
        for (i, e) in self.edge.iter().enumerate() {
            let [a, b] = &e.between;
            for name in [a, b] {
                if !self.has(name) {
                    return Err(format!("edge {a} - {b}: there is no component `{name}`"));
                }
            }
            let roles = |name: &str| named(name).map(|id| id.role);
            let drawn = (roles(a), roles(b));
            if !EDGES.iter().any(|&(x, y)| drawn == (Some(x), Some(y)) || drawn == (Some(y), Some(x))) {
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
            let of = |role: Role| {
                self.component.iter().filter(move |c| named(&c.name).is_some_and(|id| id.role == role))
            };
            for (x, y) in of(*x).flat_map(|x| of(*y).map(move |y| (&x.name, &y.name))) {
                if !self.edge.iter().any(|e| e.joins(x, y)) {
                    return Err(format!("edge {x} - {y} is missing: both components are there"));
                }
            }
        }
        self.check_processes()?;
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
            ("domains", l.domains, 96),
            ("sockets_per_domain", l.sockets_per_domain, DIRTY_SLOTS / self.transports().len()),
            ("listeners_per_domain", l.listeners_per_domain, 4096),
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
            Some(s) if s.policy != PolicyName::Fixed && self.shares_processes() => Err(format!(
                "policy `{}` places every component for itself: it needs a topology without `process`",
                s.policy
            )),
            Some(s) => s.check(),
            None => Ok(()),
        }
    }

    fn check_processes(&self) -> Result<(), String> {
        for (i, c) in self.component.iter().enumerate() {
            let Some(process) = &c.process else { continue };
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            if !(1..=32).contains(&process.len()) || !process.bytes().all(fits) {
                return Err(format!(
                    "component `{}`: `{process}` is no name of a process: use 1 to 32 of a-z, 0-9, `-`",
                    c.name
                ));
            }
            if c.name == "cores" {
                return Err("component `cores` has rights that no other may have: it runs alone".into());
            }
            let mut earlier = self.component[..i].iter().filter(|d| d.process == c.process);
            if let Some(other) = earlier.find(|d| (d.cpu, d.dedicated) != (c.cpu, c.dedicated)) {
                return Err(format!(
                    "components `{}` and `{}` share process `{process}`: give them the same `cpu` and `dedicated`",
                    other.name, c.name
                ));
            }
        }
        Ok(())
    }

    /// Whether some components share a process.
    pub fn shares_processes(&self) -> bool {
        self.component.iter().any(|c| c.process.is_some())
    }

    pub fn has(&self, name: &str) -> bool {
        self.component.iter().any(|c| c.name == name)
    }

    /// How this component runs.
    pub fn spec(&self, peer: ComponentId) -> Option<&ComponentSpec> {
        self.component.iter().find(|c| c.name == name_of(peer))
    }

    /// The capacity of the queues between two components, if they may talk.
    pub fn capacity(&self, a: ComponentId, b: ComponentId) -> Option<usize> {
        self.edge.iter().find(|e| e.joins(&name_of(a), &name_of(b))).map(|e| e.capacity)
    }

    /// The components of a stack with `nics` devices that move packets, in the order in which packets go out.
    pub fn peers(&self, nics: usize) -> Vec<ComponentId> {
        let named = self.component.iter().filter_map(|c| named(&c.name));
        let mut peers: Vec<ComponentId> =
            named.filter(|id| !matches!(id.role, Role::Nic | Role::Cores)).collect();
        peers.sort();
        peers.extend((0..nics).map(|n| ComponentId::nic(n as u8)));
        peers
    }

    /// The transports, in the order in which they share the slots of programs' arenas.
    pub fn transports(&self) -> Vec<ComponentId> {
        self.peers(0).into_iter().filter(|id| id.role.is_transport()).collect()
    }
}

/// How the file names a component: all drivers are one there.
fn name_of(peer: ComponentId) -> String {
    match peer.role {
        Role::Nic => Role::Nic.name().into(),
        _ => peer.to_string(),
    }
}

impl EdgeSpec {
    fn joins(&self, a: &str, b: &str) -> bool {
        let [x, y] = &self.between;
        (x == a && y == b) || (x == b && y == a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn components_of_one_process_are_checked_together() {
        let edge = Topology::parse(EDGE).unwrap();
        let process = |name: &str| edge.component.iter().find(|c| c.name == name).unwrap().process.as_deref();
        assert_eq!([process("nic"), process("ip"), process("filter")], [Some("edge"); 3]);
        assert_eq!((process("tcp"), edge.shares_processes()), (None, true));
        let together = |text: &str| {
            let t = Topology::parse(text).unwrap();
            let mut names: Vec<_> =
                t.component.into_iter().filter_map(|c| c.process.map(|_| c.name)).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(together(DEFAULT), "");
        assert_eq!(together(EDGE), "filter ip nic");
        assert_eq!(together(STACK), "filter ip nic tcp udp");
        assert_eq!(together(WHOLE), "filter ip nic sockets tcp udp");
        let filter = |more: &str| error("name = \"filter\"", &format!("name = \"filter\"\n{more}"));
        for bad in ["", "Edge", "a b", &"x".repeat(33)] {
            assert!(filter(&format!("process = \"{bad}\"")).contains("no name of a process"), "{bad}");
        }
        assert!(error("name = \"cores\"", "name = \"cores\"\nprocess = \"a\"").contains("runs alone"));
        let apart = DEFAULT.replacen("name = \"ip\"", "name = \"ip\"\nprocess = \"a\"\ncpu = 1", 1);
        let apart = apart.replacen("name = \"filter\"", "name = \"filter\"\nprocess = \"a\"\ncpu = 0", 1);
        assert!(Topology::parse(&apart).unwrap_err().contains("give them the same `cpu`"));
        assert!(
            filter("process = \"a\"\nprocess = \"b\"").contains("process"),
            "two processes of one component"
        );
        assert!(filter("process = [\"a\", \"b\"]").contains("process"), "two processes of one component");
        let twice = "name = \"filter\"\nprocess = \"a\"\n[[component]]\nname = \"filter\"\nprocess = \"b\"";
        assert!(error("name = \"filter\"", twice).contains("twice"), "{}", error("name = \"filter\"", twice));
        let placed = DEFAULT.replacen("name = \"ip\"", "name = \"ip\"\nprocess = \"a\"", 1);
        let placed = format!("{placed}\n[scheduling]\npolicy = \"adaptive\"\nmanaged = \"0-1\"\n");
        assert!(Topology::parse(&placed).unwrap_err().contains("without `process`"));
    }

    #[test]
    fn a_second_tcp_is_a_second_name() {
        let tcp1 = r#"
            [[component]]
            name = "tcp1"
            [[edge]]
            between = ["sockets", "tcp1"]
            [[edge]]
            between = ["ip", "tcp1"]
            capacity = 64
        "#;
        let sockets = |text: &str| Topology::parse(text).unwrap().limits.sockets_per_domain;
        assert_eq!(sockets(DEFAULT), SOCKETS_PER_DOMAIN);
        assert_eq!(sockets(&format!("{DEFAULT}{tcp1}")), DIRTY_SLOTS / 3);
        for (asked, says) in [("90000", "from 1 to 87381"), ("0", "at least 1")] {
            let text = format!("{DEFAULT}{tcp1}\n[limits]\nsockets_per_domain = {asked}\n");
            let error = Topology::parse(&text).unwrap_err();
            assert!(error.contains("sockets_per_domain must be ") && error.contains(says), "{error}");
        }
        let fewer = format!("{DEFAULT}{tcp1}\n[limits]\nsockets_per_domain = 2048\n");
        let t = Topology::parse(&fewer).unwrap();
        let second = ComponentId::new(Role::Tcp, 1);
        assert_eq!(t.transports(), [ComponentId::TCP, second, ComponentId::UDP]);
        assert_eq!(t.capacity(second, ComponentId::IP), Some(64));
        assert_eq!(t.capacity(second, ComponentId::UDP), None);
        let unconnected = fewer.replacen("\"ip\", \"tcp1\"", "\"ip\", \"tcp2\"", 1);
        assert!(Topology::parse(&unconnected).unwrap_err().contains("no component `tcp2`"));
        for unknown in ["tcp0", "ip1", "nic1", "tcp01"] {
            let error = Topology::parse(&fewer.replace("tcp1", unknown)).unwrap_err();
            assert!(error.contains(&format!("unknown component `{unknown}`")), "{error}");
        }
        assert!(Topology::parse(&fewer.replace("tcp1", "tcp8")).unwrap_err().contains("may be 8"));
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

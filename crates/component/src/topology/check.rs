//! What a topology must fulfil beyond its syntax, and the error of one that does not.

use super::{ComponentSpec, EDGES, EdgeSpec, Topology, named};
use crate::scheduling::{PolicyName, SchedulingError};
use alloc::string::{String, ToString};
use eft_channel::dirty::DIRTY_SLOTS;
use eft_channel::socket::INSTANCES_MAX;
use eft_messages::{ComponentId, Role};
use thiserror::Error;

/// The components that no stack works without.
const NEEDED: [Role; 3] = [Role::Sockets, Role::Ip, Role::Nic];

/// Why a topology is refused. Each is printed as one line that names what is wrong.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TopologyError {
    /// It is not TOML, or has an unknown key or value.
    #[error("{0}")]
    Syntax(String),
    #[error("unknown component `{0}`; there are: {roles}; a second tcp or udp is tcp1 or udp1", roles = Role::ALL.map(Role::name).join(", "))]
    UnknownComponent(String),
    #[error("component `{0}`: there may be {INSTANCES_MAX} of a role")]
    TooManyOfRole(String),
    #[error("component `{name}`: there is no `{lower}`; instances are numbered without a gap")]
    Gap { name: String, lower: String },
    #[error("component `{0}` is named twice")]
    ComponentTwice(String),
    #[error("component `{0}` is dedicated but has no `cpu`")]
    DedicatedWithoutCpu(String),
    #[error("component `{0}` is missing; no stack works without it")]
    ComponentMissing(&'static str),
    #[error("neither `tcp` nor `udp` is there: a stack needs a transport")]
    NoTransport,
    #[error("edge {}: there is no component `{name}`", between.join(" - "))]
    EdgeToNobody { between: [String; 2], name: String },
    #[error("edge {} is forbidden: these two have no contract", .0.join(" - "))]
    EdgeForbidden([String; 2]),
    #[error("edge {} is drawn twice", .0.join(" - "))]
    EdgeTwice([String; 2]),
    #[error("edge {} is missing: both components are there", .0.join(" - "))]
    EdgeMissing([String; 2]),
    #[error("edge {}: capacity must be a power of two from 64 to 65536", .0.join(" - "))]
    Capacity([String; 2]),
    #[error("component `{component}`: `{process}` is not a name of a process: use 1 to 32 of a-z, 0-9, `-`")]
    ProcessName { component: String, process: String },
    #[error("component `cores` has rights that no other may have: it runs alone")]
    CoresInCompany,
    #[error(
        "components `{one}` and `{other}` share process `{process}`: give them the same `cpu` and `dedicated`"
    )]
    ProcessInTwoPlaces { one: String, other: String, process: String },
    #[error("memory.{0} must be a power of two from 65536 to 67108864")]
    RingBytes(&'static str),
    #[error("memory.nic_frames must be from 32 to 4096")]
    NicFrames,
    #[error("limits.{name} must be from 1 to {max}")]
    Limit { name: &'static str, max: usize },
    #[error("[scheduling] needs a component that follows it: add [[component]] name = \"cores\"")]
    SchedulingWithoutCores,
    #[error("policy `{0}` places every component by itself: it needs a topology without `process`")]
    PolicyBesideProcesses(PolicyName),
    #[error(transparent)]
    Scheduling(#[from] SchedulingError),
}

type Result = core::result::Result<(), TopologyError>;

/// The error unless `holds`.
fn require(holds: bool, error: impl FnOnce() -> TopologyError) -> Result {
    if holds { Ok(()) } else { Err(error()) }
}

impl Topology {
    pub(super) fn check(&self) -> Result {
        for (i, component) in self.component.iter().enumerate() {
            component.check(&self.component[..i])?;
        }
        self.check_that_no_instance_is_missing()?;
        for needed in NEEDED.map(Role::name) {
            require(self.has(needed), || TopologyError::ComponentMissing(needed))?;
        }
        require(!self.transports().is_empty(), || TopologyError::NoTransport)?;
        for (i, edge) in self.edge.iter().enumerate() {
            self.check_edge(edge, &self.edge[..i])?;
        }
        self.check_that_no_edge_is_missing()?;
        for (i, component) in self.component.iter().enumerate() {
            component.check_process(&self.component[..i])?;
        }
        self.check_memory()?;
        self.check_limits()?;
        self.check_scheduling()
    }

    fn check_edge(&self, edge: &EdgeSpec, earlier: &[EdgeSpec]) -> Result {
        let between = &edge.between;
        let [a, b] = between;
        if let Some(name) = between.iter().find(|name| !self.has(name)) {
            return Err(TopologyError::EdgeToNobody { between: between.clone(), name: name.clone() });
        }
        let role = |name: &str| named(name).map(|id| id.role);
        let drawn = (role(a), role(b));
        let is_known = EDGES.iter().any(|&(x, y)| drawn == (Some(x), Some(y)) || drawn == (Some(y), Some(x)));
        require(is_known, || TopologyError::EdgeForbidden(between.clone()))?;
        require(!earlier.iter().any(|e| e.joins(a, b)), || TopologyError::EdgeTwice(between.clone()))?;
        let fits = edge.capacity.is_power_of_two() && (64..=65536).contains(&edge.capacity);
        require(fits, || TopologyError::Capacity(between.clone()))
    }

    fn check_that_no_edge_is_missing(&self) -> Result {
        let of = |role: Role| {
            self.component.iter().filter(move |c| named(&c.name).is_some_and(|id| id.role == role))
        };
        for (x, y) in EDGES {
            for (x, y) in of(*x).flat_map(|x| of(*y).map(move |y| (&x.name, &y.name))) {
                let is_drawn = self.edge.iter().any(|e| e.joins(x, y));
                require(is_drawn, || TopologyError::EdgeMissing([x.clone(), y.clone()]))?;
            }
        }
        Ok(())
    }

    /// A port's owner is found by its number among all instances.
    fn check_that_no_instance_is_missing(&self) -> Result {
        for id in self.transports() {
            let Some(instance) = id.instance.checked_sub(1) else { continue };
            let lower = ComponentId { instance, ..id }.to_string();
            require(self.has(&lower), || TopologyError::Gap { name: id.to_string(), lower })?;
        }
        Ok(())
    }

    fn check_memory(&self) -> Result {
        let m = &self.memory;
        let rings = [("send_ring_bytes", m.send_ring_bytes), ("receive_ring_bytes", m.receive_ring_bytes)];
        for (name, bytes) in rings {
            let fits = bytes.is_power_of_two() && (1 << 16..=1 << 26).contains(&bytes);
            require(fits, || TopologyError::RingBytes(name))?;
        }
        require((32..=super::NIC_FRAMES_MAX).contains(&m.nic_frames), || TopologyError::NicFrames)
    }

    fn check_limits(&self) -> Result {
        let l = &self.limits;
        for (name, value, max) in [
            ("domains", l.domains, 60),
            ("sockets_per_domain", l.sockets_per_domain, DIRTY_SLOTS / self.transports().len()),
            ("listeners_per_domain", l.listeners_per_domain, 4096),
            ("connections", l.connections, 1 << 20),
        ] {
            require((1..=max).contains(&value), || TopologyError::Limit { name, max })?;
        }
        Ok(())
    }

    fn check_scheduling(&self) -> Result {
        let Some(scheduling) = &self.scheduling else { return Ok(()) };
        require(self.has(Role::Cores.name()), || TopologyError::SchedulingWithoutCores)?;
        let policy = scheduling.policy;
        let is_alone = policy == PolicyName::Fixed || !self.shares_processes();
        require(is_alone, || TopologyError::PolicyBesideProcesses(policy))?;
        Ok(scheduling.check()?)
    }
}

/// Whether a process may be named so: 1 to 32 of a-z, 0-9 and `-`.
pub fn is_process_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(fits)
}

impl ComponentSpec {
    fn check(&self, earlier: &[ComponentSpec]) -> Result {
        let name = || self.name.clone();
        let id = named(&self.name).ok_or_else(|| TopologyError::UnknownComponent(name()))?;
        require((id.instance as usize) < INSTANCES_MAX, || TopologyError::TooManyOfRole(name()))?;
        require(earlier.iter().all(|d| d.name != self.name), || TopologyError::ComponentTwice(name()))?;
        require(!self.dedicated || self.cpu.is_some(), || TopologyError::DedicatedWithoutCpu(name()))
    }

    fn check_process(&self, earlier: &[ComponentSpec]) -> Result {
        let Some(process) = &self.process else { return Ok(()) };
        require(is_process_name(process), || TopologyError::ProcessName {
            component: self.name.clone(),
            process: process.clone(),
        })?;
        require(self.name != Role::Cores.name(), || TopologyError::CoresInCompany)?;
        let mut company = earlier.iter().filter(|d| d.process == self.process);
        match company.find(|d| (d.cpu, d.dedicated) != (self.cpu, self.dedicated)) {
            None => Ok(()),
            Some(one) => Err(TopologyError::ProcessInTwoPlaces {
                one: one.name.clone(),
                other: self.name.clone(),
                process: process.clone(),
            }),
        }
    }
}

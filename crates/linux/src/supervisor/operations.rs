//! Carries out operators' requests.

use super::ending::Ending;
use super::kept::AUTOCONF;
use super::member::Life;
use super::neighbours::NEIGHBOURS;
use super::request::{self, Request, SETTINGS};
use super::{Supervisor, Watched};
use crate::error::error;
use crate::protocol::ToServer;
use crate::security::Security;
use crate::{Doing, Error, Result, memory, operator, scm};
use eft_component::fault::Fault;
use eft_messages::ComponentId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

impl Supervisor {
    pub(super) fn operator_speaks(&mut self, id: u64) {
        let Some(position) = self.clients.iter().position(|(c, _)| *c == id) else { return };
        let mut buffer = vec![0; 1 << 20];
        let (request, fds) = match scm::receive(&self.clients[position].1, &mut buffer, true) {
            Ok((n @ 1.., fds)) => (request::parse(&buffer[..n]), fds),
            Err(rustix::io::Errno::AGAIN) => return,
            _ => return self.forget_client(id),
        };
        match request.and_then(|request| self.operate(id, request, fds)) {
            Ok(Some((answer, fds))) => self.answer_client(id, &answer, &fds),
            Ok(None) => {}
            Err(e) => self.answer_client(id, &json!({ "error": e.to_string() }), &[]),
        }
    }

    fn forget_client(&mut self, id: u64) {
        if let Some(position) = self.clients.iter().position(|(c, _)| *c == id) {
            let (_, fd) = self.clients.remove(position);
            self.unwatch(&fd, Watched::Operator(id));
        }
        self.waiting.retain(|(_, c)| *c != id);
        self.forget_moves_of(id);
    }

    pub(super) fn answer_client(&mut self, id: u64, answer: &Value, fds: &[OwnedFd]) {
        if let Some((_, fd)) = self.clients.iter().find(|(c, _)| *c == id) {
            operator::answer(fd, answer, &fds.iter().collect::<Vec<_>>());
        }
        self.forget_client(id);
    }

    /// Carries out a request. `Ok(None)`: the answer comes later.
    fn operate(
        &mut self,
        id: u64,
        request: Request,
        fds: Vec<OwnedFd>,
    ) -> Result<Option<(Value, Vec<OwnedFd>)>> {
        match request {
            Request::Ps { security } => Ok(Some((self.describe(security), Vec::new()))),
            Request::Info => Ok(Some((self.info(), Vec::new()))),
            Request::Stat => Ok(Some((self.counters(), Vec::new()))),
            Request::Arenas => self.arenas().map(Some),
            Request::Domain { domain } => self.keeping.show(eft_base::DomainId(domain)).map(Some),
            Request::Members => {
                let views: Vec<_> = self.members.iter().map(|m| m.view()).collect();
                Ok(Some((json!({ "members": views }), Vec::new())))
            }
            Request::Page { component } => {
                let m = &self.members[self.find(&component)?];
                let page = m.status_page.shown.try_clone().doing("status page")?;
                Ok(Some((json!({ "page": m.name }), vec![page])))
            }
            Request::Kill { component } => {
                let i = self.find(&component)?;
                self.members[i].killed_on_purpose = true;
                self.members[i].kill();
                let others: Vec<&str> = self
                    .company(i)
                    .into_iter()
                    .filter(|j| *j != i)
                    .map(|j| self.members[j].name.as_str())
                    .collect();
                Ok(Some((json!({ "killed": self.members[i].name, "with": others }), Vec::new())))
            }
            Request::Inject { component, fault, skip, counts } => self
                .operator_injects(&component, fault, skip, counts)
                .map(|answer| Some((answer, Vec::new()))),
            Request::Update { component } => {
                self.operator_updates(id, &component, fds.into_iter().next()).map(|()| None)
            }
            Request::Place { component, cpu, dedicated } => {
                self.operator_moves(id, &component, cpu, dedicated).map(|v| v.map(|v| (v, Vec::new())))
            }
            Request::Regroup { component, process } => {
                self.operator_regroups(id, &component, process).map(|v| v.map(|v| (v, Vec::new())))
            }
            Request::Sched { what, rest } => self.operator_schedules(id, what, rest).map(|()| None),
            Request::Network { change } => {
                self.operator_changes_network(change).map(|answer| Some((answer, Vec::new())))
            }
            Request::Neighbours => {
                self.ask_for_neighbours(id);
                Ok(None)
            }
            Request::Set { values, forget_servers } => self.set(values, forget_servers),
            Request::PfLoad { rules } => self.ask_filter(id, format!("filter.load:{id}"), rules.into_bytes()),
            Request::PfShow { what } => {
                self.ask_filter(id, format!("filter.show:{}:{id}", what.name()), Vec::new())
            }
            Request::Capture { interface } => self.capture(interface),
            Request::Stop => {
                self.ending = Some(Ending::Whole);
                Ok(Some((json!({}), Vec::new())))
            }
            Request::HandOver { likeness } => {
                self.may_hand_over(&likeness)?;
                self.ending = self.ending.or(Some(Ending::HandOver));
                Ok(Some((json!({}), Vec::new())))
            }
        }
    }

    /// An operator breaks a component. From now on its death counts as intended, so its restart is not delayed, unless it `counts` as
    /// the component's own failure.
    fn operator_injects(
        &mut self,
        component: &str,
        fault: Option<Fault>,
        skip: u32,
        counts: bool,
    ) -> Result<Value> {
        let i = self.find(component)?;
        let member = &mut self.members[i];
        let pid = member.pid().filter(|_| member.life == Life::Running);
        let pid =
            pid.ok_or_else(|| error!(Busy, "{component} does not run now: try again when `eft ps` says so"))?;
        if fault.is_some() && member.peer == ComponentId::CORES {
            return Err(Error::Invalid("cores sends no messages to neighbours that could be broken".into()));
        }
        member.killed_on_purpose = !counts;
        if let Some(fault) = fault {
            member.tell(&ToServer::Inject { fault, skip }, &[]);
        }
        Ok(json!({ "component": component, "pid": pid, "generation": member.generation }))
    }

    pub(super) fn find(&self, component: &str) -> Result<usize> {
        let names = || self.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
        self.members
            .iter()
            .position(|m| m.name == component)
            .ok_or_else(|| error!(Missing, "there is no component `{component}`; there are: {}", names()))
    }

    fn describe(&self, security: bool) -> Value {
        let members: Vec<Value> = self
            .members
            .iter()
            .enumerate()
            .map(|(i, m)| {
                json!({
                    "component": m.name,
                    "pid": m.pid(),
                    "process": m.process,
                    "state": format!("{:?}", m.life).split('(').next().unwrap_or_default().to_lowercase(),
                    "mode": format!("{:?}", m.status.state().load().0).to_lowercase(),
                    "generation": m.generation,
                    "deaths": m.restarts.total(),
                    "cpu": m.cpu,
                    "dedicated": m.dedicated,
                    "alone": m.alone,
                    "cpu_ms": self.cpu_time(i).map(|d| d.as_millis() as u64),
                    "turns": m.status.heartbeat(),
                    "landlock": m.landlock,
                    "standby": self.members[self.company(i)[0]].standby.pid(),
                    "recovery": m.recovery.map(|r| r.to_json()),
                    "security": m.pid().filter(|_| security).and_then(|pid| Security::of(pid.into())),
                })
            })
            .collect();
        json!({ "stack": self.config.name, "pid": std::process::id(), "components": members })
    }

    /// CPU time of a server. The kernel knows that of the process; servers that share it have parts of it in proportion
    /// to their own accounts.
    fn cpu_time(&self, i: usize) -> Option<Duration> {
        let whole = eft_host::clock::process_cpu(self.members[i].pid()?)?;
        let now = eft_host::clock::now();
        let awake = |j: usize| {
            let reading = self.members[j].status.account().read(now)?;
            Some((reading.busy_ns + reading.polling_ns + reading.waiting_ns) as f64)
        };
        let company = self.company(i);
        if company.len() == 1 {
            return Some(whole);
        }
        let all: f64 = company.into_iter().filter_map(awake).sum();
        Some(whole.mul_f64((awake(i)? / all.max(1.0)).min(1.0)))
    }

    fn info(&self) -> Value {
        let devices: Vec<Value> = self
            .config
            .devices
            .iter()
            .zip(&self.in_force.network.interfaces)
            .map(|(d, i)| {
                let addresses: Vec<String> = i.addresses.iter().map(ToString::to_string).collect();
                json!({ "device": d.text, "interface": d.interface, "addresses": addresses,
                        "mac": d.mac.to_string(), "mtu": d.mtu })
            })
            .collect();
        let name_servers = self.in_force.name_servers(&self.config);
        json!({
            "stack": self.config.name,
            "devices": devices,
            "nameserver": name_servers.first(),
            "nameservers": name_servers,
            "search": self.in_force.learnt.search,
            "domains": self.keeping.domains(),
            "sockets": self.keeping.sockets(),
        })
    }

    fn counters(&self) -> Value {
        let all: Vec<Value> = self
            .members
            .iter()
            .map(|m| {
                let values: Vec<u64> =
                    (0..eft_channel::status::COUNTERS_MAX).map(|i| m.status.get(i)).collect();
                let used = values.iter().rposition(|v| *v != 0).map_or(0, |i| i + 1);
                json!({ "component": m.name, "counters": values[..used] })
            })
            .collect();
        json!({ "stack": self.config.name, "components": all })
    }

    /// Read-only descriptors of the transports' arenas, for `eft ss`.
    fn arenas(&self) -> Result<(Value, Vec<OwnedFd>)> {
        let mut names = Vec::new();
        let mut fds = Vec::new();
        for m in self.members.iter().filter(|m| m.peer.role.is_transport()) {
            if let Some(arena) = &m.arena {
                fds.push(memory::read_only(arena)?);
                names.push(m.name.clone());
            }
        }
        Ok((json!({ "arenas": names }), fds))
    }

    pub(super) fn set(
        &mut self,
        values: BTreeMap<String, String>,
        forget_servers: bool,
    ) -> Result<Option<(Value, Vec<OwnedFd>)>> {
        if let Some(key) = values.keys().find(|key| !SETTINGS.contains(&key.as_str())) {
            return Err(error!(Missing, "there is no setting `{}`", key.escape_debug()));
        }
        for (key, value) in values {
            let value = value.into_bytes();
            for peer in self.store.publish(&key, value.clone()).unwrap_or_default() {
                self.tell(peer, &ToServer::Configure { key: key.clone(), value: value.clone() }, &[]);
            }
            self.keep_stored(&key);
        }
        if forget_servers {
            // Not stored: a successor knows none.
            let key = "forget-servers".to_string();
            for peer in self.config.topology.transports() {
                self.tell(peer, &ToServer::Configure { key: key.clone(), value: Vec::new() }, &[]);
            }
        }
        Ok(Some((json!({}), Vec::new())))
    }

    fn ask_filter(&mut self, id: u64, key: String, value: Vec<u8>) -> Result<Option<(Value, Vec<OwnedFd>)>> {
        if self.index(ComponentId::FILTER).is_none() {
            return Err(Error::Missing("this stack's topology has no filter".into()));
        }
        self.tell(ComponentId::FILTER, &ToServer::Configure { key: key.clone(), value: value.clone() }, &[]);
        // The rules become the filter's setting only once the filter has accepted them.
        self.store.publish(&key, value);
        self.waiting.push((key, id));
        Ok(None)
    }

    /// The filter or ip has answered an operator.
    pub(super) fn answered(&mut self, from: ComponentId, key: &str, value: Vec<u8>) {
        if from == ComponentId::IP && key == AUTOCONF {
            return self.heard_of_autoconf(value);
        }
        if key.starts_with(NEIGHBOURS) {
            return self.show_neighbours(key, &value);
        }
        let loaded = key.starts_with("filter.load:") && value == b"ok";
        if loaded && let Some((_, rules)) = self.store.get(key) {
            let rules = rules.to_vec();
            self.store.publish("filter", rules);
            self.keep_stored("filter");
        }
        self.store.remove(key);
        let Some((_, id)) = self.waiting.iter().find(|(k, _)| k == key).cloned() else { return };
        let text = String::from_utf8_lossy(&value).into_owned();
        let answer = match text.strip_prefix("error: ") {
            Some(e) => json!({ "error": e }),
            None => json!({ "text": text }),
        };
        self.answer_client(id, &answer, &[]);
    }

    fn capture(&mut self, interface: u8) -> Result<Option<(Value, Vec<OwnedFd>)>> {
        let known = self.index(ComponentId::nic(interface)).zip(self.config.devices.get(interface as usize));
        let Some((i, device)) = known else {
            return Err(error!(Missing, "there is no interface {interface}; this stack has {}", self.nics()));
        };
        let len = crate::capture::RING_LEN;
        let fd = memory::create("eft-capture", len)?;
        let answer = json!({ "interface": device.interface, "mtu": device.mtu });
        self.tell_index(i, &ToServer::Capture, &[&fd]);
        Ok(Some((answer, vec![fd])))
    }
}

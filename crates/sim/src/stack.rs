//! One whole stack: its servers, their memory, and how they die and come back.
//!
//! What the supervisor does live is done here in the same order: a dead server's neighbours first
//! take what it had said, then forget it; its successor gets fresh pools, its arena, the families,
//! the configuration, and fresh queues.

use crate::device::{End, SimDevice};
use crate::node::{Effect, Event, Hears, Node, Surroundings};
use crate::sizes::{arena_len, filter_config, tcp_config, udp_config};
use crate::wiring::{Numbers, edge};
use eft_base::{Cidr, FamilyId, Instant, PoolId, Random, SocketId};
use eft_channel::access::AccessObserver;
use eft_channel::account::Phase;
use eft_channel::notify::Mode;
use eft_channel::socket::{Arena, Geometry};
use eft_channel::status::Status;
use eft_channel::{Pool, PoolView, Segment};
use eft_component::fault::Fault;
use eft_component::{Component, Server, Topology, sockets, transport};
use eft_control::accusation::{Credit, Evidence, Verdict};
use eft_control::plan;
use eft_ip::IpConfig;
use eft_messages::{ComponentId, Role};
use eft_nic::Nic;
use eft_record::makes::{self, Head, Life};
use eft_record::recorder::{Make, Recorder};
use eft_record::recording::{Recorded, Recording};
use eft_sockets::{Sockets, SocketsConfig};
use eft_transport::{FUSE_BURNT, Fuse};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub const FAMILY: FamilyId = FamilyId(1);
const FAMILY_POOL: PoolId = PoolId(1);
/// How long a dead server's pools stay mapped, as in the supervisor.
const OLD_POOLS: Duration = Duration::from_secs(2);

/// What a stack is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    pub address: Cidr,
    /// pf.conf text, for a topology with a filter.
    pub rules: String,
    pub topology: String,
    pub geometry: Geometry,
    pub seed: u64,
    /// Record each life of ip, the filter, tcp and udp.
    pub record: bool,
}

struct Member {
    peer: ComponentId,
    node: Option<Box<dyn Node>>,
    status: Status,
    counters: Vec<&'static str>,
    arena: Option<Segment>,
    asleep: bool,
    deadline: Option<Instant>,
    generation: u32,
    /// Kills it in the middle of what it does.
    fuse: Fuse,
    /// What it said against others.
    credit: Credit,
}

struct MappedPool {
    id: PoolId,
    view: PoolView,
    owner: ComponentId,
    readers: Vec<ComponentId>,
    dropped_at: Option<Instant>,
}

/// A word that is written in a page is an access, too.
struct Burning(Fuse);

impl AccessObserver for Burning {
    fn read(&self, _: usize, _: &mut [u8]) {}

    fn wrote(&self, _: usize, _: &[u8]) {
        self.0.burn();
    }
}

/// A stack with one device.
pub struct Stack {
    shape: Shape,
    topology: Topology,
    members: Vec<Member>,
    pools: Vec<MappedPool>,
    next_pool: u16,
    pub family: Arena,
    end: Rc<RefCell<End>>,
    surroundings: Surroundings,
    /// Of every queue between two that live.
    numbers: Vec<Numbers>,
    /// What applications are to hear.
    pub effects: Vec<Effect>,
    /// Servers that died so far, and those of them that died of their fuses.
    pub crashes: u64,
    pub burnt: u64,
    /// Those that died since somebody asked.
    died: Vec<ComponentId>,
    /// Who accused whom.
    accusations: Vec<(ComponentId, ComponentId)>,
    /// Sockets whose descriptors the supervisor holds.
    kept: BTreeMap<SocketId, ComponentId>,
    /// Of all that are recorded.
    pub lives: Vec<Life>,
}

impl Stack {
    pub fn new(now: Instant, shape: Shape, end: Rc<RefCell<End>>) -> Stack {
        let topology = Topology::parse(&shape.topology).expect("a sound topology");
        let segment = Segment::heap(shape.geometry.arena_len());
        let family = Arena::new(segment, shape.geometry).expect("long enough");
        let mut stack = Stack {
            members: Vec::new(),
            pools: Vec::new(),
            next_pool: FAMILY_POOL.0,
            family,
            end,
            surroundings: Surroundings::default(),
            numbers: Vec::new(),
            effects: Vec::new(),
            crashes: 0,
            burnt: 0,
            died: Vec::new(),
            accusations: Vec::new(),
            kept: BTreeMap::new(),
            lives: Vec::new(),
            topology,
            shape,
        };
        stack.surroundings.now = now;
        for peer in stack.topology.peers(1) {
            let arena = arena_len(peer).map(Segment::heap);
            stack.members.push(Member {
                peer,
                node: None,
                status: Status::heap(),
                counters: Vec::new(),
                arena,
                asleep: false,
                deadline: None,
                generation: 0,
                fuse: Fuse::default(),
                credit: Credit::default(),
            });
        }
        for i in 0..stack.members.len() {
            stack.start(i);
        }
        stack
    }

    pub fn peers(&self) -> impl Iterator<Item = ComponentId> {
        self.members.iter().map(|m| m.peer)
    }

    fn index(&self, peer: ComponentId) -> Option<usize> {
        self.members.iter().position(|m| m.peer == peer)
    }

    pub fn is_alive(&self, peer: ComponentId) -> bool {
        self.index(peer).is_some_and(|i| self.members[i].node.is_some())
    }

    /// Which life of a server this is, from 1 on.
    pub fn generation(&self, peer: ComponentId) -> u32 {
        self.index(peer).map_or(0, |i| self.members[i].generation)
    }

    /// A counter of a server, by name; it goes on over its deaths.
    pub fn counter(&self, peer: ComponentId, name: &str) -> u64 {
        let i = self.index(peer).unwrap_or_else(|| panic!("no {peer}"));
        let m = &self.members[i];
        let at = m.counters.iter().position(|n| *n == name);
        m.status.get(at.unwrap_or_else(|| panic!("{peer} has no counter {name}")))
    }

    /// All counters of a server.
    pub fn all_counters(&self, peer: ComponentId) -> Vec<(&'static str, u64)> {
        let member = self.index(peer).map(|i| &self.members[i]);
        let counters = member.into_iter().flat_map(|m| m.counters.iter().enumerate().map(move |c| (m, c)));
        counters.map(|(m, (i, name))| (*name, m.status.get(i))).collect()
    }

    /// Some counters as text, for failure messages.
    pub fn counters(&self, peer: ComponentId, names: &[&str]) -> String {
        let values = names.iter().map(|n| format!("{n}={}", self.counter(peer, n)));
        values.collect::<Vec<_>>().join(" ")
    }

    // -- running -----------------------------------------------------------------------------

    /// The servers that would run now.
    pub fn runnable(&self, now: Instant) -> impl Iterator<Item = ComponentId> {
        let ready =
            move |m: &&Member| m.node.is_some() && (!m.asleep || m.deadline.is_some_and(|d| d <= now));
        self.members.iter().filter(ready).map(|m| m.peer)
    }

    /// When a sleeping server wants to run.
    pub fn deadline(&self) -> Option<Instant> {
        let living = self.members.iter().filter(|m| m.node.is_some());
        living.filter_map(|m| m.deadline).min()
    }

    /// The device, or an application, rings.
    pub fn wake(&mut self, peer: ComponentId) {
        if let Some(i) = self.index(peer) {
            let member = &mut self.members[i];
            if core::mem::take(&mut member.asleep) {
                member.status.account().woke_up();
            }
            member.status.state().awake();
        }
    }

    /// One turn of a server; it goes to sleep if it found nothing to do.
    pub fn step(&mut self, now: Instant, peer: ComponentId, budget: usize) {
        self.surroundings.now = now;
        let Some(i) = self.index(peer) else {
            return;
        };
        self.tell_news(i);
        let Some(step) = self.call(i, |node, around| node.step(around, budget)) else {
            return self.settle();
        };
        let member = &mut self.members[i];
        member.deadline = step.deadline;
        if step.work == 0 {
            // As live: announce, look once more, sleep.
            member.status.state().announce(Mode::Futex);
            member.asleep = !member.node.as_ref().is_some_and(|node| node.has_message());
            match member.asleep {
                true => member.status.account().enter(Phase::Sleeping, now),
                false => member.status.state().awake(),
            }
        }
        self.settle();
    }

    /// Applications' marks become events.
    fn tell_news(&mut self, i: usize) {
        let transport = self.members[i].peer;
        if !transport.role.is_transport() {
            return;
        }
        let now = self.surroundings.now;
        let dirty = self.family.dirty(transport);
        self.call(i, |node, _| {
            dirty.take(usize::MAX, &mut 0, |slot| {
                let socket = SocketId { family: FAMILY, slot: slot as u32 };
                node.event(now, Event::Transport(transport::Event::Dirty(socket)));
            });
        });
    }

    /// Wakes whoever was rung, keeps effects for the applications.
    fn settle(&mut self) {
        for peer in core::mem::take(&mut self.surroundings.woken) {
            self.wake(peer);
        }
        for effect in core::mem::take(&mut self.surroundings.effects) {
            match effect {
                Effect::Sockets(sockets::Effect::Keep { socket, transport, .. }) => {
                    self.kept.insert(socket, transport);
                }
                Effect::Sockets(sockets::Effect::Drop(socket)) => {
                    self.kept.remove(&socket);
                }
                effect => self.effects.push(effect),
            }
        }
    }

    pub fn event(&mut self, now: Instant, peer: ComponentId, event: Event) {
        if let Some(i) = self.index(peer) {
            self.call(i, |node, _| node.event(now, event));
            self.wake(peer);
        }
    }

    /// Calls a server that lives. `None`: it is dead, or died of it.
    fn call<R>(&mut self, i: usize, f: impl FnOnce(&mut dyn Node, &mut Surroundings) -> R) -> Option<R> {
        let member = &mut self.members[i];
        let node = member.node.as_mut()?;
        self.surroundings.fuse = member.fuse.clone();
        let around = &mut self.surroundings;
        match catch_unwind(AssertUnwindSafe(|| f(node.as_mut(), around))) {
            Ok(result) => {
                let accused = around.accused.drain(..).map(|of| (member.peer, of));
                self.accusations.extend(accused);
                Some(result)
            }
            Err(why) if why.downcast_ref::<String>().is_some_and(|s| s == FUSE_BURNT) => {
                self.burnt += 1;
                self.kill(self.surroundings.now, self.members[i].peer);
                None
            }
            Err(why) => resume_unwind(why),
        }
    }

    /// A server dies in the middle of what it does, after so many accesses of its arena and of pages, effects and wakes.
    pub fn light(&mut self, peer: ComponentId, steps: u64) {
        if let Some(i) = self.index(peer) {
            self.members[i].fuse.light(steps);
        }
    }

    /// Who died since the last call.
    pub fn take_died(&mut self) -> Vec<ComponentId> {
        core::mem::take(&mut self.died)
    }

    /// Who accused whom since the last call, and what the supervisor says to it.
    pub fn judge_accused(&mut self, now: Instant) -> Vec<(ComponentId, ComponentId, Verdict)> {
        let accusations = core::mem::take(&mut self.accusations);
        accusations.into_iter().filter_map(|(by, of)| Some((by, of, self.judge(now, by, of)?))).collect()
    }

    fn judge(&mut self, now: Instant, accuser: ComponentId, accused: ComponentId) -> Option<Verdict> {
        let queue = |writer, reader| {
            let mut of = self.numbers.iter().filter(|n| (n.writer, n.reader) == (writer, reader));
            of.find_map(|n| n.queue.clone())
        };
        let (written, read) = (queue(accused, accuser)?, queue(accuser, accused)?);
        let i = self.index(accuser)?;
        Some(self.members[i].credit.judge(now, &Evidence { accuser, accused, written, read }))
    }

    /// Arms a fault in a server that lives.
    pub fn inject(&mut self, peer: ComponentId, fault: Fault, skip: u32) {
        if let Some(i) = self.index(peer)
            && let Some(node) = &mut self.members[i].node
        {
            node.inject(fault, skip);
        }
    }

    /// Another value for a bit of a number by which a queue of this server goes.
    pub fn flip_number(&mut self, peer: ComponentId, random: &mut Random) {
        let own: Vec<&Numbers> = self.numbers.iter().filter(|n| n.writer == peer).collect();
        let mut below = |n: usize| random.below(n as u64) as usize;
        if !own.is_empty() {
            let numbers = own[below(own.len())];
            numbers.flip(below(numbers.count()), below(64) as u32);
        }
    }

    // -- dying -------------------------------------------------------------------------------

    /// Kills a server; or it is dead already, of its fuse.
    pub fn kill(&mut self, now: Instant, peer: ComponentId) {
        self.surroundings.now = now;
        let Some(i) = self.index(peer) else {
            return;
        };
        if self.members[i].node.take().is_none() {
            return;
        }
        self.crashes += 1;
        self.died.push(peer);
        self.members[i].deadline = None;
        self.members[i].fuse.light(0);
        for other in self.neighbours(peer) {
            let Some(j) = self.index(other) else {
                continue;
            };
            self.call(j, |node, around| {
                // What the dead one had said is still heard.
                node.take_rest(around);
                node.disconnect(peer);
            });
            self.wake(other);
        }
        self.settle();
        self.members[i].credit = Credit::default();
        // What was to be done about it is done.
        self.accusations.retain(|(by, of)| *by != peer && *of != peer);
        self.numbers.retain(|n| n.writer != peer && n.reader != peer);
        for pool in self.pools.iter_mut().filter(|p| p.owner == peer) {
            pool.dropped_at.get_or_insert(now + OLD_POOLS);
        }
    }

    /// Starts a dead server's successor.
    pub fn restart(&mut self, now: Instant, peer: ComponentId) {
        self.surroundings.now = now;
        if let Some(i) = self.index(peer)
            && self.members[i].node.is_none()
        {
            self.start(i);
        }
        self.drop_old_pools(now);
    }

    fn drop_old_pools(&mut self, now: Instant) {
        let is_old = |p: &MappedPool| p.dropped_at.is_some_and(|at| at <= now);
        let old: Vec<PoolId> = self.pools.iter().filter(|p| is_old(p)).map(|p| p.id).collect();
        self.pools.retain(|p| !old.contains(&p.id));
        for node in self.members.iter_mut().filter_map(|m| m.node.as_mut()) {
            for id in &old {
                node.memory().remove(*id);
            }
        }
    }

    fn neighbours(&self, peer: ComponentId) -> Vec<ComponentId> {
        let all = plan::neighbours(&self.topology, 1, peer);
        all.into_iter().map(|(p, _)| p).collect()
    }

    fn start(&mut self, i: usize) {
        let peer = self.members[i].peer;
        self.members[i].generation += 1;
        let own = self.make_pools(peer);
        let node = self.construct(i, own);
        let member = &mut self.members[i];
        member.counters = node.counters();
        member.node = Some(node);
        member.asleep = false;
        member.status.state().awake();
        self.map_pools(i);
        self.introduce_family(i);
        self.tell_survivors(i);
        self.configure(i);
        self.connect(i);
    }

    fn make_pools(&mut self, peer: ComponentId) -> Vec<Pool> {
        let mut own = Vec::new();
        for p in plan::pools(&self.topology, 1, peer) {
            self.next_pool += 1;
            let id = PoolId(self.next_pool);
            let pool = Pool::new(id, Segment::heap(p.slots * p.slot_size), p.slot_size);
            let mut view = pool.view().clone();
            view.segment = view.segment.read_only();
            for reader in &p.readers {
                if let Some(j) = self.index(*reader)
                    && let Some(node) = &mut self.members[j].node
                {
                    node.memory().insert(id, view.clone());
                }
            }
            self.pools.push(MappedPool { id, view, owner: peer, readers: p.readers, dropped_at: None });
            own.push(pool);
        }
        own
    }

    fn construct(&mut self, i: usize, own: Vec<Pool>) -> Box<dyn Node> {
        let member = &self.members[i];
        let (peer, generation) = (member.peer, member.generation);
        let status = member.status.clone();
        let seed = self.shape.seed ^ (generation as u64) << 32 ^ i as u64;
        let arena = member.arena.clone();
        let arena = || arena.expect("made in `new`");
        let record = self.shape.record;
        let mut own = own.into_iter();
        let mut pool = || own.next().expect("as the plan says");
        match peer.role {
            Role::Sockets => {
                let sockets = Sockets::new(SocketsConfig { generation, ..Default::default() });
                Box::new(Server::new(sockets, status, seed))
            }
            Role::Tcp => {
                let (arena, headers, config) = (arena(), pool(), tcp_config());
                let head = record.then(|| Head::of(config, &[&headers], Some(&arena)));
                let (tcp, make) = makes::tcp(arena, headers, config).expect("our arena");
                self.members[i].fuse = tcp.fuse();
                self.serve(head, (tcp, make), status, seed)
            }
            Role::Udp => {
                let (arena, headers, config) = (arena(), pool(), udp_config());
                let head = record.then(|| Head::of(config, &[&headers], Some(&arena)));
                let (udp, make) = makes::udp(arena, headers, config).expect("our arena");
                self.members[i].fuse = udp.fuse();
                self.serve(head, (udp, make), status, seed)
            }
            Role::Ip => {
                let config = IpConfig { with_filter: self.topology.has("filter"), seed };
                let (frames, packets) = (pool(), pool());
                let head = record.then(|| Head::of(config, &[&frames, &packets], None));
                self.serve(head, makes::ip(frames, packets, config), status, seed)
            }
            Role::Filter => {
                let (arena, config) = (arena(), filter_config());
                let head = record.then(|| Head::of(config, &[], Some(&arena)));
                self.serve(head, makes::filter(arena, config), status, seed)
            }
            Role::Nic => {
                let nic = Nic::new(SimDevice(self.end.clone()), pool(), peer.instance);
                Box::new(Server::new(nic, status, seed))
            }
            Role::Cores => unreachable!("no peer of a packet, so not among `Topology::peers`"),
        }
    }

    /// A server around an engine, which is recorded if it has a head.
    fn serve<C: Component<Out: Debug, Event: Hears + Recorded, Effect: Into<Effect>> + 'static>(
        &mut self,
        head: Option<Head>,
        (engine, make): (C, Make<C>),
        status: Status,
        seed: u64,
    ) -> Box<dyn Node> {
        let Some(head) = head else {
            return Box::new(Server::new(engine, status, seed));
        };
        let recording = Rc::new(RefCell::new(Recording::default()));
        self.lives.push(Life { head, recording: recording.clone() });
        Box::new(Server::new(Recorder::new(engine, make, recording), status, seed))
    }

    /// Maps others' pools into a newborn.
    fn map_pools(&mut self, i: usize) {
        let peer = self.members[i].peer;
        if let Some(node) = &mut self.members[i].node {
            for p in self.pools.iter().filter(|p| p.owner == peer || p.readers.contains(&peer)) {
                node.memory().insert(p.id, p.view.clone());
            }
        }
    }

    fn introduce_family(&mut self, i: usize) {
        let peer = self.members[i].peer;
        let mappers = plan::family_mappers(&self.topology, 1);
        let Some((_, writable)) = mappers.into_iter().find(|(p, _)| *p == peer) else {
            return;
        };
        let now = self.surroundings.now;
        let arena = self.family.clone().observed_by(Arc::new(Burning(self.members[i].fuse.clone())));
        self.call(i, |node, _| {
            let mut view = arena.view();
            if !writable {
                view.segment = view.segment.read_only();
            }
            node.memory().insert(FAMILY_POOL, view);
            if writable {
                node.event(now, Event::FamilyOpened { family: FAMILY, pool: FAMILY_POOL, arena });
            }
        });
    }

    /// A reborn sockets hears which descriptors are still open.
    fn tell_survivors(&mut self, i: usize) {
        let now = self.surroundings.now;
        if self.members[i].peer == ComponentId::SOCKETS {
            let kept = self.kept.clone();
            self.call(i, |node, _| {
                for (socket, transport) in kept {
                    node.event(now, Event::Sockets(sockets::Event::Survivor { socket, transport }));
                }
            });
        }
    }

    fn configure(&mut self, i: usize) {
        let address = self.shape.address;
        let transports: Vec<String> = self.topology.transports().iter().map(|t| format!("\"{t}\"")).collect();
        let ip = format!(
            "transports = [{}]\n[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"{address}\"]\n",
            transports.join(", ")
        );
        let (key, value) = match self.members[i].peer.role {
            Role::Ip => ("ip", ip),
            Role::Filter => ("filter", self.shape.rules.clone()),
            Role::Tcp | Role::Udp => ("addresses", format!("{address}\n")),
            _ => return,
        };
        let now = self.surroundings.now;
        let (key, value) = (key.to_string(), value.into_bytes());
        self.call(i, |node, _| node.event(now, Event::Configure { key, value }));
    }

    /// Fresh queues to every living neighbour.
    fn connect(&mut self, i: usize) {
        let peer = self.members[i].peer;
        for (other, capacity) in plan::neighbours(&self.topology, 1, peer) {
            let Some(j) = self.index(other) else {
                continue;
            };
            if self.members[i].node.is_none() || self.members[j].node.is_none() || i == j {
                continue;
            }
            let (a, b) = (&self.members[i], &self.members[j]);
            let (for_a, for_b, numbers) = edge((a.peer, &a.status), (b.peer, &b.status), capacity);
            self.numbers.extend(numbers);
            for (k, port) in [(i, for_a), (j, for_b)] {
                self.call(k, |node, around| node.connect(around, port));
            }
            self.wake(other);
        }
        self.settle();
    }
}

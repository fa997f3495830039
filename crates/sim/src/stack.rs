//! One whole stack: its servers, their memory, and how they die and come back.
//!
//! The order is that of the live supervisor: a dead server's neighbours first take its last messages, then forget
//! it; its successor gets fresh pools, its arena, the domains, the configuration, and fresh queues.

mod faults;
mod poison;
mod start;
mod state;

use self::poison::Poison;
use crate::device::End;
use crate::node::{Effect, Event, Node, Surroundings};
use crate::sizes::{Sizes, arena_len};
use crate::wiring::Numbers;
use eft_base::{Cidr, DomainId, Instant, PoolId, SocketId};
use eft_channel::access::AccessObserver;
use eft_channel::account::Phase;
use eft_channel::notify::Mode;
use eft_channel::queue::Inspection;
use eft_channel::socket::{Arena, Geometry};
use eft_channel::status::Status;
use eft_channel::{PoolView, Segment};
use eft_component::server::Budget;
use eft_component::{Topology, sockets, transport};
use eft_control::accusation::Credit;
use eft_control::network::Network;
use eft_control::plan;
use eft_messages::ComponentId;
use eft_record::life::Life;
use eft_transport::{FUSE_BURNT, Fuse};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

pub const DOMAIN: DomainId = DomainId(1);
/// Of a program that is an enemy.
pub const HOSTILE: DomainId = DomainId(2);
/// The pool of a domain has the domain's number, and servers' pools have later ones.
const DOMAINS: u16 = 2;
/// How long a dead server's pools stay mapped, as in the supervisor.
const OLD_POOLS: Duration = Duration::from_secs(2);

/// What a stack is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    pub addresses: Vec<Cidr>,
    /// pf.conf text, for a topology with a filter.
    pub rules: String,
    pub topology: String,
    /// Of tcp and udp, as `eft up` has them: key and value.
    pub transport: Vec<(&'static str, &'static str)>,
    pub geometry: Geometry,
    pub sizes: Sizes,
    /// There is a second domain, of an enemy.
    pub hostile: bool,
    /// No server dies in the middle of a turn.
    pub is_lasting: bool,
    pub seed: u64,
    /// Record each life of ip, the filter, tcp and udp, up to so many bytes of calls.
    pub record: Option<usize>,
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
    /// Kills it in the middle of a turn.
    fuse: Fuse,
    /// What it said against others.
    credit: Credit,
    /// It died of an input, and was not killed from outside.
    failed: bool,
    /// It does nothing any more, and is not dead.
    hung: bool,
}

impl Member {
    fn is_at_work(&self) -> bool {
        self.node.is_some() && !self.hung
    }
}

struct MappedPool {
    id: PoolId,
    /// As its owner has it mapped.
    segment: Segment,
    view: PoolView,
    owner: ComponentId,
    readers: Vec<ComponentId>,
    dropped_at: Option<Instant>,
    /// Of a dead owner: the queue by which its reader heard of what lies there, if that one lives.
    queue: Option<Inspection>,
}

/// The panic message of a server that dies of an input.
pub(crate) const POISONED: &str = "killed by what it received";

/// A word that is written in a page is an access, too.
struct Burning(Fuse, Poison);

impl AccessObserver for Burning {
    fn read(&self, _: usize, _: &mut [u8]) {}

    fn wrote(&self, _: usize, bytes: &[u8]) {
        self.0.burn();
        assert!(!self.1.is_in(bytes), "{POISONED}");
    }
}

/// A stack with one device.
pub struct Stack {
    shape: Shape,
    topology: Topology,
    members: Vec<Member>,
    pools: Vec<MappedPool>,
    next_pool: u16,
    pub domain: Arena,
    pub hostile: Option<Arena>,
    end: Rc<RefCell<End>>,
    surroundings: Surroundings,
    /// Of every queue between two that live.
    numbers: Vec<Numbers>,
    /// What applications are to hear.
    pub effects: Vec<Effect>,
    /// Servers that died so far, and those of them that died of their fuses.
    pub crashes: u64,
    pub burnt: u64,
    /// Those that died of an input.
    pub poisoned: u64,
    /// Kills who puts it into a program's ring.
    poison: Poison,
    /// Kills a server when it handles a message with it, or a timer of that name.
    deadly: BTreeMap<ComponentId, Poison>,
    /// Servers that died since the last call of `take_died`.
    died: Vec<ComponentId>,
    /// Which component accused which.
    accusations: Vec<(ComponentId, ComponentId)>,
    /// Sockets whose descriptors the supervisor holds.
    kept: BTreeMap<SocketId, ComponentId>,
    /// Of all that are recorded.
    pub lives: Vec<Life>,
    /// Addresses and routes in place of the shape's, and what ip has learnt.
    in_force: Option<(Network, Vec<u8>)>,
}

impl Stack {
    pub fn new(now: Instant, shape: Shape, end: Rc<RefCell<End>>) -> Stack {
        let topology = Topology::parse(&shape.topology).expect("a sound topology");
        let segment = || Segment::heap(shape.geometry.arena_len());
        let new = || Arena::new(segment(), shape.geometry).expect("long enough");
        let (domain, hostile) = (new(), shape.hostile.then(new));
        let mut stack = Stack {
            members: Vec::new(),
            pools: Vec::new(),
            next_pool: DOMAINS,
            domain,
            hostile,
            end,
            surroundings: Surroundings::default(),
            numbers: Vec::new(),
            effects: Vec::new(),
            crashes: 0,
            burnt: 0,
            poisoned: 0,
            poison: Poison::default(),
            deadly: BTreeMap::new(),
            died: Vec::new(),
            accusations: Vec::new(),
            kept: BTreeMap::new(),
            lives: Vec::new(),
            in_force: None,
            topology,
            shape,
        };
        stack.surroundings.now = now;
        for peer in stack.topology.peers(1) {
            let arena = arena_len(peer, stack.shape.sizes).map(Segment::heap);
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
                failed: false,
                hung: false,
            });
        }
        for i in 0..stack.members.len() {
            stack.start(i);
        }
        stack
    }

    /// The domains, each with the pool that packet references name, and the program's memory.
    fn domains(&self) -> impl Iterator<Item = (DomainId, PoolId, &Arena)> {
        let hostile = self.hostile.iter().map(|arena| (HOSTILE, arena));
        let all = core::iter::once((DOMAIN, &self.domain)).chain(hostile);
        all.map(|(domain, arena)| (domain, PoolId(domain.0), arena))
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
        let ready = move |m: &&Member| m.is_at_work() && (!m.asleep || m.deadline.is_some_and(|d| d <= now));
        self.members.iter().filter(ready).map(|m| m.peer)
    }

    /// When a sleeping server wants to run.
    pub fn deadline(&self) -> Option<Instant> {
        let living = self.members.iter().filter(|m| m.is_at_work());
        living.filter_map(|m| m.deadline).min()
    }

    /// Rings a server's doorbell, for the device or an application.
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
    pub fn step(&mut self, now: Instant, peer: ComponentId, budget: impl Budget) {
        self.surroundings.now = now;
        let Some(i) = self.index(peer) else {
            return;
        };
        self.emit_marks(i);
        let Some(step) = self.call(i, |node, around| node.step(around, &budget)) else {
            return self.settle();
        };
        let member = &mut self.members[i];
        member.deadline = step.deadline;
        if step.work == 0 {
            // As live: announce, poll once more, sleep.
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
    fn emit_marks(&mut self, i: usize) {
        let transport = self.members[i].peer;
        if !transport.role.is_transport() {
            return;
        }
        let now = self.surroundings.now;
        let marks: Vec<_> = self.domains().map(|(d, _, arena)| (d, arena.dirty(transport))).collect();
        self.call(i, |node, _| {
            for (domain, dirty) in marks {
                dirty.take(usize::MAX, &mut 0, |slot| {
                    let socket = SocketId { domain, slot: slot as u32 };
                    node.event(now, Event::Transport(transport::Event::Dirty(socket)));
                });
            }
        });
    }

    /// Wakes the servers that were rung, keeps effects for the applications.
    fn settle(&mut self) {
        for peer in core::mem::take(&mut self.surroundings.woken) {
            self.wake(peer);
        }
        for effect in core::mem::take(&mut self.surroundings.effects) {
            match effect {
                Effect::Sockets(
                    sockets::Effect::Keep { socket, transport, .. }
                    | sockets::Effect::KeepBeside { socket, transport, .. },
                ) => {
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

    /// Calls a server that lives. `None`: it is dead, hangs, or died of it.
    fn call<R>(&mut self, i: usize, f: impl FnOnce(&mut dyn Node, &mut Surroundings) -> R) -> Option<R> {
        let member = &mut self.members[i];
        let node = member.node.as_mut().filter(|_| !member.hung)?;
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
            Err(why) if why.downcast_ref::<String>().is_some_and(|s| s == POISONED) => {
                self.poisoned += 1;
                self.kill(self.surroundings.now, self.members[i].peer);
                self.members[i].failed = true;
                None
            }
            Err(why) => resume_unwind(why),
        }
    }

    // -- dying -------------------------------------------------------------------------------

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

    fn neighbours(&self, peer: ComponentId) -> Vec<ComponentId> {
        let all = plan::neighbours(&self.topology, 1, peer);
        all.into_iter().map(|(p, _)| p).collect()
    }
}

//! Starting servers: their pools, engines and neighbours, and a new server's first events.

use super::poison::Poisonable;
use super::{Burning, MappedPool, Stack};
use crate::device::SimDevice;
use crate::node::{Effect, Event, Hears, Node};
use crate::sizes::{filter_config, tcp_config, udp_config};
use crate::wiring::edge;
use eft_arena::docket;
use eft_base::{Instant, PoolId, PortShare, SlotShare};
use eft_channel::socket::Arena;
use eft_channel::status::Status;
use eft_channel::{Pool, Segment};
use eft_component::{Component, Server, sockets};
use eft_control::network::Network;
use eft_control::plan;
use eft_ip::IpConfig;
use eft_messages::{ComponentId, Role};
use eft_nic::Nic;
use eft_record::durable::Durable;
use eft_record::life::Life;
use eft_record::makes::{self, Head};
use eft_record::recorder::{Make, Recorder};
use eft_record::recording::{Recorded, Recording};
use eft_sockets::{Sockets, SocketsConfig};
use eft_transport::FUSE_BURNT;
use eft_transport::tcp::TcpConfig;
use eft_transport::udp::UdpConfig;
use std::cell::RefCell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

impl Stack {
    pub(super) fn start(&mut self, i: usize) {
        let peer = self.members[i].peer;
        self.members[i].generation += 1;
        let own = self.make_pools(peer);
        let Some(node) = self.construct_or_die(i, own) else { return };
        let member = &mut self.members[i];
        member.failed = false;
        member.hung = false;
        member.counters = node.counters();
        member.node = Some(node);
        member.asleep = false;
        member.status.state().awake();
        self.map_pools(i);
        self.introduce_domains(i);
        self.tell_survivors(i);
        self.configure(i);
        self.connect(i);
    }

    fn make_pools(&mut self, peer: ComponentId) -> Vec<Pool> {
        let mut own = Vec::new();
        for p in plan::pools(&self.topology, 1, peer) {
            self.next_pool += 1;
            let id = PoolId(self.next_pool);
            let pool = Pool::new(id, Segment::heap(p.bytes()), p.slot_size);
            let mut view = pool.view().clone();
            let segment = core::mem::replace(&mut view.segment, pool.view().segment.read_only());
            for reader in &p.readers {
                if let Some(j) = self.index(*reader)
                    && let Some(node) = &mut self.members[j].node
                {
                    node.memory().insert(id, view.clone());
                }
            }
            self.pools.push(MappedPool {
                id,
                segment,
                view,
                owner: peer,
                readers: p.readers,
                dropped_at: None,
                queue: None,
            });
            own.push(pool);
        }
        own
    }

    /// A server whose fuse is lit may die before it is there.
    fn construct_or_die(&mut self, i: usize, own: Vec<Pool>) -> Option<Box<dyn Node>> {
        let made = catch_unwind(AssertUnwindSafe(|| self.construct(i, own)));
        made.map_err(|why| match why.downcast_ref::<String>() {
            Some(s) if s == FUSE_BURNT => self.died_at_start(i),
            _ => resume_unwind(why),
        })
        .ok()
    }

    fn construct(&mut self, i: usize, own: Vec<Pool>) -> Box<dyn Node> {
        let member = &self.members[i];
        let (peer, generation, failed) = (member.peer, member.generation, member.failed);
        let (status, fuse) = (member.status.clone(), member.fuse.clone());
        let seed = self.shape.seed ^ (generation as u64) << 32 ^ i as u64;
        let arena = member.arena.clone();
        let kept = arena.clone();
        if let Some(arena) = arena.as_ref().filter(|_| !failed) {
            docket::acquit(arena);
        }
        let arena = || arena.expect("made in `new`");
        let record = self.shape.record.is_some();
        let mut own = own.into_iter();
        let mut pool = || own.next().expect("as the plan says");
        match peer.role {
            Role::Sockets => {
                let sockets = Sockets::new(SocketsConfig { generation, ..Default::default() });
                Box::new(Server::new(sockets, status, seed))
            }
            Role::Tcp => {
                let (arena, headers, config) =
                    (arena(), pool(), TcpConfig { slots: self.share(peer), ..tcp_config(self.shape.sizes) });
                let head =
                    record.then(|| Head::of(config, &[&headers], Some(&Durable::whole(arena.clone()))));
                let (tcp, make) = makes::tcp(arena, headers, config, fuse).expect("our arena");
                self.serve(head, peer, (tcp, make), status, seed, kept)
            }
            Role::Udp => {
                let config = UdpConfig { slots: self.share(peer), ..udp_config() };
                let (arena, headers) = (arena(), pool());
                let head =
                    record.then(|| Head::of(config, &[&headers], Some(&Durable::whole(arena.clone()))));
                let (udp, make) = makes::udp(arena, headers, config, fuse).expect("our arena");
                self.serve(head, peer, (udp, make), status, seed, kept)
            }
            Role::Ip => {
                let config = IpConfig { with_filter: self.topology.has("filter"), seed };
                let (docket, frames, packets) = (arena(), pool(), pool());
                let head = record
                    .then(|| Head::of(config, &[&frames, &packets], Some(&Durable::whole(docket.clone()))));
                self.serve(head, peer, makes::ip(docket, frames, packets, config, fuse), status, seed, kept)
            }
            Role::Filter => {
                let (arena, config) = (arena(), filter_config());
                let head = record.then(|| Head::of(config, &[], Some(&Durable::whole(arena.clone()))));
                let (filter, make) = makes::filter(arena, config, fuse);
                self.serve(head, peer, (filter, make), status, seed, kept)
            }
            Role::Nic => {
                let mut nic = Nic::new(SimDevice(self.end.clone()), pool(), peer.instance);
                let left = self.pools.iter().rev().find(|p| p.owner == peer && p.dropped_at.is_some());
                if let Some(left) = left {
                    nic.inherit(&left.view, left.queue.as_ref());
                }
                Box::new(Server::new(nic, status, seed))
            }
            Role::Cores => unreachable!("no peer of a packet, so not among `Topology::peers`"),
        }
    }

    /// The slots that a transport gives out.
    fn share(&self, transport: ComponentId) -> SlotShare {
        plan::slot_share(&self.topology, transport).expect("it is a transport of the topology")
    }

    /// A server around an engine, which is recorded if it has a head.
    fn serve<C: Component<Out: Debug, Event: Hears + Recorded, Effect: Into<Effect>> + 'static>(
        &mut self,
        head: Option<Head>,
        peer: ComponentId,
        (engine, make): (C, Make<C>),
        status: Status,
        seed: u64,
        arena: Option<Segment>,
    ) -> Box<dyn Node> {
        let Some(head) = head else {
            let arena = arena.expect("it names what it handles there");
            let running: fn(&Segment) -> Option<String> = match peer.role {
                Role::Ip => eft_ip::running_input,
                _ => |arena| docket::running_input(arena, |_| None),
            };
            let engine = Poisonable::new(engine, make.reads, self.deadly(peer), (arena, running));
            return Box::new(Server::new(engine, status, seed));
        };
        let bytes_max = self.shape.record.unwrap_or(usize::MAX);
        let recording = Rc::new(RefCell::new(Recording::limited(bytes_max)));
        let arena = arena.map(Durable::whole);
        self.lives.push(Life { head, recording: recording.clone() });
        let recorder = Recorder::new(engine, make, recording).with_arena(arena).beside(self.poisoner());
        Box::new(Server::new(recorder, status, seed))
    }

    /// Maps others' pools into a new server.
    fn map_pools(&mut self, i: usize) {
        let peer = self.members[i].peer;
        if let Some(node) = &mut self.members[i].node {
            for p in self.pools.iter().filter(|p| p.owner == peer || p.readers.contains(&peer)) {
                node.memory().insert(p.id, p.view.clone());
            }
        }
    }

    fn introduce_domains(&mut self, i: usize) {
        let peer = self.members[i].peer;
        let mappers = plan::domain_mappers(&self.topology, 1);
        let Some((_, writable)) = mappers.into_iter().find(|(p, _)| *p == peer) else {
            return;
        };
        let now = self.surroundings.now;
        let burning = Arc::new(Burning(self.members[i].fuse.clone(), self.poison.clone()));
        let is_lasting = self.shape.is_lasting;
        let observed = |(domain, pool, arena): (_, _, &Arena)| {
            let arena = arena.clone();
            (domain, pool, if is_lasting { arena } else { arena.observed_by(burning.clone()) })
        };
        let domains: Vec<_> = self.domains().map(observed).collect();
        self.call(i, |node, _| {
            for (domain, pool, arena) in domains {
                let mut view = arena.view();
                if !writable {
                    view.segment = view.segment.read_only();
                }
                node.memory().insert(pool, view);
                if writable {
                    node.event(now, Event::DomainOpened { domain, pool, arena });
                }
            }
        });
    }

    /// Tells a restarted sockets which descriptors are still open.
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

    /// As a supervisor that puts other addresses and routes in force: tells the servers, and their successors.
    pub fn put_in_force(&mut self, now: Instant, network: &Network, learnt: Vec<u8>) {
        self.surroundings.now = now;
        self.in_force = Some((network.clone(), learnt));
        for i in 0..self.members.len() {
            if matches!(self.members[i].peer.role, Role::Ip | Role::Tcp | Role::Udp) {
                self.configure(i);
                self.wake(self.members[i].peer);
            }
        }
    }

    fn transport_names(&self) -> Vec<String> {
        self.topology.transports().iter().map(ToString::to_string).collect()
    }

    fn configure(&mut self, i: usize) {
        let addresses: Vec<String> = self.shape.addresses.iter().map(|a| format!("\"{a}\"")).collect();
        let transports: Vec<String> = self.transport_names().iter().map(|t| format!("\"{t}\"")).collect();
        let ip = format!(
            "transports = [{}]\n[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [{}]\n",
            transports.join(", "),
            addresses.join(", ")
        );
        let mut addresses = addresses;
        let mut of_ip = vec![("ip", ip)];
        if let Some((network, learnt)) = &self.in_force {
            let names = self.transport_names();
            let learnt = String::from_utf8_lossy(learnt).into_owned();
            of_ip = vec![("autoconf", learnt), ("ip", network.ip_configuration(&names))];
            addresses =
                network.interfaces.iter().flat_map(|i| &i.addresses).map(ToString::to_string).collect();
        }
        let told = match self.members[i].peer.role {
            Role::Ip => of_ip,
            Role::Sockets => vec![(PortShare::KEY, self.transport_names().join("\n"))],
            Role::Filter => vec![("filter", self.shape.rules.clone())],
            Role::Tcp | Role::Udp => {
                let own = self.shape.transport.iter().map(|(key, value)| (*key, value.to_string()));
                let addresses = ("addresses", addresses.join("\n").replace('"', ""));
                let names = (PortShare::KEY, self.transport_names().join("\n"));
                [names, ("fastopen", "both".to_string()), addresses].into_iter().chain(own).collect()
            }
            _ => return,
        };
        let now = self.surroundings.now;
        for (key, value) in told {
            let (key, value) = (key.to_string(), value.into_bytes());
            self.call(i, |node, _| node.event(now, Event::Configure { key, value }));
        }
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

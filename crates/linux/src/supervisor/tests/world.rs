//! A supervisor whose servers are played: their processes sleep, and what they are told is written down.

use crate::devices::DeviceSpec;
use crate::keeper::Entries;
use crate::memory;
use crate::protocol::{FromServer, PACKET_MAX, ToServer, encode};
use crate::scm::{self, fuse};
use crate::supervisor::changes::Changes;
use crate::supervisor::inheritance::Inheritance;
use crate::supervisor::kept::Kept;
use crate::supervisor::kept::tests::hear;
use crate::supervisor::member::Life;
use crate::supervisor::process::{Running, Spawned};
use crate::supervisor::setup::{Founded, members};
use crate::supervisor::standby::Waiting;
use crate::supervisor::{DeviceConfig, StackConfig, Supervisor, changes, children};
use eft_base::{DomainId, MacAddress, Protection};
use eft_component::Topology;
use eft_messages::ComponentId;
use rustix::event::{EventfdFlags, eventfd};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

pub fn config() -> StackConfig {
    let device = DeviceConfig {
        spec: DeviceSpec::Pair("nowhere".into()),
        text: "pair:nowhere".into(),
        interface: "eft0".into(),
        addresses: vec!["10.9.9.2/24".parse().unwrap()],
        auto: Vec::new(),
        mac: MacAddress::default(),
        mtu: 1500,
        ring: None,
    };
    StackConfig {
        name: "played".into(),
        topology: Topology::parse(eft_component::topology::DEFAULT).unwrap(),
        devices: vec![device],
        gateways: Vec::new(),
        host_addresses: Vec::new(),
        mtu: None,
        nameserver: None,
        ecn: "answer",
        fastopen: String::new(),
        fastopen_key: String::new(),
        timestamps: "on",
        min_tso_segs: 2,
        congestion: "cubic",
        slow_start: "hystart++",
        slow_start_after_idle: "on",
        pacing: "auto",
        mtu_probing: "blackhole",
        tail_probes: "on",
        protection: Protection::On,
        record: None,
        keep: Duration::ZERO,
        wait_online: Duration::ZERO,
        check_ip: |_| Ok(()),
        private: true,
        take_over: false,
        arena_len: |peer, _| if peer == ComponentId::TCP { 4096 } else { 0 },
    }
}

/// Kills a child of this process that nobody has reaped, so that its number is still its own.
fn end(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// What one server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    pub domains: BTreeSet<u16>,
    pub far: BTreeSet<u32>,
    pub settings: BTreeMap<String, Vec<u8>>,
    /// The domains of programs' connections.
    pub connections: BTreeMap<u64, Option<u16>>,
    pub neighbours: BTreeSet<ComponentId>,
    pub pools: BTreeSet<u16>,
}

/// The other end of a control socket.
pub struct Played {
    pub peer: ComponentId,
    control: OwnedFd,
    pub knows: Knowledge,
    pid: u32,
    has_arena: bool,
    is_ready: bool,
    has_ended: bool,
}

impl Played {
    /// Takes what it was told, and answers as a server does. True: there was something.
    fn hears(&mut self) -> bool {
        let mut buffer = vec![0; PACKET_MAX];
        let mut heard = false;
        while let Ok((n, _)) = scm::receive(&self.control, &mut buffer, true) {
            if n == 0 {
                // Its supervisor is gone. One that has nobody's memory may take its time.
                if !self.has_arena {
                    end(self.pid);
                }
                self.has_ended = true;
                break;
            }
            heard = true;
            match postcard::from_bytes(&buffer[..n]).unwrap() {
                ToServer::Domain { domain, .. } => {
                    self.knows.domains.insert(domain.0);
                    if self.is_ready {
                        self.says(&FromServer::HasDomain { domain }, &[]);
                    }
                }
                ToServer::DomainClosed { domain } => drop(self.knows.domains.remove(&domain.0)),
                ToServer::Far { slots, .. } => self.knows.far.extend(slots),
                ToServer::DropFar { slot, .. } => drop(self.knows.far.remove(&slot)),
                ToServer::Repeat { domain, slot } => {
                    let fd = memory::create("a far end", 4096).unwrap();
                    self.says(&FromServer::Keep { domain, slot, transport: ComponentId::TCP }, &[&fd]);
                }
                ToServer::Configure { key, value } => drop(self.knows.settings.insert(key, value)),
                ToServer::Connection { id, domain, .. } => {
                    self.knows.connections.insert(id, domain.map(|d| d.0));
                }
                ToServer::Connect { peer } => drop(self.knows.neighbours.insert(peer)),
                ToServer::Disconnect { peer } => drop(self.knows.neighbours.remove(&peer)),
                ToServer::Pool { id, .. } => drop(self.knows.pools.insert(id.0)),
                ToServer::DropPool { id } => drop(self.knows.pools.remove(&id.0)),
                ToServer::Arena => self.has_arena = true,
                ToServer::Run => {
                    self.is_ready = true;
                    self.says(&FromServer::Ready { landlock: false }, &[]);
                    for domain in self.knows.domains.clone() {
                        self.says(&FromServer::HasDomain { domain: DomainId(domain) }, &[]);
                    }
                }
                _ => {}
            }
        }
        heard
    }

    pub fn says(&self, message: &FromServer, fds: &[&OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        // Nobody may listen any more.
        let _ = fuse::without(|| scm::send(&self.control, &encode(message), &fds, true));
    }
}

/// A supervisor, or the lack of one, with what outlives it.
pub struct World {
    /// `None`: it is dead.
    pub supervisor: Option<Supervisor>,
    pub servers: Vec<Played>,
    /// The keeper's end, and what it has.
    keeper: OwnedFd,
    pub entries: Entries,
    /// All processes that were ever started, to be ended.
    processes: Vec<(ComponentId, u32)>,
}

impl World {
    /// A stack at rest, with a program's connection.
    pub fn new() -> World {
        let (ours, keeper) = scm::pair().unwrap();
        let changes = Rc::new(Changes::new().unwrap());
        let mut supervisor = found(Some(Kept::of_predecessor(ours)), None, changes);
        let (mut servers, mut processes) = (Vec::new(), Vec::new());
        for i in 0..supervisor.members.len() {
            let (ours, theirs) = scm::pair().unwrap();
            let child = sleeper();
            processes.push((supervisor.members[i].peer, child.id()));
            supervisor.watch_control(i, &ours).unwrap();
            let m = &mut supervisor.members[i];
            m.control = Some(ours);
            m.child = Some(Rc::new(RefCell::new(Running::Ours(child))));
            m.life = Life::Running;
            let knows = Knowledge::default();
            let (peer, pid) = (m.peer, processes[i].1);
            servers.push(Played {
                peer,
                control: theirs,
                knows,
                pid,
                has_arena: true,
                is_ready: true,
                has_ended: false,
            });
        }
        supervisor.keep_everything();
        let mut world =
            World { supervisor: Some(supervisor), servers, keeper, entries: Entries::new(), processes };
        let connection = memory::create("a connection", 4096).unwrap();
        let role = crate::protocol::Role::Custodian;
        world
            .server(ComponentId::SOCKETS)
            .says(&FromServer::KeepConnection { id: 1, domain: None, role }, &[&connection]);
        world.rest();
        world
    }

    pub fn server(&mut self, peer: ComponentId) -> &mut Played {
        self.servers.iter_mut().find(|played| played.peer == peer).unwrap()
    }

    /// A process that waits to take a server's place, and is told nothing yet.
    pub fn add_standby(&mut self, peer: ComponentId, is_kept: bool) {
        let supervisor = self.supervisor.as_mut().unwrap();
        let i = supervisor.index(peer).unwrap();
        let (ours, theirs) = scm::pair().unwrap();
        let child = sleeper();
        self.processes.push((peer, child.id()));
        let spawned = Spawned { child, controls: vec![ours], stderr: None };
        supervisor.members[i].standby.waiting = Some(Waiting { spawned, program: None, is_kept });
        supervisor.keep_standby(i);
        // Its server is played until then by the one that dies.
        let (knows, pid) = (Knowledge::default(), self.processes[self.processes.len() - 1].1);
        let standby =
            Played { peer, control: theirs, knows, pid, has_arena: false, is_ready: false, has_ended: false };
        self.servers.push(standby);
        self.rest();
    }

    /// A process dies, and its supervisor is told.
    pub fn dies(&mut self, peer: ComponentId) {
        self.servers.remove(self.servers.iter().position(|played| played.peer == peer).unwrap());
        let supervisor = self.supervisor.as_mut().unwrap();
        let i = supervisor.index(peer).unwrap();
        let child = supervisor.members[i].child.clone().unwrap();
        child.borrow_mut().kill();
        while child.borrow().ending().is_none() {
            std::thread::yield_now();
        }
        let ended = children::ended(&mut supervisor.members);
        supervisor.have_died(ended);
    }

    /// Everybody acts until nobody has anything to do.
    pub fn rest(&mut self) {
        loop {
            let supervisor = self.supervisor.as_mut().unwrap();
            for i in 0..supervisor.members.len() {
                supervisor.server_speaks(i);
            }
            supervisor.settle();
            supervisor.members.iter_mut().for_each(|m| m.flush());
            supervisor.end_turn();
            self.hear();
            if !fuse::without(|| self.servers.iter_mut().fold(false, |any, played| played.hears() | any)) {
                return;
            }
        }
    }

    /// The keeper takes what it was told.
    fn hear(&mut self) {
        fuse::without(|| hear(&self.keeper, &mut self.entries));
    }

    /// The supervisor does something, and dies before its nth step, or afterwards. True: it came to the end.
    pub fn dies_within(&mut self, step: u32, what: impl FnOnce(&mut World)) -> bool {
        fuse::set(Some(step));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            what(self);
            self.rest();
        }));
        fuse::set(None);
        let died = outcome.is_err();
        if let Err(why) = outcome
            && !why.is::<fuse::Death>()
        {
            std::panic::resume_unwind(why);
        }
        // Its descriptors are closed, and nothing else happens.
        drop(self.supervisor.take());
        self.hear();
        !died
    }

    /// Another supervisor takes over. Those that are not adopted are left dead.
    pub fn is_succeeded(&mut self) {
        let (ours, keeper) = scm::pair().unwrap();
        let entries = std::mem::take(&mut self.entries);
        for (name, entry) in &entries {
            let fds = entry.fds.iter().map(|fd| fd.try_clone().unwrap()).collect();
            let entry = crate::keeper::Entry { value: entry.value.clone(), fds };
            self.entries.insert(name.clone(), entry);
        }
        self.keeper = keeper;
        let mut inherited = Inheritance::new(entries);
        inherited.adopts = true;
        let changes = changes::of_predecessor(Some(&mut inherited)).unwrap();
        let supervisor = found(Some(Kept::of_predecessor(ours)), Some(inherited), changes);
        self.supervisor = Some(supervisor);
        // Those that were ended hear nothing more.
        let supervisor = self.supervisor.as_mut().unwrap();
        for m in supervisor.members.iter().filter(|m| m.killed_on_purpose) {
            while m.child.as_ref().is_some_and(|child| child.borrow().ending().is_none()) {
                std::thread::yield_now();
            }
        }
        let ended = children::ended(&mut supervisor.members);
        let dead: Vec<ComponentId> = ended.iter().map(|dead| supervisor.members[dead.member].peer).collect();
        for peer in dead {
            let i = supervisor.index(peer).unwrap();
            supervisor.detach(i);
            supervisor.members[i].life = Life::Waiting(eft_base::Instant::ZERO);
        }
        supervisor.tell_the_rest();
        // A process that another test is just starting may still hold the other end of its socket.
        for played in self.servers.iter_mut().filter(|played| !played.is_ready) {
            while !played.has_arena && !played.has_ended {
                played.hears();
                std::thread::yield_now();
            }
        }
        self.rest();
    }

    /// How many processes of a server live, whoever knows of them, once those that were killed are dead.
    pub fn processes(&self, of: ComponentId) -> usize {
        let state = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        };
        let sleeps = |pid: u32| loop {
            match state(pid) {
                Some('S') => return true,
                None | Some('Z' | 'X') => return false,
                _ => std::thread::yield_now(),
            }
        };
        self.processes.iter().filter(|(peer, pid)| *peer == of && sleeps(*pid)).count()
    }

    /// Which servers run on.
    pub fn running(&self) -> BTreeSet<ComponentId> {
        let members = &self.supervisor.as_ref().unwrap().members;
        members.iter().filter(|m| m.child.is_some()).map(|m| m.peer).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.supervisor.take());
        // They are children of this process that nobody has reaped, so these numbers are theirs.
        for (_, pid) in &self.processes {
            end(*pid);
        }
    }
}

fn found(kept: Option<Kept>, mut inherited: Option<Inheritance>, changes: Rc<Changes>) -> Supervisor {
    let config = config();
    let members = members(&config, &mut inherited, &changes).unwrap();
    let nobody = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    let (signals, operators, applications) = (nobody(), nobody(), nobody());
    let founded = Founded { config, members, kept, inherited, changes, signals, operators, applications };
    founded.assemble().unwrap()
}

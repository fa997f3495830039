//! The supervisor: starts, watches, restarts and stops the servers of one stack, and holds every memory segment and
//! descriptor that must outlive one of them.
//!
//! It is kept simple, because everything depends on it: it parses nothing that an application or the network sent,
//! touches no packet, and waits for no other process. The `control` crate makes the decisions.

mod accusations;
mod adoption;
mod autoconf;
mod changes;
mod children;
mod deaths;
mod deathwatch;
mod domains;
mod ending;
mod far_ends;
mod hearing;
mod inheritance;
mod kept;
mod kept_ends;
mod member;
mod neighbours;
mod network;
mod operations;
mod own_code;
mod owners;
mod placement;
mod predecessor;
mod process;
mod ready;
mod regroup;
mod report;
pub mod request;
mod say;
mod scheduling;
mod setup;
mod signals;
mod spares;
mod standby;
mod successors;
mod update;
mod wiring;

#[cfg(test)]
mod tests;

pub use say::News;
pub use setup::{DeviceConfig, StackConfig};

use crate::devices::packet::Silencer;
use crate::protocol::{FromServer, ToServer};
use crate::{Doing, Error, Result};
use children::Dead;
use deathwatch::Deathwatch;
use domains::Keeping;
use eft_base::{Instant, PoolId, Protection, protection};
use eft_control::hang::Hang;
use eft_control::network::Network;
use eft_control::store::Store;
use eft_host::clock;
use eft_messages::ComponentId;
use ending::Ending;
use member::{Life, Member};
use own_code::OwnCode;
use process::Process;
use rustix::event::epoll;
use say::say;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

/// How often it looks for hangs and does delayed work.
const TICK: Duration = Duration::from_millis(50);
/// How long a dead component's pools stay mapped for servers that read them.
const OLD_POOLS: Duration = Duration::from_secs(2);

/// What a descriptor of the epoll set is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watched {
    Signals,
    Deaths,
    Operators,
    Operator(u64),
    Server(usize),
    Keeper,
    LastWords(usize),
    Newcomer,
    /// A process that a predecessor started.
    Adopted(u32),
}

/// A running stack.
pub struct Supervisor {
    config: StackConfig,
    members: Vec<Member>,
    /// Between members: both queues of each edge.
    queues: Vec<accusations::Queue>,
    keeping: Keeping,
    /// The keeper of what must outlive the supervisor; `None` while there is none.
    kept: Option<kept::Kept>,
    /// When another keeper is started.
    keeper_due: Option<Instant>,
    /// Its addresses and routes as they are configured.
    network: Network,
    /// With what interfaces have learnt by themselves.
    in_force: setup::InForce,
    store: Store,
    set: OwnedFd,
    watched: Vec<Option<Watched>>,
    signals: OwnedFd,
    deathwatch: Deathwatch,
    operators: OwnedFd,
    applications: OwnedFd,
    /// For what servers say, one packet at a time.
    packet: Vec<u8>,
    heard_of: hearing::Heard,
    clients: Vec<(u64, OwnedFd)>,
    /// Operators that wait for a server's answer, by its key.
    waiting: Vec<(String, u64)>,
    next_client: u64,
    /// Operators that wait for a component to move.
    moves: Vec<placement::PendingMove>,
    next_ticket: u64,
    update: Option<update::Update>,
    regroup: Option<regroup::Regroup>,
    next_pool: u16,
    spares: spares::Spares,
    /// What neighbours of a newborn are told when it has been told everything itself.
    later: Vec<(ComponentId, ToServer, Vec<Rc<OwnedFd>>)>,
    old_pools: Vec<(Instant, PoolId)>,
    silencers: Vec<Silencer>,
    announced: bool,
    /// Connections of a predecessor's time are here.
    has_inherited: bool,
    ending: Option<Ending>,
    /// Processes that have ended, until there is time to bury them.
    dead: Vec<Process>,
    /// Why the stack ends; set when a component cannot be kept alive.
    last_word: Option<String>,
    changes: Rc<changes::Changes>,
    /// The processes that a predecessor started.
    adopted: Vec<(u32, OwnedFd)>,
}

/// Runs a stack until SIGTERM or SIGINT ends it, or SIGUSR2 hands it over.
pub fn run(config: StackConfig, mut tell: impl FnMut(News)) -> Result<()> {
    if config.protection == Protection::Off {
        protection::switch_off();
    }
    // If it panics it is not dropped, which would undo what keeps connections alive: the next one adopts the servers.
    let mut supervisor = ManuallyDrop::new(setup::build(config)?);
    let outcome = supervisor.run(&mut tell);
    match supervisor.ending {
        // It cannot go on, but its servers can, as if it had been killed.
        None if supervisor.announced || supervisor.has_inherited => return outcome,
        Some(Ending::HandOver) => supervisor.hand_over(),
        Some(Ending::Whole) | None => supervisor.shut_down(),
    }
    drop(ManuallyDrop::into_inner(supervisor));
    outcome
}

impl Supervisor {
    fn run(&mut self, tell: &mut dyn FnMut(News)) -> Result<()> {
        self.keep_everything();
        self.start_all()?;
        // Those that died while there was no supervisor.
        let ended = children::ended(&mut self.members);
        self.have_died(ended);
        let mut next_tick = clock::now() + TICK;
        let mut readiness = Some(ready::begin(&self.config));
        let mut code = OwnCode::new();
        while self.ending.is_none() {
            let wake = self.heard_of.due().map_or(next_tick, |due| due.min(next_tick));
            let what = self.wait(wake.saturating_since(clock::now()))?;
            code.worked(what.len());
            what.into_iter().for_each(|what| self.handle(what));
            self.hear_on();
            if clock::now() >= next_tick {
                next_tick = clock::now() + TICK;
                self.tick();
                code.look()?;
                tell(News::Alive);
            }
            if !self.announced && self.members.iter().all(Member::is_up) {
                self.announced = true;
                self.renew_keeper();
            }
            if readiness.as_mut().is_some_and(|readiness| self.is_ready(readiness)) {
                readiness = None;
                tell(News::Ready);
            }
            self.end_turn();
        }
        match self.last_word.take() {
            Some(word) => Err(Error::System(word)),
            None => Ok(()),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<Vec<Watched>> {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 32];
        let timeout =
            rustix::time::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos() as _ };
        let ready = match epoll::wait(&self.set, &mut events, Some(&timeout)) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(e) => return Err(e).doing("epoll"),
        };
        Ok(ready.iter().filter_map(|e| self.watched.get(e.data.u64() as usize).copied().flatten()).collect())
    }

    /// Adds a descriptor to the set.
    fn watch(&mut self, fd: &impl AsFd, what: Watched) -> Result<()> {
        self.watch_for(fd, what, epoll::EventFlags::IN)
    }

    /// Adds a server's control socket. What sockets says stays there for a while, so only what is new is an event.
    fn watch_control(&mut self, i: usize, control: &OwnedFd) -> Result<()> {
        if self.members[i].peer != ComponentId::SOCKETS {
            return self.watch(control, Watched::Server(i));
        }
        crate::scm::look_on(control).doing("control socket")?;
        self.watch_for(control, Watched::Server(i), epoll::EventFlags::IN | epoll::EventFlags::ET)
    }

    fn watch_for(&mut self, fd: &impl AsFd, what: Watched, events: epoll::EventFlags) -> Result<()> {
        let token = self.watched.iter().position(Option::is_none).unwrap_or(self.watched.len());
        if token == self.watched.len() {
            self.watched.push(None);
        }
        epoll::add(&self.set, fd, epoll::EventData::new_u64(token as u64), events).doing("epoll")?;
        self.watched[token] = Some(what);
        Ok(())
    }

    fn unwatch(&mut self, fd: &impl AsFd, what: Watched) {
        let _ = epoll::delete(&self.set, fd);
        self.watched.iter_mut().filter(|w| **w == Some(what)).for_each(|w| *w = None);
    }

    fn handle(&mut self, what: Watched) {
        match what {
            Watched::Signals => self.take_signals(),
            Watched::Deaths => self.take_deaths(),
            Watched::Operators => {
                if let Ok(fd) = rustix::net::accept_with(&self.operators, rustix::net::SocketFlags::CLOEXEC) {
                    let id = self.next_client;
                    self.next_client += 1;
                    // A client that cannot be watched is closed, and may try again.
                    if self.watch(&fd, Watched::Operator(id)).is_ok() {
                        self.clients.push((id, fd));
                    }
                }
            }
            Watched::Operator(id) => self.operator_speaks(id),
            Watched::Server(i) => self.server_speaks(i),
            Watched::LastWords(i) => self.members[i].read_last_words(),
            Watched::Keeper => self.keeper_ended(),
            Watched::Newcomer => self.newcomer_speaks(),
            Watched::Adopted(pid) => self.adopted_ended(pid),
        }
    }

    fn have_died(&mut self, dead: Vec<Dead>) {
        for Dead { member, how, process } in dead {
            self.deathwatch.forget(process.borrow().id());
            self.dead.push(process);
            self.died(member, how);
        }
    }

    fn heard(&mut self, i: usize, message: FromServer, fds: Vec<OwnedFd>) {
        match message {
            FromServer::Ready { landlock } => {
                self.members[i].landlock = landlock;
                self.members[i].life = Life::Running;
                self.members[i].spare = None;
                self.note_recovery(i);
                self.members[i].ring();
                self.kept.iter_mut().for_each(kept::Kept::flush);
                self.watch_death(self.company(i)[0]);
                self.keep_namespaces(i);
                self.keep_server(i);
                self.give_other_far_ends(i);
                self.tell_of_mapped_domains();
                self.show_member(i);
                self.newcomer_is_up(i);
                self.regrouped_is_up();
                self.ask_again_for_neighbours(i);
            }
            FromServer::Suits { .. } => {}
            FromServer::Converted => {
                if let Some(converted) = self.members[i].spare.take() {
                    let old = self.members[i].arena.replace(converted);
                    self.keep_member(i);
                    self.newcomer_converted(i, old);
                }
            }
            FromServer::Placed { ticket, place, refusal } => self.placed(i, ticket, place, refusal),
            // Only cores decides where components run.
            FromServer::Arrange { places } if self.members[i].peer == ComponentId::CORES => {
                self.arrange(places)
            }
            FromServer::Remember { value } if self.members[i].peer == ComponentId::CORES => {
                self.cores_applied(value)
            }
            FromServer::Arrange { .. } | FromServer::Remember { .. } => {}
            FromServer::Answer { key, value } if self.members[i].peer == ComponentId::CORES => {
                self.cores_answered(&key, &value);
            }
            FromServer::Answer { key, value } => self.answered(self.members[i].peer, &key, value),
            FromServer::HasDomain { domain } => self.domain_mapped(self.members[i].peer, Some(domain)),
            FromServer::Dying { reason } => self.members[i].last_words.push_str(&reason),
            FromServer::Accuse { peer } => self.accused(i, peer, None),
            FromServer::LacksPool { id } => self.lacks_pool(i, id),
            FromServer::AccuseQueue { peer, queue } => self.accused(i, peer, Some(queue)),
            FromServer::Altered => self.altered(i),
            FromServer::Lacks { domain, slot } => self.repeat_far_end(domain, slot),
            // The rest is about applications; only sockets may send it.
            other if self.members[i].peer == ComponentId::SOCKETS => self.heard_of_applications(other, fds),
            _ => {}
        }
    }

    fn tick(&mut self) {
        let now = clock::now();
        for i in 0..self.members.len() {
            if let Life::Waiting(until) = self.members[i].life
                && now >= until
            {
                self.restart(i);
            }
            self.members[i].flush();
            self.members[i].remind();
            if self.members[i].life == Life::Starting {
                self.show_member(i);
            }
            let is_silent = self.members[i].silent_since.is_some_and(|since| now >= since + TICK);
            if is_silent || self.members[i].patience_until.is_some_and(|until| now >= until) {
                self.members[i].kill();
            }
            if let Some(hang) = self.find_hang(i) {
                let what = match hang {
                    Hang::Spinning => "computes without a turn of its loop",
                    Hang::Blocked => "sleeps where it must not",
                };
                say!("eft {}: {} hangs: it {what}; killing it", self.config.name, self.company_name(i));
                let recorded = self.company(i).iter().any(|j| self.members[*j].recorded);
                self.members[i].end_hang(recorded);
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.flush();
            kept.end_old(&self.config.name);
        } else if self.keeper_due.is_some_and(|at| now >= at) {
            self.keeper_due = None;
            self.keep_everything();
        }
        self.check_update(now);
        self.check_regroup(now);
        self.bury_the_dead();
        self.renew_standbys(now);
        if self.announced {
            self.renew_spares();
        }
        self.drop_old_pools(now);
    }

    fn index(&self, peer: ComponentId) -> Option<usize> {
        self.members.iter().position(|m| m.peer == peer)
    }

    fn tell(&mut self, peer: ComponentId, message: &ToServer, fds: &[&OwnedFd]) {
        if let Some(i) = self.index(peer) {
            self.tell_index(i, message, fds);
        }
    }

    fn tell_the_rest(&mut self) {
        for (peer, message, fds) in std::mem::take(&mut self.later) {
            self.tell(peer, &message, &fds.iter().map(|fd| &**fd).collect::<Vec<_>>());
        }
    }

    fn tell_index(&mut self, i: usize, message: &ToServer, fds: &[&OwnedFd]) {
        self.members[i].tell(message, fds);
    }
}

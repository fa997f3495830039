//! The surroundings of sockets: the processes of applications and their descriptors.
//!
//! A process's connection carries its requests. `eft run` made the root connection of a domain; all processes of the
//! domain inherit it, and it carries their hellos. The custodian that `eft run` leaves behind has the connection over
//! which the domain was made (see [`crate::custodian`]). The supervisor, too, gets every descriptor that must outlive a
//! crash of sockets.

mod connection;
mod connections;
mod ends;
mod loopback;
mod survivors;

use super::Surroundings;
use crate::protocol::{FromServer, Role, ToServer};
use crate::{Doing, Result};
use connection::Connection;
use eft_base::errno::EMFILE;
use eft_base::{ComponentId, DomainId, Instances, Instant, PortShare, SocketId};
use eft_channel::socket::{Arena, LAYOUT_VERSION};
use eft_component::Component;
use eft_component::sockets::{ConnectionId, Effect, Event, Handle};
use eft_messages::control::{Reply, op};
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use survivors::Survivors;

/// What a descriptor of the epoll set is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Watched {
    Listener,
    Connection(ConnectionId),
    Far(SocketId),
    /// A far end that showed HUP while its descriptor did not seem to be closed.
    HungUp(SocketId),
    Loopback {
        socket: SocketId,
        second: bool,
    },
}

/// The far end of a descriptor.
struct Far {
    fd: OwnedFd,
    /// [`UNWATCHED`] until its close is waited for.
    token: u64,
    /// The transport that owns the socket.
    transport: ComponentId,
}

struct Domain {
    arena: Arena,
    arena_fd: OwnedFd,
    bell: OwnedFd,
}

impl Domain {
    /// The reply that describes the domain.
    fn described(&self, domain: DomainId) -> Reply {
        let geometry = self.arena.geometry();
        Reply {
            version: LAYOUT_VERSION,
            value: domain.0 as u64,
            args: [
                geometry.slots as u32,
                geometry.send_len as u32,
                geometry.receive_len as u32,
                domain.0 as u32,
            ],
            ..Reply::default()
        }
    }
}

/// The applications of a stack.
pub struct Applications {
    control: OwnedFd,
    set: OwnedFd,
    listener: Option<OwnedFd>,
    status_pages: Vec<OwnedFd>,
    /// How many instances of each transport the stack has.
    instances: Instances,
    watched: HashMap<u64, Watched>,
    next_token: u64,
    next_connection: u64,
    connections: HashMap<ConnectionId, Connection>,
    custodians: HashMap<DomainId, ConnectionId>,
    domains: HashMap<DomainId, Domain>,
    far: HashMap<SocketId, Far>,
    /// Far ends from before a crash that are not in the set yet, in the order in which they came.
    unwatched: VecDeque<SocketId>,
    /// Programs' connections from before a crash that were not read to their end yet. What was said there of a slot's next socket
    /// comes before the far end of its last one is looked at, which would close the next one.
    unread: Vec<(ConnectionId, Option<DomainId>)>,
    survivors: Survivors,
    loopback: HashMap<(SocketId, bool), (OwnedFd, u64)>,
    handles: HashMap<Handle, OwnedFd>,
    next_handle: u64,
    /// Connections whose first packet is being carried out in this turn, and is still in the socket.
    unfinished: Vec<ConnectionId>,
    /// Those that ended in this turn.
    ended: Vec<ConnectionId>,
    /// Those whose first packet was carried out in the last turn: there may be more.
    finished: Vec<ConnectionId>,
}

/// The token of no descriptor.
const UNWATCHED: u64 = 0;
/// Far ends put into the set in one turn: a successor is given all of them at once, and each costs a system call.
const WATCHED_PER_TURN: usize = 64;
/// The most packets taken from one connection in a turn, so that none starves the others.
const PACKETS_PER_TURN: usize = 32;

impl Applications {
    pub fn new(control: &OwnedFd, generation: u32) -> Result<Applications> {
        Ok(Applications {
            control: control.try_clone().doing("control socket")?,
            set: epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?,
            listener: None,
            status_pages: Vec::new(),
            instances: Instances::default(),
            watched: HashMap::new(),
            next_token: 1,
            next_connection: (generation as u64) << 32,
            connections: HashMap::new(),
            custodians: HashMap::new(),
            domains: HashMap::new(),
            far: HashMap::new(),
            unwatched: VecDeque::new(),
            unread: Vec::new(),
            survivors: Survivors::default(),
            loopback: HashMap::new(),
            handles: HashMap::new(),
            next_handle: 1,
            unfinished: Vec::new(),
            ended: Vec::new(),
            finished: Vec::new(),
        })
    }

    fn watch(&mut self, fd: BorrowedFd<'_>, what: Watched, events: epoll::EventFlags) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        if epoll::add(&self.set, fd, epoll::EventData::new_u64(token), events).is_ok() {
            self.watched.insert(token, what);
        }
        token
    }

    fn unwatch(&mut self, fd: &OwnedFd, token: u64) {
        let _ = epoll::delete(&self.set, fd);
        self.watched.remove(&token);
    }

    /// The supervisor's answer to NewDomain; without `domain` there are too many.
    fn domain_given(&mut self, id: ConnectionId, domain: Option<DomainId>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        // A supervisor that adopts this server may tell it once more.
        if domain.is_some() && connection.domain == domain {
            return;
        }
        let sequence = connection.asked;
        connection.domain = domain;
        let given = domain.and_then(|f| Some((f, self.domains.get(&f)?)));
        let Some((domain, state)) = given else {
            let refused = Reply { version: LAYOUT_VERSION, errno: EMFILE, sequence, ..Reply::default() };
            return self.reply(id, refused, &[]);
        };
        let all = [&state.arena_fd, &state.bell];
        let Ok(fds) = all.into_iter().map(OwnedFd::try_clone).collect::<std::io::Result<Vec<_>>>() else {
            return;
        };
        let reply = Reply { sequence, ..state.described(domain) };
        self.custodians.insert(domain, id);
        self.reply(id, reply, &fds);
    }

    /// Sends a domain's custodian a request to repeat later, with the descriptor that belongs to it. A custodian that
    /// does not read loses the note: that socket ends with the stack.
    fn note(&mut self, socket: SocketId, note: Reply) {
        if self.survivors.hold(socket, note) {
            return;
        }
        let Some(custodian) = self.custodians.get(&socket.domain) else { return };
        let with = match note.value as u32 {
            op::LISTEN => self.loopback.get(&(socket, false)).map(|(fd, _)| fd),
            op::SHADOW => self.loopback.get(&(socket, note.args[0] == 1)).map(|(fd, _)| fd),
            _ => self.far.get(&socket).map(|far| &far.fd),
        };
        let with: Vec<OwnedFd> = with.and_then(|fd| fd.try_clone().ok()).into_iter().collect();
        self.reply(*custodian, note, &with);
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { connection, reply } => self.reply(connection, reply, &[]),
            Effect::Keep { socket, transport, handle } => {
                if let Some(fd) = self.handles.remove(&handle) {
                    self.keep(socket, transport, fd);
                }
            }
            Effect::KeepBeside { socket, transport, of } => self.keep_beside(socket, transport, of),
            Effect::Owner { socket, transport, handle } => {
                if let Some(bell) = self.handles.remove(&handle) {
                    let SocketId { domain, slot } = socket;
                    super::tell(&self.control, &FromServer::KeepOwner { domain, slot, transport }, &[&bell]);
                }
            }
            Effect::Leave(socket) => self.drop_socket(socket),
            Effect::Drop(socket) => {
                self.drop_socket(socket);
                let dropped = FromServer::Drop { domain: socket.domain, slot: socket.slot };
                super::tell(&self.control, &dropped, &[]);
            }
            Effect::Discard(handle) => drop(self.handles.remove(&handle)),
            Effect::WatchLoopback { socket, handle } => {
                if let Some(fd) = self.handles.remove(&handle) {
                    self.keep_loopback(socket, false, fd);
                }
            }
            Effect::Shadow { socket, second, handle, connection, reply } => {
                let brought = self.handles.remove(&handle);
                self.shadow((socket, second), brought, connection, reply);
            }
            Effect::Note { socket, note } => self.note(socket, note),
            Effect::DomainGone(domain) => {
                super::tell(&self.control, &FromServer::CloseDomain { domain }, &[])
            }
        }
    }
}

impl<C: Component<Event = Event, Effect = Effect>> Surroundings<C> for Applications {
    fn perform(&mut self, effect: Effect) {
        self.carry_out(effect);
    }

    fn poll(&mut self, ready: bool, emit: &mut dyn FnMut(Event)) {
        self.watch_some();
        for id in std::mem::take(&mut self.finished) {
            self.read_connection(id, emit);
        }
        if !ready {
            return;
        }
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 64];
        let zero = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let tokens: Vec<u64> = match epoll::wait(&self.set, &mut events, Some(&zero)) {
            Ok((ready, _)) => ready.iter().map(|e| e.data.u64()).collect(),
            Err(_) => return,
        };
        for token in tokens {
            match self.watched.get(&token).copied() {
                Some(Watched::Listener) => self.accept(),
                Some(Watched::Connection(id)) => self.read_connection(id, emit),
                Some(Watched::Far(socket) | Watched::HungUp(socket)) if self.is_closed(socket) => {
                    emit(Event::Closed(socket))
                }
                Some(Watched::Far(socket)) => self.watch_again(socket, token),
                Some(Watched::HungUp(_)) => {}
                Some(Watched::Loopback { socket, second }) => self.loopback_ready(socket, second),
                None => {}
            }
        }
    }

    fn end_turn(&mut self) -> Option<Instant> {
        self.finish_requests();
        self.forget_ended();
        None
    }

    fn pending(&self) -> bool {
        !self.unwatched.is_empty() || !self.finished.is_empty()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.set.as_fd()]
    }

    fn domain_opened(&mut self, domain: DomainId, arena: &Arena, fd: OwnedFd, bell: Option<OwnedFd>) {
        let Some(bell) = bell else { return };
        self.domains.insert(domain, Domain { arena: arena.clone(), arena_fd: fd, bell });
    }

    fn domain_closed(&mut self, domain: DomainId) {
        self.domains.remove(&domain);
        self.survivors.forget_domain(domain);
        let sockets: Vec<SocketId> = self.far.keys().filter(|s| s.domain == domain).copied().collect();
        sockets.into_iter().for_each(|socket| self.drop_socket(socket));
    }

    fn configure(&mut self, key: &str, value: &[u8]) {
        if key == PortShare::KEY {
            self.instances = Instances::among(value);
        }
    }

    fn control(&mut self, message: ToServer, fds: Vec<OwnedFd>, emit: &mut dyn FnMut(Event)) {
        let mut fds = fds.into_iter();
        match message {
            ToServer::Listener => {
                if let Some(fd) = fds.next() {
                    self.watch(fd.as_fd(), Watched::Listener, epoll::EventFlags::IN);
                    self.listener = Some(fd);
                    self.status_pages = fds.collect();
                }
            }
            ToServer::Connection { id, domain, role } => match fds.next() {
                Some(fd) => {
                    let id = ConnectionId(id);
                    if let (Role::Custodian, Some(domain)) = (role, domain) {
                        self.custodians.insert(domain, id);
                    }
                    // What it told a predecessor is not known.
                    let may_hold = role == Role::Process;
                    self.add_connection(id, Connection { may_hold, ..Connection::new(fd, domain, role) });
                    if role == Role::Process {
                        self.unread.push((id, domain));
                        self.finished.push(id);
                    }
                }
                None => self.domain_given(ConnectionId(id), domain),
            },
            ToServer::Far { domain, slots, transport } => {
                let sockets = slots.into_iter().map(|slot| SocketId { domain, slot });
                self.take_far_ends(sockets, transport, fds.collect(), emit);
            }
            ToServer::Repeat { domain, slot } => self.keep_again(SocketId { domain, slot }),
            ToServer::Loopback { domain, slot, second } => {
                if let Some(fd) = fds.next() {
                    self.watch_loopback(SocketId { domain, slot }, second, fd);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

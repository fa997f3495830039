//! Connections of programs: accepting, reading and answering them.

use super::connection::Connection;
use super::{Applications, Domain, PACKETS_PER_TURN, Watched};
use crate::protocol::{ArenaShape, FromServer, Role};
use crate::scm;
use eft_base::errno::{EPERM, EPROTONOSUPPORT};
use eft_base::{DomainId, SocketId};
use eft_channel::socket::{self, LAYOUT_VERSION};
use eft_component::sockets::{ConnectionId, Event, Handle};
use eft_messages::control::{REQUEST_LEN, Reply, Request, op};
use rustix::event::epoll;
use std::os::fd::{AsFd, OwnedFd};
use zerocopy::{FromBytes, IntoBytes};

impl Applications {
    pub(super) fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        let Ok(fd) = rustix::net::accept_with(listener, rustix::net::SocketFlags::CLOEXEC) else { return };
        self.adopt(fd, None, Role::Custodian);
    }

    /// Takes a new connection, and gives the supervisor a duplicate.
    fn adopt(&mut self, fd: OwnedFd, domain: Option<DomainId>, role: Role) -> ConnectionId {
        self.next_connection += 1;
        let id = ConnectionId(self.next_connection);
        crate::serve::tell(&self.control, &FromServer::KeepConnection { id: id.0, domain, role }, &[&fd]);
        // The kernel names the sender of each request: a program may have given up its privilege since it connected.
        let _ = rustix::net::sockopt::set_socket_passcred(&fd, true);
        self.add_connection(id, Connection::new(fd, domain, role));
        id
    }

    pub(super) fn add_connection(&mut self, id: ConnectionId, connection: Connection) {
        self.watch(connection.fd.as_fd(), Watched::Connection(id), connection.events());
        self.connections.insert(id, connection);
    }

    pub(super) fn read_connection(&mut self, id: ConnectionId, emit: &mut dyn FnMut(Event)) {
        // Its first packet is being carried out.
        if self.unfinished.contains(&id) {
            return;
        }
        for _ in 0..PACKETS_PER_TURN {
            let Some(connection) = self.connections.get(&id) else { return };
            let mut bytes = [0u8; REQUEST_LEN + 1];
            match scm::peek_with_sender(&connection.fd, &mut bytes) {
                Ok((REQUEST_LEN, fds, sender)) => {
                    let Ok(request) = Request::read_from_bytes(&bytes[..REQUEST_LEN]) else { return };
                    let privileged = sender.is_some_and(|sender| sender.uid.is_root());
                    // A program asks again for what it does not get an answer to. This has none: it stays in the socket, and
                    // the next ones behind it, until it has been carried out.
                    let is_told_once = request.op == op::ACCEPTED;
                    if !is_told_once {
                        let _ = scm::take_out(&connection.fd);
                    }
                    self.request(id, request, privileged, fds, emit);
                    if is_told_once {
                        self.unfinished.push(id);
                        return;
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return self.unread.retain(|(unread, _)| *unread != id),
                // The process is gone, or it does not speak this protocol: nothing useful can follow.
                Ok(_) | Err(_) => {
                    self.drop_connection(id, emit);
                    return;
                }
            }
        }
        // Nothing else tells that there is more.
        self.finished.push(id);
    }

    /// What was requested has been carried out: a successor need not read it.
    pub(super) fn finish_requests(&mut self) {
        for id in std::mem::take(&mut self.unfinished) {
            if let Some(connection) = self.connections.get(&id) {
                let _ = scm::take_out(&connection.fd);
                self.finished.push(id);
            }
        }
    }

    fn request(
        &mut self,
        id: ConnectionId,
        request: Request,
        privileged: bool,
        fds: Vec<OwnedFd>,
        emit: &mut dyn FnMut(Event),
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if socket::speaks(request.version) {
            connection.version = request.version;
        }
        let mut fds = fds.into_iter();
        match (request.op, connection.role, connection.domain) {
            (op::NEW_DOMAIN, Role::Custodian, None) if socket::speaks(request.version) => {
                connection.asked = request.sequence;
                let [slots, send_len, receive_len, _] = request.args.map(|n| n as usize);
                let shape = ArenaShape { slots, send_len, receive_len };
                let brought: Vec<OwnedFd> = fds.take(2).collect();
                let brought: Vec<&OwnedFd> = brought.iter().collect();
                crate::serve::tell(&self.control, &FromServer::NewDomain { id: id.0, shape }, &brought);
            }
            (op::ROOT, Role::Custodian, Some(domain)) => {
                if let Some(fd) = fds.next() {
                    self.adopt(fd, Some(domain), Role::Root);
                }
            }
            (op::HELLO, Role::Root, Some(domain)) => {
                if let Some(fd) = fds.next() {
                    self.hello(fd, domain, &request);
                }
            }
            (op::HELLO | op::NEW_DOMAIN | op::ROOT, ..) | (op::RESTORE, Role::Root | Role::Process, _) => {
                let errno = if socket::speaks(request.version) { EPERM } else { EPROTONOSUPPORT };
                self.reply(
                    id,
                    Reply { version: LAYOUT_VERSION, errno, sequence: request.sequence, ..Reply::default() },
                    &[],
                );
            }
            (op::HOLD, Role::Process, Some(_)) => {
                connection.may_hold = true;
                let (version, sequence) = (LAYOUT_VERSION, request.sequence);
                self.reply(id, Reply { version, sequence, value: id.0, ..Reply::default() }, &[]);
            }
            (_, _, Some(domain)) => {
                let handle = match fds.next() {
                    Some(fd) => {
                        let handle = Handle(self.next_handle);
                        self.next_handle += 1;
                        self.handles.insert(handle, fd);
                        handle
                    }
                    None => Handle::default(),
                };
                // A program that closed a listener asks for its shadow, to be sure that it is gone. The event of that
                // far end may come later than this one: a connection that was read a moment ago is still in the
                // kernel's list.
                let socket = SocketId { domain, slot: request.slot };
                if request.op == op::SHADOW && self.is_closed(socket) {
                    emit(Event::Closed(socket));
                }
                emit(Event::Request { connection: id, domain, privileged, request, handle });
            }
            (_, _, None) => {
                self.reply(
                    id,
                    Reply {
                        version: LAYOUT_VERSION,
                        errno: EPERM,
                        sequence: request.sequence,
                        ..Reply::default()
                    },
                    &[],
                );
            }
        }
    }

    /// A process of a domain says hello and brings one end of its own connection.
    fn hello(&mut self, fd: OwnedFd, domain: DomainId, request: &Request) {
        let id = self.adopt(fd, Some(domain), Role::Process);
        let speaks = socket::speaks(request.version);
        if let Some(connection) = self.connections.get_mut(&id).filter(|_| speaks) {
            connection.version = request.version;
        }
        let instances = [eft_base::Role::Tcp, eft_base::Role::Udp].map(|role| self.instances.of(role));
        let known = speaks && (request.args[..2] == [1, 1] || instances.iter().all(|count| *count < 2));
        let Some(state) = self.domains.get(&domain) else { return };
        let reply = Reply {
            errno: if known { 0 } else { EPROTONOSUPPORT },
            sequence: request.sequence,
            instances,
            ..state.described(domain)
        };
        let all = [&state.arena_fd, &state.bell].into_iter().chain(&self.status_pages);
        let Ok(fds) = all.map(OwnedFd::try_clone).collect::<std::io::Result<Vec<_>>>() else { return };
        self.reply(id, reply, if known { &fds } else { &[] });
    }

    /// Answers in the version in which the program asked: it accepts no other.
    pub(super) fn reply(&self, id: ConnectionId, reply: Reply, fds: &[OwnedFd]) {
        if let Some(connection) = self.connections.get(&id) {
            let reply = Reply { version: connection.version, ..reply };
            let fds: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
            // An application that does not read its replies loses them, and nothing else.
            let _ = scm::send(&connection.fd, reply.as_bytes(), &fds, true);
        }
    }

    fn drop_connection(&mut self, id: ConnectionId, emit: &mut dyn FnMut(Event)) {
        let Some(connection) = self.connections.remove(&id) else { return };
        let _ = epoll::delete(&self.set, &connection.fd);
        self.watched.retain(|_, w| *w != Watched::Connection(id));
        self.unread.retain(|(unread, _)| *unread != id);
        self.ended.push(id);
        match (connection.role, connection.domain) {
            (Role::Process, Some(domain)) if connection.may_hold => self.release_held(id, domain, emit),
            (Role::Root, Some(domain)) => emit(Event::DomainClosed(domain)),
            (Role::Custodian, Some(domain)) => drop(self.custodians.remove(&domain)),
            _ => {}
        }
    }

    /// Closes the connections that a process has left behind which it held without descriptors.
    fn release_held(&self, id: ConnectionId, domain: DomainId, emit: &mut dyn FnMut(Event)) {
        let Some(Domain { arena, .. }) = self.domains.get(&domain) else { return };
        for slot in 0..arena.touched() {
            if arena.socket(slot).is_some_and(|page| page.holder() == Some(id.0)) {
                emit(Event::Released(SocketId { domain, slot }));
            }
        }
    }

    /// At the end of a turn: what these connections have left behind is in order, so a successor need not see their ends again.
    pub(super) fn forget_ended(&mut self) {
        for id in self.ended.drain(..) {
            crate::serve::tell(&self.control, &FromServer::DropConnection { id: id.0 }, &[]);
        }
    }
}

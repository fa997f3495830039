//! Listeners beside a program's listener: where a port's connections are spread over several instances of tcp, each instance has one.
//!
//! They are opened, bound and made to listen when the first one listens, one after the other; then the program gets its answer. They
//! have its descriptor, and end with it. The first one's page names them, so a successor of this server finds them when the program
//! asks again.

use super::{Out, Sockets, Waiting, answers};
use alloc::vec::Vec;
use eft_base::errno::{ECONNABORTED, ENOBUFS, EOPNOTSUPP};
use eft_base::{DomainId, SocketId, WireAddress};
use eft_channel::socket::{INSTANCES_MAX, SocketPage};
use eft_component::Outbox;
use eft_component::sockets::{ConnectionId, Effect};
use eft_messages::sockets::{BESIDE, SocketsToTransport, TransportToSockets, reuse};
use eft_messages::{ComponentId, Role};

/// What a program asked for that listens on a spread port, and how far it is.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    pub connection: ConnectionId,
    pub sequence: u64,
    /// The program's socket and its incarnation, and what it is bound to.
    pub first: (SocketId, u32),
    pub address: WireAddress,
    pub port: u16,
    pub reuse: u8,
    pub backlog: u32,
    /// Instances before this one have a listener.
    pub instance: u8,
}

impl Sockets {
    pub(super) fn page(&self, socket: SocketId) -> Option<SocketPage> {
        self.domains.get(&socket.domain)?.arena.socket(socket.slot)
    }

    pub(super) fn check_listen(&self, transport: ComponentId, socket: SocketId) -> Result<(), i32> {
        if transport.role != Role::Tcp {
            return Err(EOPNOTSUPP);
        }
        let listeners = self.domains.get(&socket.domain).map(|domain| &domain.listeners);
        let is_new = listeners.is_some_and(|l| !l.contains(&socket.slot));
        match is_new && listeners.is_some_and(|l| l.len() >= self.config.listeners_per_domain) {
            true => Err(ENOBUFS),
            false => Ok(()),
        }
    }

    /// Whether this incarnation of a program's socket has its descriptor still.
    fn is_open(&self, (socket, incarnation): (SocketId, u32)) -> bool {
        let open = self.open.get(&(socket.domain, socket.slot));
        open.is_some_and(|open| open.incarnation == Some(incarnation))
    }

    /// The listeners beside a program's socket: each one's slot, owner and incarnation. Programs can write what the pages say; what
    /// is no further listener of this descriptor ends the list.
    pub(super) fn beside(
        &mut self,
        first: SocketId,
        out: &mut Outbox<Out>,
    ) -> Vec<(SocketId, ComponentId, u32)> {
        let mut all = Vec::new();
        if self.spread.instances.of(Role::Tcp) < 2 {
            return all;
        }
        let Some(page) = self.page(first) else { return all };
        let mut last = page.clone();
        while let Some(slot) = last.beside().filter(|_| all.len() < INSTANCES_MAX) {
            let socket = SocketId { slot, ..first };
            self.examine(socket, out);
            let open = self.open.get(&(socket.domain, socket.slot)).copied();
            let known = open.and_then(|open| Some((open.transport, open.incarnation?, self.page(socket)?)));
            let Some((transport, incarnation, next)) = known.filter(|(.., next)| next.is_beside(&page))
            else {
                last.set_beside(None);
                break;
            };
            all.push((socket, transport, incarnation));
            last = next;
        }
        all
    }

    /// A program's socket listens, with these wishes and this backlog: now the others are to.
    pub(super) fn begin_beside(
        &mut self,
        (connection, sequence): (ConnectionId, u64),
        (first, (address, port)): ((SocketId, u32), (WireAddress, u16)),
        (reuse, backlog): (u8, u32),
        out: &mut Outbox<Out>,
    ) {
        let listen = Beside { connection, sequence, first, address, port, reuse, backlog, instance: 0 };
        self.listen_beside(listen, out);
    }

    /// Makes the next instance listen, or answers the program.
    fn listen_beside(&mut self, listen: Beside, out: &mut Outbox<Out>) {
        let (first, _) = listen.first;
        let own = self.open.get(&(first.domain, first.slot)).map(|open| open.transport);
        let is_next =
            |t: &&ComponentId| t.role == Role::Tcp && t.instance >= listen.instance && Some(**t) != own;
        let Some(&transport) = self.transports.iter().find(is_next) else {
            return self.say_listening(&listen, 0, out);
        };
        let listen = Beside { instance: transport.instance, ..listen };
        match self.beside(first, out).into_iter().find(|(_, owner, _)| *owner == transport) {
            Some((socket, _, incarnation)) => self.bind_beside(listen, transport, (socket, incarnation), out),
            None => self.open_beside(listen, transport, first.domain, out),
        }
    }

    fn open_beside(
        &mut self,
        listen: Beside,
        transport: ComponentId,
        domain: DomainId,
        out: &mut Outbox<Out>,
    ) {
        let build = |request| SocketsToTransport::Open { request, socket: SocketId { domain, slot: 0 } };
        self.submit(transport, Waiting::Beside(listen), build, out);
    }

    fn bind_beside(
        &mut self,
        listen: Beside,
        transport: ComponentId,
        (socket, incarnation): (SocketId, u32),
        out: &mut Outbox<Out>,
    ) {
        let Beside { address, port, .. } = listen;
        // The stack may have lost the address since.
        let reuse = listen.reuse & reuse::ALL & !reuse::NEW | reuse::ELSEWHERE | reuse::FREE_BIND;
        let build = |request| SocketsToTransport::Bind { request, socket, incarnation, address, port, reuse };
        self.submit(transport, Waiting::Beside(listen), build, out);
    }

    /// A transport has answered a step.
    pub(super) fn stepped_beside(
        &mut self,
        listen: Beside,
        (transport, message): (ComponentId, &SocketsToTransport),
        answer: TransportToSockets,
        out: &mut Outbox<Out>,
    ) {
        let TransportToSockets::Reply { errno, socket, incarnation, .. } = answer;
        let is_open = self.is_open(listen.first);
        if errno != 0 || !is_open {
            if errno == 0 && matches!(message, SocketsToTransport::Open { .. }) {
                let build = |request| SocketsToTransport::Close { request, socket, incarnation };
                self.submit(transport, Waiting::Close(incarnation), build, out);
            }
            let why = if errno != 0 { errno } else { ECONNABORTED };
            return self.say_listening(&listen, why, out);
        }
        match message {
            SocketsToTransport::Open { .. } => {
                self.join(listen.first.0, transport, (socket, incarnation), out);
                self.bind_beside(listen, transport, (socket, incarnation), out);
            }
            SocketsToTransport::Bind { .. } => {
                let backlog = listen.backlog | BESIDE;
                let build = |request| SocketsToTransport::Listen { request, socket, incarnation, backlog };
                self.submit(transport, Waiting::Beside(listen), build, out);
            }
            _ => self.listen_beside(Beside { instance: listen.instance + 1, ..listen }, out),
        }
    }

    /// A new socket gets the descriptor of a program's listener, and its options.
    fn join(
        &mut self,
        first: SocketId,
        transport: ComponentId,
        (socket, incarnation): (SocketId, u32),
        out: &mut Outbox<Out>,
    ) {
        let (Some(page), Some(further)) = (self.page(first), self.page(socket)) else { return };
        further.join(&page);
        further.agree_with(&page);
        further.set_beside(page.beside());
        page.set_beside(Some(socket.slot));
        self.holds(transport, socket, incarnation);
        out.push(Out::Effect(Effect::KeepBeside { socket, transport, of: first }));
    }

    fn say_listening(&self, listen: &Beside, errno: i32, out: &mut Outbox<Out>) {
        let Beside { connection, sequence, first: (SocketId { slot, .. }, _), address, port, .. } = *listen;
        let reply = answers::reply(errno, sequence, slot, (address, port));
        out.push(Out::Effect(Effect::Reply { connection, reply }));
    }
}

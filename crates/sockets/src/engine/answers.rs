//! Answers of transports.

use super::{Open, Out, Sockets, Waiting};
use eft_base::errno::*;
use eft_base::{SocketId, WireAddress};
use eft_channel::socket::LAYOUT_VERSION;
use eft_component::sockets::{ConnectionId, Effect, Handle};
use eft_component::{Context, Outbox};
use eft_messages::control::{Reply, Request, op};
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::{ComponentId, Role};

impl Sockets {
    /// The shadow of one of the domain's sockets: all the domain's processes may ask for it. It is
    /// added to datagram sockets only, since a listener brings its own along, but for the second one of a listener.
    pub(super) fn shadow(
        &mut self,
        connection: ConnectionId,
        transport: ComponentId,
        socket: SocketId,
        r: &Request,
        handle: Handle,
        out: &mut Outbox<Out>,
    ) -> Result<(), i32> {
        let second = r.args[0] == 1;
        let listens =
            || self.domains.get(&socket.domain).is_some_and(|domain| domain.listeners.contains(&socket.slot));
        let takes = if second { listens() } else { transport.role == Role::Udp };
        if handle != Handle::default() && !takes {
            return Err(EOPNOTSUPP);
        }
        out.push(Out::Effect(Effect::Shadow { socket, second, handle, connection, reply: done(r) }));
        Ok(())
    }

    /// An application took a connection from a listener's ring: its descriptor's far end is kept at
    /// once, so that the transport can mirror readiness into it.
    pub(super) fn accepted(
        &mut self,
        transport: ComponentId,
        socket: SocketId,
        r: &Request,
        handle: Handle,
        out: &mut Outbox<Out>,
    ) {
        if let Some(page) = self.domains.get(&socket.domain).and_then(|f| f.arena.socket(socket.slot)) {
            page.set_inode(r.value);
        }
        self.keep(transport, socket, r.args[0], handle, out);
    }

    /// A socket has a descriptor. Whatever is under way for the slot's last socket does not concern it.
    pub(super) fn holds(&mut self, transport: ComponentId, socket: SocketId, incarnation: u32) {
        self.open.insert((socket.domain, socket.slot), Open { transport, incarnation: Some(incarnation) });
        self.unclosed.remove(&socket);
        self.closing.remove(&socket);
    }

    fn keep(
        &mut self,
        transport: ComponentId,
        socket: SocketId,
        incarnation: u32,
        handle: Handle,
        out: &mut Outbox<Out>,
    ) {
        self.holds(transport, socket, incarnation);
        out.push(Out::Effect(Effect::Keep { socket, transport, handle }));
    }

    /// The transport's answer to an attach. If the connection is gone, its descriptor has no socket and is hung up, unless the
    /// slot has its next socket already. It is closed, too: the transport may have refused something else, and would keep it.
    fn attached(
        &mut self,
        cx: &mut Context,
        socket: SocketId,
        incarnation: u32,
        errno: i32,
        out: &mut Outbox<Out>,
    ) {
        self.examine(socket, out);
        let open = self.open.get(&(socket.domain, socket.slot));
        if errno != 0 && open.is_some_and(|open| open.incarnation == Some(incarnation)) {
            self.closed(cx, socket, out);
        }
    }

    pub(super) fn answer(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        message: TransportToSockets,
        out: &mut Outbox<Out>,
    ) {
        let Some(pending) = self.take_answered(cx, from, &message, out) else { return };
        let TransportToSockets::Reply { errno, socket, incarnation, address, port, taken, .. } = message;
        let (connection, sequence, op, inode, handle, reuse) = match pending.waiting {
            Waiting::Application { connection, sequence, op, inode, handle, reuse } => {
                (connection, sequence, op, inode, handle, reuse)
            }
            Waiting::Beside(listen) => {
                return self.stepped_beside(listen, (pending.transport, &pending.message), message, out);
            }
            Waiting::Attach(incarnation) => return self.attached(cx, socket, incarnation, errno, out),
            Waiting::DomainEnd(domain) => return self.domain_ended(domain, out),
            Waiting::Close(incarnation) => {
                // An answer to a request of one socket names it (`belief`).
                return self.has_closed(socket, incarnation, out);
            }
        };
        let domain = socket.domain;
        match (op, errno) {
            // Sockets of a domain that ended meanwhile are not kept: `CloseDomain` closes them.
            (op::OPEN | op::RESTORE, 0) if self.domains.contains_key(&domain) => {
                if let Some(page) = self.domains.get(&domain).and_then(|f| f.arena.socket(socket.slot)) {
                    page.set_inode(inode);
                }
                self.keep(pending.transport, socket, incarnation, handle, out);
            }
            (op::LISTEN, 0) => {
                if let Some(f) = self.domains.get_mut(&domain) {
                    f.listeners.insert(socket.slot);
                }
                if handle != Handle::default() {
                    out.push(Out::Effect(Effect::WatchLoopback { socket, handle }));
                }
            }
            _ => {
                if handle != Handle::default() {
                    out.push(Out::Effect(Effect::Discard(handle)));
                }
            }
        }
        if errno == 0
            && let Some(note) = note(pending.transport, &pending.message, address, port)
        {
            out.push(Out::Effect(Effect::Note { socket, note }));
        }
        if errno == 0
            && let SocketsToTransport::Listen { backlog, .. } = pending.message
            && self.spread.instances.spreads(Role::Tcp, port)
        {
            let of = ((socket, incarnation), (address, port));
            return self.begin_beside((connection, sequence), of, (reuse, backlog), out);
        }
        let value = if op == op::CONNECT { taken.into() } else { 0 };
        let reply = Reply { value, ..reply(errno, sequence, socket.slot, (address, port)) };
        out.push(Out::Effect(Effect::Reply { connection, reply }));
    }
}

/// An answer about a socket that is bound to this address and port.
pub(super) fn reply(errno: i32, sequence: u64, slot: u32, (address, port): (WireAddress, u16)) -> Reply {
    Reply { version: LAYOUT_VERSION, errno, sequence, slot, port, address, ..Reply::default() }
}

/// The stream has got an owner.
pub(super) fn owner(
    connection: ConnectionId,
    transport: ComponentId,
    socket: SocketId,
    r: &Request,
    handle: Handle,
    out: &mut Outbox<Out>,
) -> Result<(), i32> {
    if transport.role != Role::Tcp {
        return Err(EOPNOTSUPP);
    }
    out.push(Out::Effect(Effect::Owner { socket, transport, handle }));
    out.push(Out::Effect(Effect::Reply { connection, reply: done(r) }));
    Ok(())
}

/// The answer to a request that is carried out.
fn done(r: &Request) -> Reply {
    Reply { version: LAYOUT_VERSION, sequence: r.sequence, slot: r.slot, ..Reply::default() }
}

/// Informs a domain's custodian of a successful request; `address` and `port` are what the socket is
/// bound to now. TCP connects are left out: a connection ends with its stack.
fn note(
    transport: ComponentId,
    request: &SocketsToTransport,
    address: WireAddress,
    port: u16,
) -> Option<Reply> {
    let (operation, socket, address, port, args) = match *request {
        SocketsToTransport::Bind { socket, incarnation, reuse, .. } => {
            (op::BIND, socket, address, port, [reuse as u32, 0, 0, incarnation])
        }
        SocketsToTransport::Listen { socket, incarnation, backlog, .. } => {
            (op::LISTEN, socket, address, port, [backlog, 0, 0, incarnation])
        }
        SocketsToTransport::Connect { socket, incarnation, address: to, port: to_port, .. }
            if transport.role == Role::Udp =>
        {
            (op::CONNECT, socket, to, to_port, [0, port as u32, 0, incarnation])
        }
        _ => return None,
    };
    let value = operation as u64;
    Some(Reply { version: LAYOUT_VERSION, slot: socket.slot, value, address, port, args, ..Reply::default() })
}

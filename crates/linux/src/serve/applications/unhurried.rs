//! Connections that a program accepted a moment ago, and of which nobody else needs to know yet.
//!
//! Most connections are short. As long as no thread waits in the kernel for the descriptor of one, its transport can do without
//! the far end: it wakes threads on the socket's page. So the supervisor and the transport get far ends some milliseconds
//! later, and of those that are closed by then they are told nothing. Meanwhile the program's packet stays in the socket on which
//! it came, of which the supervisor has a duplicate: a successor reads it again, with the far end. The packets behind it are looked
//! at (SO_PEEK_OFF).

use super::connection::Connection;
use super::{Applications, Far};
use crate::protocol::{FromServer, Role};
use crate::scm;
use eft_base::{Instant, SocketId};
use eft_component::sockets::ConnectionId;
use eft_host::clock;
use eft_messages::control::{REQUEST_LEN, Request, op};
use std::time::Duration;

/// How long packets stay. A thread that sleeps on the page goes to the kernel later than that (`crates/shim/src/sleeping.rs`).
const PATIENCE: Duration = Duration::from_millis(10);
/// How many packets of one program stay.
pub(super) const STAY_MAX: usize = 64;

impl Connection {
    /// Whether what is told may stay in the socket.
    pub(super) fn may_stay(&self, request: &Request) -> bool {
        self.looks_on
            && self.role == Role::Process
            && self.domain.is_some()
            && request.op == op::ACCEPTED
            && request.args[1] == 1
    }
}

impl Applications {
    /// A packet of this connection stays in the socket.
    pub(super) fn stays(&mut self, id: ConnectionId, slot: u32) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(domain) = connection.domain else { return };
        connection.staying.push_back(SocketId { domain, slot });
        self.settle_at.get_or_insert_with(|| clock::now() + PATIENCE);
    }

    /// Gives far ends of the first packets that stay to those who need them now, and takes the packets out.
    pub(super) fn settle(&mut self, id: ConnectionId, count: usize) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let count = count.min(connection.staying.len());
        if count == 0 {
            return;
        }
        let some: Vec<SocketId> = connection.staying.drain(..count).collect();
        some.into_iter().for_each(|socket| self.hand_over(socket));
        if let Some(connection) = self.connections.get(&id) {
            scm::take_out_some(&connection.fd, count);
            let _ = scm::look_behind(&connection.fd, connection.staying.len() * REQUEST_LEN);
        }
    }

    pub(super) fn settle_all(&mut self) {
        self.settle_at = None;
        let stay =
            |(id, connection): (&ConnectionId, &Connection)| (!connection.staying.is_empty()).then_some(*id);
        let all: Vec<ConnectionId> = self.connections.iter().filter_map(stay).collect();
        all.into_iter().for_each(|id| self.settle(id, STAY_MAX));
    }

    /// The same if the oldest has stayed for long enough.
    pub(super) fn settle_in_time(&mut self) {
        if self.settle_at.is_some_and(|at: Instant| clock::now() >= at) {
            self.settle_all();
        }
    }

    /// Gives a far end that only this server has to the supervisor, which passes it on to the transport.
    pub(super) fn hand_over(&mut self, socket: SocketId) {
        if let Some(far) = self.far.get_mut(&socket).filter(|far| !far.kept) {
            far.kept = true;
            let Far { fd, transport, .. } = far;
            let SocketId { domain, slot } = socket;
            let keep = FromServer::Keep { domain, slot, transport: *transport };
            crate::serve::tell(&self.control, &keep, &[fd]);
        }
    }
}

//! The stack's programs: what they read and write, and what their tcp has not seen of it.

use eft_base::SocketId;
use eft_channel::socket::SocketPage;
use eft_component::transport::Effect as Told;

use super::load::{Load, REQUEST_BYTES};
use crate::batch::servers::{Server, TCPS};
use crate::node::Effect;
use crate::stack::Stack;
use crate::timed::charge::component;

#[derive(Clone, Copy, Debug)]
struct Connection {
    socket: SocketId,
    tcp: Server,
    /// Bytes that were written and that no turn of tcp has begun with.
    unseen: u64,
    /// Bytes of an unfinished request, and of answers that are not written.
    asked: u64,
    owed: u64,
    /// It waits for room in its ring.
    waits: bool,
    /// It is about to act.
    is_told: bool,
}

/// What no turn of tcp has begun with yet.
#[derive(Clone, Copy, Debug)]
struct Change {
    connection: usize,
    bytes: u64,
}

pub struct Programs {
    load: Load,
    write_bytes: u64,
    all: Vec<Connection>,
    /// Of each instance of tcp.
    changes: [Vec<Change>; TCPS.len()],
    pub read_bytes: u64,
}

fn page(stack: &Stack, socket: SocketId) -> Option<SocketPage> {
    stack.domain.socket(socket.slot)
}

/// Whether a ring has so much room that a program that waits is told.
pub fn is_worth_a_write(page: &SocketPage, free: u64) -> bool {
    free * 3 >= page.send_limit() as u64
}

impl Programs {
    /// `sockets`: each with its tcp.
    pub fn new(load: Load, write_bytes: u64, sockets: &[(SocketId, Server)]) -> Self {
        let connection = |(socket, tcp): &(SocketId, Server)| Connection {
            socket: *socket,
            tcp: *tcp,
            unseen: 0,
            asked: 0,
            owed: 0,
            waits: false,
            is_told: false,
        };
        Self {
            load,
            write_bytes,
            all: sockets.iter().map(connection).collect(),
            changes: Default::default(),
            read_bytes: 0,
        }
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// How many connections each of so many instances of tcp has.
    pub fn spread(&self, instances: usize) -> Vec<u64> {
        let of = |tcp: Server| self.all.iter().filter(|connection| connection.tcp == tcp).count() as u64;
        TCPS[..instances].iter().map(|tcp| of(*tcp)).collect()
    }

    fn changes_of(&self, tcp: Server) -> &[Change] {
        TCPS.iter().position(|known| *known == tcp).map_or(&[], |instance| &self.changes[instance])
    }

    /// What a turn of this tcp begins with: changes, and the connections that they are of, whose pages it looks at once.
    pub fn unseen(&self, tcp: Server) -> (usize, usize) {
        let changes = self.changes_of(tcp);
        let mut connections: Vec<usize> = changes.iter().map(|change| change.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        (changes.len(), connections.len())
    }

    /// A turn of this tcp sees the first so many changes: they are in the pages when it is executed.
    pub fn show(&mut self, stack: &Stack, tcp: Server, count: usize) {
        let Some(instance) = TCPS.iter().position(|known| *known == tcp) else { return };
        for change in self.changes[instance].drain(..count) {
            let connection = &mut self.all[change.connection];
            connection.unseen -= change.bytes;
            let Some(page) = page(stack, connection.socket) else { continue };
            page.set_send_end(page.send_end() + change.bytes);
            if let Some(peer) = component(tcp) {
                stack.domain.dirty(peer).mark(connection.socket.slot as usize);
            }
        }
    }

    /// A program reads all that has come, and writes what it has to. True: it writes again after a while.
    pub fn act(&mut self, stack: &mut Stack, number: usize) -> bool {
        let connection = &mut self.all[number];
        connection.is_told = false;
        let Some(page) = page(stack, connection.socket) else { return false };
        let count = page.receivable() as u64;
        let taken = page.receive_taken() + count;
        page.set_receive_taken(taken);
        self.read_bytes += count;
        let due = match self.load {
            Load::Out => self.write_bytes,
            Load::In => 0,
            Load::Requests => {
                let asked = connection.asked + count;
                connection.asked = asked % REQUEST_BYTES;
                connection.owed + asked - connection.asked
            }
        };
        let put = due.min((page.sendable() as u64).saturating_sub(connection.unseen));
        connection.owed = if self.load == Load::Requests { due - put } else { 0 };
        connection.unseen += put;
        connection.waits = put < due;
        if connection.waits {
            page.write_plug().set();
        }
        let goes_on = self.load == Load::Out && !connection.waits;
        if put > 0 || (count > 0 && taken >= page.receive_notify()) {
            let tcp = connection.tcp;
            if let Some(instance) = TCPS.iter().position(|known| *known == tcp) {
                self.changes[instance].push(Change { connection: number, bytes: put });
            }
            component(tcp).into_iter().for_each(|peer| stack.wake(peer));
        }
        self.all[number].is_told = goes_on;
        goes_on
    }

    /// What tcp tells at the end of its turn; returns the programs that act now.
    pub fn hear(&mut self, stack: &Stack, effects: &[Effect]) -> Vec<usize> {
        let mut told = Vec::new();
        for effect in effects {
            let (socket, has_room) = match effect {
                Effect::Transport(Told::Readable(socket)) => (*socket, false),
                Effect::Transport(Told::Writable(socket)) => (*socket, true),
                _ => continue,
            };
            let Some(number) = self.all.iter().position(|connection| connection.socket == socket) else {
                continue;
            };
            let connection = &mut self.all[number];
            // It may have filled the ring while tcp's turn went on.
            if has_room && !(connection.waits && connection.has_room(stack)) {
                continue;
            }
            if !std::mem::replace(&mut connection.is_told, true) {
                told.push(number);
            }
        }
        told
    }
}

impl Connection {
    /// Whether its ring has room for a program that waits, which then waits no more.
    fn has_room(&mut self, stack: &Stack) -> bool {
        let Some(page) = page(stack, self.socket) else { return false };
        let free = (page.sendable() as u64).saturating_sub(self.unseen);
        let has_room = is_worth_a_write(&page, free);
        if has_room {
            page.write_plug().clear();
            self.waits = false;
        }
        has_room
    }
}

//! The peer's host: a stack whose turns take no time, and programs on it that send, read, or ask and wait for answers.

use std::collections::VecDeque;

use eft_base::{Instant, SocketId};
use eft_channel::socket::SocketPage;

use super::load::{Load, REQUEST_BYTES};
use super::programs::is_worth_a_write;
use crate::application::ring;
use crate::device::WireFrame;
use crate::timed::peer::Peer;

#[derive(Clone, Copy, Debug)]
struct Connection {
    socket: SocketId,
    has_begun: bool,
    /// Of the present answer.
    has: u64,
}

pub struct Host {
    pub(super) load: Load,
    pub(super) peer: Peer,
    all: Vec<Connection>,
    pub read_bytes: u64,
    pub answers: u64,
}

impl Host {
    pub fn new(load: Load, peer: Peer, sockets: &[SocketId]) -> Self {
        let connection = |socket: &SocketId| Connection { socket: *socket, has_begun: false, has: 0 };
        Self { load, peer, all: sockets.iter().map(connection).collect(), read_bytes: 0, answers: 0 }
    }

    /// A connection's program sends its first bytes.
    pub fn begin(&mut self, number: usize) {
        let connection = &mut self.all[number];
        connection.has_begun = true;
        let socket = connection.socket;
        if let Some(page) = self.peer.stack.domain.socket(socket.slot)
            && self.load == Load::Requests
        {
            write(&page, REQUEST_BYTES);
            ring(&mut self.peer.stack, socket.slot);
        }
    }

    /// Everybody runs until all wait. Returns the frames sent.
    pub fn run(&mut self, now: Instant) -> VecDeque<WireFrame> {
        let mut sent = VecDeque::new();
        self.peer.begin();
        loop {
            let worked = self.peer.turns(now, &mut sent);
            self.peer.stack.effects.clear();
            let acted = (0..self.all.len()).fold(false, |acted, number| self.act(number) | acted);
            if !worked && !acted {
                return sent;
            }
        }
    }

    /// A program looks at its page. True: its tcp must be told.
    fn act(&mut self, number: usize) -> bool {
        let connection = &mut self.all[number];
        let Some(page) = self.peer.stack.domain.socket(connection.socket.slot) else { return false };
        let count = page.receivable() as u64;
        let taken = page.receive_taken() + count;
        let mut tells = false;
        if count > 0 {
            page.set_receive_taken(taken);
            self.read_bytes += count;
            tells = taken >= page.receive_notify();
        }
        match self.load {
            Load::Out => {}
            Load::In => {
                let free = page.sendable() as u64;
                let writes = connection.has_begun && is_worth_a_write(&page, free);
                if writes {
                    write(&page, free);
                }
                tells |= writes;
            }
            Load::Requests => {
                let has = connection.has + count;
                connection.has = has % REQUEST_BYTES;
                let answers = has / REQUEST_BYTES;
                self.answers += answers;
                write(&page, answers * REQUEST_BYTES);
                tells |= answers > 0;
            }
        }
        if tells {
            let slot = connection.socket.slot;
            ring(&mut self.peer.stack, slot);
        }
        tells
    }
}

/// Nobody reads what the bytes are.
fn write(page: &SocketPage, bytes: u64) {
    page.set_send_end(page.send_end() + bytes);
}

//! Programs that send as fast as they can, and the syscall server between them and tcp, where there is one.

use std::collections::{BTreeSet, VecDeque};

use eft_base::SocketId;
use eft_messages::ComponentId;

use crate::stack::Stack;

/// What waits for the syscall server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Write { stream: usize },
    Written { stream: usize },
}

pub struct Programs {
    sockets: Vec<SocketId>,
    write_bytes: u64,
    /// Of each stream, bytes of a write that are not in the ring yet.
    left: Vec<u64>,
    pub calls: VecDeque<Call>,
    /// Writes that no turn of tcp has begun with yet.
    pub unseen: Vec<Written>,
}

/// What a program gives to tcp at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub stream: usize,
    pub bytes: u64,
    /// The program's write ends with it.
    pub is_over: bool,
}

impl Programs {
    pub fn new(sockets: Vec<SocketId>, write_bytes: u64) -> Self {
        let left = vec![0; sockets.len()];
        Self { sockets, write_bytes, left, calls: VecDeque::new(), unseen: Vec::new() }
    }

    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    pub fn stream_of(&self, socket: SocketId) -> Option<usize> {
        self.sockets.iter().position(|s| *s == socket)
    }

    /// A stream's next write; true if there is room for all of it.
    pub fn write(&mut self, stack: &mut Stack, stream: usize) -> bool {
        if self.left[stream] == 0 {
            self.left[stream] = self.write_bytes;
        }
        self.go_on(stack, stream)
    }

    /// A write that waits for room goes on; true if that was the rest of it.
    pub fn go_on(&mut self, stack: &mut Stack, stream: usize) -> bool {
        let Some(page) = stack.domain.socket(self.sockets[stream].slot) else { return false };
        let unseen: u64 = self.unseen.iter().filter(|w| w.stream == stream).map(|w| w.bytes).sum();
        let bytes = self.left[stream].min((page.sendable() as u64).saturating_sub(unseen));
        self.left[stream] -= bytes;
        let is_over = self.left[stream] == 0;
        if bytes > 0 {
            self.unseen.push(Written { stream, bytes, is_over });
        }
        if !is_over {
            page.write_plug().set();
        }
        stack.wake(ComponentId::TCP);
        is_over
    }

    /// A turn of tcp sees the first so many writes: they are in the rings when it is executed.
    pub fn show(&mut self, stack: &Stack, count: usize) -> Vec<Written> {
        let seen: Vec<Written> = self.unseen.drain(..count).collect();
        for written in &seen {
            let slot = self.sockets[written.stream].slot;
            if let Some(page) = stack.domain.socket(slot) {
                page.set_send_end(page.send_end() + written.bytes);
            }
            stack.domain.dirty(ComponentId::TCP).mark(slot as usize);
        }
        seen
    }

    pub fn unplug(&self, stack: &Stack, stream: usize) {
        if let Some(page) = stack.domain.socket(self.sockets[stream].slot) {
            page.write_plug().clear();
        }
    }

    pub fn is_waiting(&self, stream: usize) -> bool {
        self.left[stream] > 0
    }

    /// How many streams the first `count` writes belong to: tcp handles each stream once.
    pub fn marks(&self, count: usize) -> usize {
        let streams = self.unseen[..count].iter().map(|written| written.stream);
        streams.collect::<BTreeSet<usize>>().len()
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self, stack: &Stack) -> u64 {
        let pages = self.sockets.iter().filter_map(|socket| stack.domain.socket(socket.slot));
        pages.map(|page| page.send_released()).sum()
    }
}

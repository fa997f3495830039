//! Programs that send as fast as they can, and the syscall server between them and tcp, where there is one.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use eft_base::SocketId;
use eft_harness::byte_at;
use eft_messages::ComponentId;

use crate::stack::Stack;

/// What waits for the syscall server: streams.
#[derive(Default)]
pub struct Calls {
    /// Of programs.
    pub writes: VecDeque<usize>,
    /// Answers of tcp.
    pub written: VecDeque<usize>,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.written.is_empty()
    }
}

pub struct Programs {
    sockets: Vec<SocketId>,
    write_bytes: u64,
    /// Writes come by calls, and tcp copies what it has room for when it takes one; else programs fill rings themselves.
    by_call: bool,
    /// Of each stream, bytes of a write that are not in the ring yet.
    left: Vec<u64>,
    pub calls: Calls,
    /// Writes that no turn of tcp has begun with yet.
    pub unseen: Vec<Written>,
    /// Rings get content, which the peer can compare.
    pub with_content: bool,
}

/// What a stream's bytes are at these places.
pub fn content(of: Range<u64>) -> Vec<u8> {
    of.map(|offset| byte_at(0, offset)).collect()
}

/// What a program gives to tcp at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub stream: usize,
    /// Of a ring: how much was put into it.
    bytes: u64,
    /// The program's write ends with it.
    pub is_over: bool,
}

impl Programs {
    pub fn new(sockets: Vec<SocketId>, write_bytes: u64, by_call: bool) -> Self {
        let left = vec![0; sockets.len()];
        Self {
            sockets,
            write_bytes,
            by_call,
            left,
            calls: Calls::default(),
            unseen: Vec::new(),
            with_content: false,
        }
    }

    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    pub fn stream_of(&self, socket: SocketId) -> Option<usize> {
        self.sockets.iter().position(|s| *s == socket)
    }

    /// A stream's next write; true if all of it is in the ring.
    pub fn write(&mut self, stack: &mut Stack, stream: usize) -> bool {
        if self.left[stream] == 0 {
            self.left[stream] = self.write_bytes;
        }
        self.go_on(stack, stream)
    }

    /// A write that waits for room goes on; true if that was the rest of it.
    pub fn go_on(&mut self, stack: &mut Stack, stream: usize) -> bool {
        let (count, unseen) = self.unseen(stream);
        let bytes = if self.by_call { 0 } else { self.room(stack, stream, unseen) };
        let is_over = !self.by_call && self.put(stack, stream, bytes);
        // tcp may tell of room twice before it goes on with a call.
        if bytes > 0 || (self.by_call && count == 0) {
            self.unseen.push(Written { stream, bytes, is_over });
        }
        stack.wake(ComponentId::TCP);
        is_over
    }

    /// A stream's writes that no turn of tcp has begun with, and their bytes.
    fn unseen(&self, stream: usize) -> (usize, u64) {
        let unseen = self.unseen.iter().filter(|w| w.stream == stream);
        unseen.fold((0, 0), |(count, bytes), w| (count + 1, bytes + w.bytes))
    }

    /// Whether a stream's ring has room for a program that waits, when tcp's turn ends: the program may have filled it while
    /// the turn went on, which tcp sees and the page does not show yet.
    pub fn has_room(&self, stack: &Stack, stream: usize) -> bool {
        let Some(page) = stack.domain.socket(self.sockets[stream].slot) else { return false };
        let free = (page.sendable() as u64).saturating_sub(self.unseen(stream).1);
        free * 3 >= page.send_limit() as u64
    }

    /// How much of a stream's write its ring has room for, beside so many bytes that are to be put there.
    fn room(&self, stack: &Stack, stream: usize, unseen: u64) -> u64 {
        let page = stack.domain.socket(self.sockets[stream].slot);
        let free = page.map_or(0, |page| page.sendable() as u64);
        self.left[stream].min(free.saturating_sub(unseen))
    }

    /// So much of a write has a place; true if that was the rest. The program waits for room for what is left.
    fn put(&mut self, stack: &Stack, stream: usize, bytes: u64) -> bool {
        self.left[stream] -= bytes;
        let is_over = self.left[stream] == 0;
        if !is_over && let Some(page) = stack.domain.socket(self.sockets[stream].slot) {
            page.write_plug().set();
        }
        is_over
    }

    /// Bytes of the first `count` writes, as a turn that begins now finds them.
    pub fn bytes(&self, stack: &Stack, count: usize) -> u64 {
        let of = |written: &Written| match self.by_call {
            true => self.room(stack, written.stream, 0),
            false => written.bytes,
        };
        self.unseen[..count].iter().map(of).sum()
    }

    /// A turn of tcp sees the first so many writes: they are in the rings when it is executed.
    pub fn show(&mut self, stack: &Stack, count: usize) -> Vec<Written> {
        let mut seen: Vec<Written> = self.unseen.drain(..count).collect();
        for written in &mut seen {
            if self.by_call {
                written.bytes = self.room(stack, written.stream, 0);
                written.is_over = self.put(stack, written.stream, written.bytes);
            }
            let slot = self.sockets[written.stream].slot;
            if let Some(page) = stack.domain.socket(slot) {
                let end = page.send_end() + written.bytes;
                if self.with_content {
                    page.write_send(page.send_end(), &content(page.send_end()..end));
                }
                page.set_send_end(end);
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

//! Input that threads are woken for (`eft_channel::sleepers`), or that marks tell of (`eft_channel::lookers`), instead of a token.
//!
//! A thread that is woken may not take its input after all: it died, or its call was interrupted. Nor may a program that looks at
//! marks: it may be computing, or gone. So what was handed over is kept for a moment, and if the input is still there then, it gets its token. The threads of one process that are handed input
//! in one turn wake each other, each the next, so that the turn costs one call. Where one of them stops, the same check helps the
//! others.

use crate::futex;
use eft_base::{DomainId, Instant, SocketId};
use eft_channel::lookers::Told;
use eft_channel::sleepers::Tag;
use eft_channel::socket::{Arena, SocketPage};
use std::collections::VecDeque;
use std::time::Duration;

/// How long a woken thread may need.
const PATIENCE: Duration = Duration::from_millis(2);

struct Entry {
    socket: SocketId,
    /// The end of the input.
    end: u64,
    at: Instant,
}

/// What was handed over.
#[derive(Default)]
pub struct Handed {
    /// In this turn: sockets, the processes of their readers, and the ends of their input.
    turn: Vec<(SocketId, Tag, u64)>,
    /// In this turn: sockets with marks, and the ends of their input.
    marked: Vec<(SocketId, u64)>,
    /// Before, in order.
    before: VecDeque<Entry>,
}

impl Handed {
    /// True: a thread sleeps on the page, takes the input, and is woken at the end of the turn.
    pub fn take_over(&mut self, socket: SocketId, page: &SocketPage) -> bool {
        let Some(reader) = page.sleepers().reader().filter(|_| is_only_input(page)) else { return false };
        self.turn.push((socket, reader, page.receive_end()));
        true
    }

    /// Marks the input if a program looks at marks.
    pub fn tell(&mut self, socket: SocketId, page: &SocketPage, arena: &Arena) -> Told {
        let looker = super::looker_of(page, arena).filter(|_| is_only_input(page));
        let told = looker.map_or(Told::Absent, |looker| page.tell(socket.slot, looker));
        if told == Told::Marked {
            self.marked.push((socket, page.receive_end()));
        }
        told
    }

    pub fn is_idle(&self) -> bool {
        self.turn.is_empty() && self.marked.is_empty() && self.before.is_empty()
    }

    /// Wakes the threads of this turn. Returns the number of calls.
    pub fn wake<'a>(
        &mut self,
        page_of: impl Fn(SocketId) -> Option<&'a SocketPage>,
        now: impl Fn() -> Instant,
    ) -> u64 {
        if self.turn.is_empty() && self.marked.is_empty() {
            return 0;
        }
        let at = now();
        self.before.extend(self.marked.drain(..).map(|(socket, end)| Entry { socket, end, at }));
        // For each process, whom the next thread is to wake; backwards, so that each is known to sleep.
        let mut heads: Vec<(DomainId, Tag, u32)> = Vec::new();
        for (socket, reader, end) in self.turn.drain(..).rev() {
            let Some(page) = page_of(socket) else { continue };
            let head = heads.iter_mut().find(|(domain, tag, _)| (*domain, *tag) == (socket.domain, reader));
            let handed = page.sleepers().hand(reader, head.as_ref().map(|(.., slot)| *slot));
            if handed {
                match head {
                    Some((.., slot)) => *slot = socket.slot,
                    None => heads.push((socket.domain, reader, socket.slot)),
                }
            }
            // Also of one that woke by itself: it may have been interrupted.
            self.before.push_back(Entry { socket, end, at });
        }
        for (domain, _, slot) in &heads {
            if let Some(page) = page_of(SocketId { domain: *domain, slot: *slot }) {
                futex::wake(page.sleepers().word());
            }
        }
        heads.len() as u64
    }

    /// Forgets the oldest as far as they were taken, or were told of to one that asked for edges.
    pub fn forget_taken<'a>(&mut self, page_of: impl Fn(SocketId) -> Option<&'a SocketPage>) {
        while let Some(entry) = self.before.front()
            && page_of(entry.socket)
                .is_none_or(|page| page.receive_taken() >= entry.end || page.is_told(entry.end))
        {
            self.before.pop_front();
        }
    }

    /// When the oldest is overdue.
    pub fn deadline(&self) -> Option<Instant> {
        self.before.front().map(|entry| entry.at + PATIENCE)
    }

    /// A socket whose input should have been taken by now.
    pub fn overdue(&mut self, now: impl Fn() -> Instant) -> Option<SocketId> {
        if self.deadline()? > now() {
            return None;
        }
        self.before.pop_front().map(|entry| entry.socket)
    }
}

/// What is no input must show at the descriptor.
fn is_only_input(page: &SocketPage) -> bool {
    page.receivable() > 0 && !page.has_more_to_report()
}

#[cfg(test)]
mod tests;

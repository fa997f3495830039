//! The tables of connections: blocks given out and taken back, and connections by their addresses.

use super::Tcp;
use crate::tcp::block::Tuple;
use crate::tcp::counters::Counter;
use crate::tcp::durable;
use eft_base::{Protection, SocketId};
use eft_component::Context;

impl Tcp {
    /// Takes a free block; if there is none and no room for more, evicts the oldest TIME-WAIT.
    pub(in crate::tcp) fn allocate(&mut self, cx: &Context) -> Option<u32> {
        if self.free.is_empty() && !self.grow() {
            self.evict_time_wait(cx);
        }
        let Some(i) = self.free.take() else {
            cx.count(Counter::DropNoBlock);
            return None;
        };
        self.connection(i).begin();
        self.gauge_blocks(cx);
        Some(i)
    }

    /// Adds free blocks; false if there is no more room.
    fn grow(&mut self) -> bool {
        let more = durable::grow(&mut self.arena, &mut self.blocks, &mut self.cold, &mut self.notes);
        let count = more.end as usize;
        self.live.grow(count);
        self.timers.grow(count);
        let grown = !more.is_empty();
        self.free.grow(more);
        grown
    }

    /// What has changed counts from now on.
    pub(super) fn commit_tables(&mut self) {
        if self.protection == Protection::Off {
            return;
        }
        self.blocks.seal();
        self.cold.seal();
        self.notes.seal();
        self.docket.clear();
        self.arena.commit();
    }

    /// Off: no turn is committed any more. What lies in the arena is that of now until it changes, and worthless then.
    pub(super) fn set_protection(&mut self, protection: Protection) {
        if protection == Protection::Off {
            self.commit_tables();
            self.docket.stop();
            self.protection = Protection::Off;
            self.blocks.leave_open();
            self.cold.leave_open();
            self.notes.leave_open();
        }
    }

    pub(in crate::tcp) fn gauge_blocks(&self, cx: &Context) {
        cx.gauge(Counter::Blocks, self.free.used() as u64);
    }

    pub(in crate::tcp) fn gauge_open(&self, cx: &Context) {
        cx.gauge(Counter::Open, self.open);
    }

    /// Counts a connection as closed, even if it is remembered in TIME-WAIT.
    pub(in crate::tcp) fn count_end(&mut self, cx: &Context, i: u32) {
        if core::mem::take(&mut self.connection(i).live.open) {
            self.open -= 1;
            cx.count(Counter::Closed);
            self.gauge_open(cx);
        }
    }

    pub(in crate::tcp) fn socket(&self, i: u32) -> SocketId {
        self.view(i).socket()
    }

    /// The connection that a tuple belongs to.
    pub(in crate::tcp) fn find(&mut self, tuple: &Tuple) -> Option<u32> {
        match self.last {
            Some((t, i)) if t == *tuple => Some(i),
            _ => {
                let i = *self.table.get(tuple)?;
                self.last = Some((*tuple, i));
                Some(i)
            }
        }
    }

    pub(in crate::tcp) fn forget_tuple(&mut self, tuple: &Tuple) {
        self.table.remove(tuple);
        self.last = None;
    }
}

//! One connection as its mechanisms see it: the durable block together with the state derived from it.
//!
//! A mechanism that concerns one connection alone is a method of [`Connection`]; what needs the engine's tables, or
//! ends a connection, is one of [`Tcp`], knows connections by their index, and reads one through its [`View`].

use super::block::{Block, Cold, State};
use super::engine::Tcp;
use super::live::{Live, due};
use super::out_of_order::OutOfOrder;
use super::reassembly::Reassembly;
use crate::timers::Timers;
use crate::turns::Turns;
use eft_arena::Item;
use eft_base::SocketId;

pub(super) struct Connection<'a> {
    /// Its place in the engine's tables.
    pub index: u32,
    pub block: Item<'a, Block>,
    pub cold: Item<'a, Cold>,
    pub notes: Item<'a, Reassembly>,
    pub live: &'a mut Live,
    turns: &'a mut Turns,
    timers: &'a mut Timers,
}

/// A read-only connection, while the engine's tables are read, too.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub block: &'a Block,
    pub cold: &'a Cold,
    pub live: &'a Live,
}

impl Tcp {
    pub(super) fn view(&self, index: u32) -> View<'_> {
        View { block: &self.blocks[index], cold: &self.cold[index], live: &self.live[index as usize] }
    }

    /// A connection's block alone, where nothing else of it is read.
    #[inline]
    pub(super) fn block(&self, index: u32) -> &Block {
        &self.blocks[index]
    }

    pub(super) fn connection(&mut self, index: u32) -> Connection<'_> {
        self.connection_and_scratch(index).0
    }

    /// A connection, and the buffer in which a segment's payload may lie ([`super::segment::Payload`]).
    pub(super) fn connection_and_scratch(&mut self, index: u32) -> (Connection<'_>, &[u8]) {
        let connection = Connection {
            index,
            block: self.blocks.item(index),
            cold: self.cold.item(index),
            notes: self.notes.item(index),
            live: &mut self.live[index as usize],
            turns: &mut self.turns,
            timers: &mut self.timers,
        };
        (connection, &self.scratch)
    }
}

impl View<'_> {
    pub fn socket(&self) -> SocketId {
        SocketId { domain: self.block.domain, slot: self.block.slot }
    }

    /// Whether its block still has this generation.
    pub fn is_use(&self, generation: u32) -> bool {
        self.block.generation == generation
    }

    /// Whether it is in TIME-WAIT and still has this generation.
    pub fn waits_since(&self, generation: u32) -> bool {
        self.is_use(generation) && self.block.state() == State::TimeWait
    }
}

impl Connection<'_> {
    /// A read-only view.
    pub fn view(&self) -> View<'_> {
        View { block: &self.block, cold: &self.cold, live: self.live }
    }

    pub fn socket(&self) -> SocketId {
        self.view().socket()
    }

    /// Makes the block unused.
    pub fn clear(&mut self) {
        let generation = self.block.generation.wrapping_add(1);
        *self.block = Block::free(generation);
        *self.cold = Cold::free();
        self.live.out_of_order = OutOfOrder::default();
        self.keep_notes();
    }

    /// Makes the part of [`Live::out_of_order`] durable that a crash must not lose, if it changed.
    pub fn keep_notes(&mut self) {
        let ranges = self.live.out_of_order.ranges();
        if !self.notes.keeps(ranges) {
            self.notes.keep(ranges);
        }
    }

    /// Begins another use of the block: a socket without connection.
    pub fn begin(&mut self) {
        self.clear();
        self.block.set_state(State::Closed);
        *self.live = Live::new();
    }

    /// Marks work as due; `flush` does it.
    pub fn mark(&mut self, bits: u32) {
        self.live.due |= bits;
        self.turns.push(self.index);
    }

    /// Marks input, of which programs are told in the order in which it came.
    pub fn mark_input(&mut self, bits: u32) {
        if !self.live.is_due(due::READABLE) {
            self.turns.push_last(self.index);
        }
        self.mark(bits);
    }

    /// Sets the connection's entry among the timers.
    pub fn rearm(&mut self) {
        let at = self.live.deadline(self.cold.close_at);
        self.timers.arm(self.index, at);
    }
}

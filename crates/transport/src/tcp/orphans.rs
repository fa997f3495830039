//! The connections that a closed listener leaves behind: those that no program has taken are reset, some in each turn.
//!
//! Until the last one is, the listener keeps its block, so that a successor goes on. No connection is added to them, so one round
//! through all blocks finds them, whichever block it begins with: one walk serves all closed listeners.

use super::block::{NONE, State, bit};
use super::connection::View;
use super::engine::Tcp;
use crate::turns::PER_TURN;
use eft_arena::docket::Kind;
use eft_base::errno::ECONNABORTED;
use eft_component::Context;

/// Blocks that are looked at in one turn: to see that one is no such connection takes little.
const LOOKS_PER_TURN: usize = 16 * PER_TURN;

/// How a connection of a closed listener ends.
enum Fate {
    Discarded,
    Abandoned,
}

impl View<'_> {
    /// A listener that is closed and has, or may have, connections that are to be reset.
    pub(super) fn is_parting(&self) -> bool {
        self.block.state() == State::Closed && self.cold.backlog != 0
    }
}

impl Tcp {
    /// A listener is closed: from now on its connections that were not taken are reset.
    pub(super) fn leave_children(&mut self, listener: u32) {
        self.connection(listener).waiting();
        self.leave_children_again(listener);
    }

    /// Goes on with the resets for a closed listener from before the crash, as soon as its page is mapped again.
    pub(super) fn leave_children_again(&mut self, listener: u32) {
        self.orphans.add((listener, self.block(listener).generation));
    }

    /// Whether a block is a connection of a closed listener that is still to be reset.
    pub(super) fn is_to_be_orphaned(&self, i: u32) -> bool {
        self.fate(i).is_some()
    }

    fn fate(&self, i: u32) -> Option<Fate> {
        let View { block, cold, .. } = self.view(i);
        if cold.listener == NONE || cold.listener as usize >= self.blocks.len() {
            return None;
        }
        let parent = self.view(cold.listener);
        if !parent.is_parting() || !parent.is_use(cold.listener_generation) {
            return None;
        }
        match block.state() {
            State::SynReceived if block.slot == NONE => Some(Fate::Discarded),
            // Taken from the ring but not attached yet: the application has it.
            _ if block.has(bit::QUEUED) && cold.accept_at >= parent.block.rcv_taken => Some(Fate::Abandoned),
            _ => None,
        }
    }

    /// Resets the next connections of closed listeners.
    pub(super) fn orphan_some(&mut self, cx: &Context) {
        if self.orphans.is_over() {
            return;
        }
        let (mut looks, mut left) = (LOOKS_PER_TURN, PER_TURN);
        while looks > 0 && left > 0 && !self.orphans.is_over() {
            let i = self.orphans.advance(self.blocks.len() as u32);
            looks -= 1;
            if self.orphan(cx, i) {
                left -= 1;
                cx.advance();
            }
            while let Some((listener, generation)) = self.orphans.pop_ended() {
                if self.view(listener).is_use(generation) {
                    self.end_parting(cx, listener);
                }
            }
        }
        self.docket.clear();
    }

    /// Resets a connection if its listener is closed. False: it is none such, or its domain's arena is not mapped yet.
    fn orphan(&mut self, cx: &Context, i: u32) -> bool {
        if self.fate(i).is_none() || self.domains.is_awaited(self.view(i).block.domain) {
            return false;
        }
        let runs = self.enter_state(cx, Kind::Serve, i);
        // Its revival may have found that a program has it after all.
        match self.fate(i) {
            Some(_) if !runs => {
                self.say_reset(i);
                self.release(cx, i);
            }
            Some(Fate::Discarded) => {
                self.say_reset(i);
                self.discard_embryonic(cx, i);
            }
            Some(Fate::Abandoned) => self.abandon(cx, i, ECONNABORTED),
            None => {}
        }
        true
    }

    /// The last connection of a closed listener is reset.
    fn end_parting(&mut self, cx: &Context, listener: u32) {
        if self.view(listener).is_parting() {
            self.connection(listener).cold.backlog = 0;
            self.finish_draining(cx, listener);
        }
    }
}

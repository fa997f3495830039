//! TIME-WAIT: its begin and end (RFC 9293 §3.6.1), and segments that come meanwhile (§3.10.7.4; RFC 1337 §3: resets are ignored;
//! RFC 6191: a clearly new SYN is accepted).

use super::acceptable::is_old;
use super::block::{Block, NONE, NOWHERE, State, Tuple, bit};
use super::close::ORPHAN_PATIENCE;
use super::connection::{Connection, View};
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::segment::Segment;
use crate::edge::Out;
use core::time::Duration;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
use eft_component::{Context, Outbox};

/// Twice the maximum segment lifetime, as Linux has it.
const TIME_WAIT: Duration = Duration::from_secs(60);

impl View<'_> {
    /// Whether it ends by itself some time.
    fn waits(&self) -> bool {
        self.block.state() == State::TimeWait || self.cold.close_at != NOWHERE
    }

    /// Whether a new connection may replace this one in TIME-WAIT: timestamps distinguish their segments
    /// (RFC 6191 §2, RFC 7323 §5.5).
    fn may_be_succeeded(&self, now: Instant) -> bool {
        let entered = Instant(self.cold.close_at.saturating_sub(TIME_WAIT.as_nanos() as u64));
        self.block.state() == State::TimeWait
            && self.block.has(bit::TIMESTAMPS)
            && now.saturating_since(entered) > Duration::from_secs(1)
    }
}

impl Connection<'_> {
    pub(super) fn begin_time_wait(&mut self, now: Instant) {
        self.live.stop_timers();
        self.live.recovery = Default::default();
        self.block.set_state(State::TimeWait);
        self.restart_time_wait(now);
        self.refresh_flags();
        self.mark(due::HANG_UP | due::END_OF_STREAM | due::READABLE);
    }

    /// Restarts the 2MSL timer.
    pub(super) fn restart_time_wait(&mut self, now: Instant) {
        self.cold.close_at = (now + TIME_WAIT).as_nanos();
        self.rearm();
    }

    /// Limits the wait to that of one that begins now.
    fn limit_wait(&mut self, now: Instant) {
        let limit = match self.block.state() {
            State::TimeWait => now + TIME_WAIT,
            _ if self.cold.close_at == NOWHERE => return,
            _ => now + ORPHAN_PATIENCE,
        };
        self.cold.close_at = self.cold.close_at.min(limit.as_nanos());
        self.rearm();
    }
}

impl Tcp {
    /// Both directions are over and we closed first (RFC 9293 §3.6.1).
    pub(super) fn enter_time_wait(&mut self, cx: &Context, i: u32) {
        self.count_end(cx, i);
        let mut c = self.connection(i);
        c.begin_time_wait(cx.now);
        let entry = (i, c.block.generation);
        self.forget_ended_waits();
        self.time_wait.push_back(entry);
        self.leave_slot(i);
    }

    /// After a rebirth: no wait ends later than one that begins now.
    pub(super) fn limit_waits(&mut self, now: Instant) {
        for i in 0..self.blocks.len() as u32 {
            // Nothing is derived of the others only to find that they do not wait.
            if self.view(i).waits() {
                self.connection(i).limit_wait(now);
            }
        }
    }

    /// The 2MSL timer ran out, or the block is needed.
    pub(super) fn end_time_wait(&mut self, cx: &Context, i: u32) {
        self.end(cx, i, 0);
    }

    /// Removes ended waits from the front of the list: waits end in the order in which they began.
    fn forget_ended_waits(&mut self) {
        while let Some((i, generation)) = self.time_wait.front() {
            if self.view(*i).waits_since(*generation) {
                break;
            }
            self.time_wait.pop_front();
        }
    }

    /// Evicts the connection that has been in TIME-WAIT longest.
    pub(super) fn evict_time_wait(&mut self, cx: &Context) {
        while let Some((i, generation)) = self.time_wait.pop_front() {
            let c = self.view(i);
            if c.waits_since(generation) && c.block.slot == NONE {
                cx.count(Counter::TimeWaitEvicted);
                return self.end_time_wait(cx, i);
            }
        }
    }

    /// Frees `tuple` for a new active connection. True if it is free, or was in a TIME-WAIT of ours that timestamps protect.
    pub(super) fn vacate(&mut self, cx: &Context, tuple: &Tuple) -> bool {
        let Some(&i) = self.table.get(tuple) else {
            return true;
        };
        let reusable = self.view(i).may_be_succeeded(cx.now);
        if reusable {
            cx.count(Counter::TimeWaitReused);
            self.end_time_wait(cx, i);
        }
        reusable
    }

    pub(super) fn receive_in_time_wait(
        &mut self,
        cx: &Context,
        i: u32,
        segment: &Segment,
        out: &mut Outbox<Out>,
    ) {
        if segment.has(TCP_RST) {
            return;
        }
        let View { block, cold, .. } = self.view(i);
        if segment.has(TCP_SYN) && !segment.has(TCP_ACK) {
            // It does not matter whether the program has closed the old connection: its descriptor stays valid.
            if is_new(block, segment) && self.ports.listener(&segment.tuple).is_some() {
                cx.count(Counter::TimeWaitReused);
                self.end_time_wait(cx, i);
                return self.receive_segment(cx, segment, out);
            }
            return self.connection(i).challenge(cx);
        }
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let exact = end == block.acknowledgment();
        if exact
            && segment.has(TCP_FIN)
            && block.may_acknowledge(segment.ack, cold.snd_wnd_max)
            && !is_old(block, segment, cx.now)
        {
            // The peer repeats its FIN: our last acknowledgement was lost.
            let mut c = self.connection(i);
            c.mark(due::ACK);
            c.restart_time_wait(cx.now);
        } else if !exact || segment.sequence_len() > 0 {
            self.connection(i).answer_stray(cx.now);
        }
    }
}

/// Whether a SYN clearly begins a new connection after the waiting one (RFC 6191 §2, RFC 9293 §3.6.1).
fn is_new(block: &Block, segment: &Segment) -> bool {
    let beyond = segment.seq.wrapping_sub(block.acknowledgment()) as i32 >= 0;
    match segment.options.timestamps {
        Some((value, _)) if block.has(bit::TIMESTAMPS) => {
            let newer = value.wrapping_sub(block.ts_recent) as i32;
            newer > 0 || (newer == 0 && beyond)
        }
        _ => beyond,
    }
}

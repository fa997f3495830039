//! Timers that ran out: retransmission (RFC 6298 §5), window probes (RFC 9293 §3.8.6.1), keepalive
//! (§3.8.4), delayed acknowledgement, patience.

use super::block::{NONE, NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;
use eft_base::errno::ETIMEDOUT;
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

/// As Linux's tcp_syn_retries, tcp_synack_retries, tcp_retries2 and tcp_orphan_retries.
const SYN_RETRIES: u8 = 6;
const SYN_ACK_RETRIES: u8 = 5;
pub(super) const RETRIES: u8 = 15;
/// How long a connection without application may make no progress.
const ORPHAN_STALL: Duration = Duration::from_secs(60);
/// Expiries after which the way to the peer is asked for anew.
const ROUTE_DOUBT: u8 = 2;

const KEEP_IDLE: u32 = 7200;
const KEEP_INTERVAL: u32 = 75;
const KEEP_COUNT: u32 = 9;

impl Connection<'_> {
    /// What ip last said of the path explains a timeout best.
    fn timeout_errno(&self) -> i32 {
        match self.cold.soft_error {
            0 => ETIMEDOUT,
            errno => errno,
        }
    }

    /// The user timeout (RFC 5482), or an orphan's.
    fn is_out_of_patience(&self, now: Instant) -> bool {
        let live = &*self.live;
        let stuck = now.saturating_since(live.stuck_since);
        let user = live.page.as_ref().map_or(0, |p| p.option(Opt::UserTimeout));
        (user > 0 && stuck >= Duration::from_millis(user as u64))
            || (self.block.has(bit::ORPHAN) && stuck >= ORPHAN_STALL)
    }

    fn keepalive_option(&self, option: Opt, default: u32) -> u32 {
        let page = self.live.page.as_ref();
        match page.map_or(0, |p| p.option(option)) {
            0 => default,
            n => n,
        }
    }

    pub(super) fn start_keepalive(&mut self, now: Instant) {
        let idle = self.keepalive_option(Opt::KeepIdle, KEEP_IDLE);
        self.live.keepalive_at = now + Duration::from_secs(idle as u64);
        self.rearm();
    }
}

impl Tcp {
    /// Handles every deadline of a connection that has passed.
    pub(super) fn expire_connection(&mut self, cx: &Context, i: u32, _out: &mut Outbox<Out>) {
        let now = cx.now;
        if self.live[i as usize].attach_at <= now && self.expire_attach(cx, i) {
            return;
        }
        if self.cold[i].close_at <= now.as_nanos() {
            match self.blocks[i].state() {
                State::TimeWait => return self.end_time_wait(cx, i),
                state if state.has_connection() => return self.reset(cx, i, ETIMEDOUT),
                _ => self.cold[i].close_at = NOWHERE,
            }
        }
        let live = &mut self.live[i as usize];
        if live.ack_at <= now {
            live.ack_at = NEVER;
            self.connection(i).mark(due::ACK);
        }
        let live = &mut self.live[i as usize];
        if live.cork_at <= now {
            live.cork_at = NEVER;
            self.connection(i).mark(due::SEND | due::OVERRIDE);
        }
        let live = &mut self.live[i as usize];
        if live.piece_at <= now {
            live.piece_at = NEVER;
            self.connection(i).mark(due::PIECE);
        }
        let live = &mut self.live[i as usize];
        if live.tell_at <= now {
            live.tell_at = NEVER;
            self.connection(i).mark(due::READABLE | due::TELL);
        }
        if self.live[i as usize].info_at <= now {
            self.live[i as usize].info_at = NEVER;
            self.connection(i).mark(due::INFO);
        }
        if self.live[i as usize].retransmit_at <= now {
            self.live[i as usize].retransmit_at = NEVER;
            self.expire_retransmission(cx, i);
        }
        if self.live[i as usize].keepalive_at <= now {
            self.expire_keepalive(cx, i);
        }
    }

    fn expire_retransmission(&mut self, cx: &Context, i: u32) {
        match self.blocks[i].state() {
            State::SynSent | State::SynReceived => self.expire_handshake(cx, i),
            state if !state.may_send() => {}
            _ if self.blocks[i].flight() > 0 => self.expire_flight(cx, i),
            _ if self.connection(i).has_unsent() => self.expire_persist(cx, i),
            _ => {}
        }
    }

    fn expire_handshake(&mut self, cx: &Context, i: u32) {
        let block = &mut self.blocks[i];
        let active = block.state() == State::SynSent;
        let retries = if active { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if block.backoff >= retries || self.connection(i).is_out_of_patience(cx.now) {
            cx.count(Counter::Timeouts as usize);
            if !active && self.blocks[i].slot == NONE {
                return self.discard_embryonic(cx, i);
            }
            cx.count(Counter::FailedConnects as usize);
            let errno = self.connection(i).timeout_errno();
            return self.end(cx, i, errno);
        }
        self.blocks[i].backoff += 1;
        cx.count(Counter::RetransmitTimeouts as usize);
        cx.count(Counter::RetransmittedSegments as usize);
        self.connection(i).mark(due::SYN);
    }

    /// RFC 6298 §5.4 to §5.7.
    fn expire_flight(&mut self, cx: &Context, i: u32) {
        let block = &self.blocks[i];
        // A peer that answers but keeps its window closed is not dead.
        let closed = block.snd_edge <= block.snd_una;
        let dead = block.backoff >= RETRIES && !closed;
        if dead || self.connection(i).is_out_of_patience(cx.now) {
            return self.time_out(cx, i);
        }
        cx.count(Counter::RetransmitTimeouts as usize);
        let live = &mut self.live[i as usize];
        let block = &mut self.blocks[i];
        let flight = block.flight().min(u32::MAX as u64) as u32;
        let mss = block.segment_size();
        block.congestion.on_timeout(flight, mss, block.backoff == 0);
        if block.backoff > 0 {
            // RFC 2018 §8: the receiver may have reneged.
            live.recovery.board.clear();
        }
        block.backoff = (block.backoff + 1).min(RETRIES);
        live.recovery.lose_all(block.snd_una, block.snd_nxt);
        live.timing = None;
        live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        let doubt = block.backoff == ROUTE_DOUBT;
        self.connection(i).mark(due::SEND | if doubt { due::ROUTE } else { 0 });
    }

    /// The window is closed, or too small to be worth a segment.
    fn expire_persist(&mut self, cx: &Context, i: u32) {
        if self.cold[i].probes >= RETRIES as u32 || self.connection(i).is_out_of_patience(cx.now) {
            return self.time_out(cx, i);
        }
        let block = &mut self.blocks[i];
        block.backoff = (block.backoff + 1).min(RETRIES);
        if block.send_window() > 0 {
            return self.connection(i).mark(due::SEND | due::OVERRIDE);
        }
        self.cold[i].probes += 1;
        let live = &mut self.live[i as usize];
        live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        self.connection(i).mark(due::PROBE);
    }

    fn time_out(&mut self, cx: &Context, i: u32) {
        cx.count(Counter::Timeouts as usize);
        let errno = self.connection(i).timeout_errno();
        self.reset(cx, i, errno);
    }

    fn expire_keepalive(&mut self, cx: &Context, i: u32) {
        let state = self.blocks[i].state();
        self.live[i as usize].keepalive_at = NEVER;
        if !state.is_synchronized() || state == State::TimeWait {
            return;
        }
        let idle = self.connection(i).keepalive_option(Opt::KeepIdle, KEEP_IDLE);
        let idle = Duration::from_secs(idle as u64);
        let live = &mut self.live[i as usize];
        let block = &mut self.blocks[i];
        let quiet = cx.now.saturating_since(live.last_heard);
        if block.flight() > 0 || quiet < idle {
            self.cold[i].probes = 0;
            let from = if quiet < idle { live.last_heard } else { cx.now };
            live.keepalive_at = from + idle;
            return;
        }
        let count = self.connection(i).keepalive_option(Opt::KeepCount, KEEP_COUNT);
        let interval = self.connection(i).keepalive_option(Opt::KeepInterval, KEEP_INTERVAL);
        if self.cold[i].probes >= count {
            return self.time_out(cx, i);
        }
        self.cold[i].probes += 1;
        self.live[i as usize].keepalive_at = cx.now + Duration::from_secs(interval as u64);
        self.connection(i).mark(due::PROBE);
    }
}

//! Timers that expired (RFC 9293 §3.10.8): retransmission (RFC 6298 §5), window probes (RFC 9293 §3.8.6.1), keepalive
//! (§3.8.4), delayed acknowledgement, time limits.

use super::block::{NONE, NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::rtt::RETRIES;
use super::undo::Undo;
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;
use eft_base::errno::ETIMEDOUT;
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

/// As Linux's tcp_syn_retries, tcp_synack_retries and, with [`RETRIES`], tcp_retries2.
const SYN_RETRIES: u32 = 6;
const SYN_ACK_RETRIES: u32 = 5;
/// As Linux's MAX_TCP_SYNCNT.
const SYN_COUNT_MAX: u32 = 127;
/// How long a connection without application may make no progress.
const ORPHAN_STALL: Duration = Duration::from_secs(60);
/// Expiries after which the route to the peer is asked for again.
const ROUTE_DOUBT: u8 = 2;

const KEEP_IDLE: u32 = 7200;
const KEEP_INTERVAL: u32 = 75;
const KEEP_COUNT: u32 = 9;

/// Whether a connection still waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Left,
    Over,
}

impl Connection<'_> {
    /// The errno of a timeout: the last path error explains it best.
    fn timeout_errno(&self) -> i32 {
        match self.untold_soft_error() {
            0 => ETIMEDOUT,
            errno => errno,
        }
    }

    /// Whether the user timeout (RFC 5482), or an orphan's, has expired.
    fn is_out_of_patience(&self, now: Instant) -> bool {
        let live = &*self.live;
        let stuck = now.saturating_since(live.stuck_since);
        let user = live.page.as_ref().map_or(0, |p| p.option(Opt::UserTimeout));
        (user > 0 && stuck >= Duration::from_millis(user as u64))
            || (self.block.has(bit::ORPHAN) && stuck >= ORPHAN_STALL)
    }

    fn option_or(&self, option: Opt, default: u32) -> u32 {
        let page = self.live.page.as_ref();
        match page.map_or(0, |p| p.option(option)) {
            0 => default,
            n => n,
        }
    }

    pub(super) fn start_keepalive(&mut self, now: Instant) {
        let idle = self.option_or(Opt::KeepIdle, KEEP_IDLE);
        self.live.keepalive_at = now + Duration::from_secs(idle as u64);
        self.rearm();
    }

    /// Marks delayed work as due whose time has come.
    fn expire_delays(&mut self, now: Instant) {
        let live = &mut *self.live;
        let delays = [
            (&mut live.ack_at, due::ACK),
            (&mut live.cork_at, due::SEND | due::OVERRIDE),
            (&mut live.piece_at, due::PIECE),
            (&mut live.pace.resume_at, due::SEND | live.pace.resume_for),
            (&mut live.tell_at, due::READABLE | due::TELL),
            (&mut live.info_at, due::INFO),
        ];
        let mut bits = 0;
        for (at, what) in delays {
            if *at <= now {
                *at = NEVER;
                bits |= what;
            }
        }
        if bits != 0 {
            self.mark(bits);
        }
    }

    /// RFC 6298 §5.4 to §5.7; who gets no answer gives up in the end (RFC 9293 §3.8.3).
    fn expire_unacknowledged(&mut self, cx: &Context) -> Patience {
        // A peer that answers but keeps its window closed is not dead.
        let closed = self.block.snd_edge <= self.block.snd_una;
        let dead = self.block.backoff >= RETRIES && !closed;
        if dead || self.is_out_of_patience(cx.now) {
            return Patience::Over;
        }
        cx.count(Counter::RetransmitTimeouts);
        let (block, live) = (&mut self.block, &mut *self.live);
        let flight_size = block.flight_size().min(u32::MAX as u64) as u32;
        let mss = block.segment_size();
        let first = block.backoff == 0;
        if first {
            let clock = block.has(bit::TIMESTAMPS).then(|| block.timestamp(cx.now));
            live.recovery.undo = Some(Undo::new(block.congestion, clock, true));
        } else {
            // RFC 2018 §8: the receiver may have reneged.
            live.recovery.board.distrust();
            if let Some(undo) = &mut live.recovery.undo {
                undo.on_timeout_again();
            }
        }
        live.statistics.on_timeout(cx.now, first);
        block.congestion.on_timeout(flight_size, mss, first);
        block.backoff = (block.backoff + 1).min(RETRIES);
        live.recovery.on_timeout(block.snd_una, block.snd_nxt, mss, cx.now, &block.rtt);
        live.reorder_at = NEVER;
        live.probe_at = NEVER;
        live.timing = None;
        live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        let doubt = block.backoff == ROUTE_DOUBT;
        self.suspect_black_hole(cx);
        self.note_reduction();
        self.mark(due::SEND | if doubt { due::ROUTE } else { 0 });
        Patience::Left
    }

    /// The window is closed, or too small to be worth a segment.
    fn expire_persist(&mut self, cx: &Context) -> Patience {
        if self.cold.probes >= RETRIES || self.is_out_of_patience(cx.now) {
            return Patience::Over;
        }
        let block = &mut self.block;
        block.backoff = (block.backoff + 1).min(RETRIES);
        if block.send_window() > 0 {
            self.mark(due::SEND | due::OVERRIDE);
            return Patience::Left;
        }
        self.cold.probes = self.cold.probes.saturating_add(1);
        self.live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        self.mark(due::PROBE);
        Patience::Left
    }

    fn expire_keepalive(&mut self, cx: &Context) -> Patience {
        let state = self.block.state();
        self.live.keepalive_at = NEVER;
        if !state.is_synchronized() || state == State::TimeWait {
            return Patience::Left;
        }
        let idle = Duration::from_secs(self.option_or(Opt::KeepIdle, KEEP_IDLE) as u64);
        let quiet = cx.now.saturating_since(self.live.last_heard);
        if self.block.flight_size() > 0 || quiet < idle {
            self.cold.probes = 0;
            let from = if quiet < idle { self.live.last_heard } else { cx.now };
            self.live.keepalive_at = from + idle;
            return Patience::Left;
        }
        if u32::from(self.cold.probes) >= self.option_or(Opt::KeepCount, KEEP_COUNT) {
            return Patience::Over;
        }
        let interval = self.option_or(Opt::KeepInterval, KEEP_INTERVAL);
        self.cold.probes = self.cold.probes.saturating_add(1);
        self.live.keepalive_at = cx.now + Duration::from_secs(interval as u64);
        self.mark(due::PROBE);
        Patience::Left
    }
}

impl Tcp {
    /// Handles every deadline of a connection that has passed.
    pub(super) fn expire_connection(&mut self, cx: &Context, i: u32, _out: &mut Outbox<Out>) {
        let now = cx.now;
        if self.connection(i).live.attach_at <= now && self.expire_attach(cx, i) {
            return;
        }
        let mut c = self.connection(i);
        if c.cold.close_at <= now.as_nanos() {
            match c.block.state() {
                State::TimeWait => return self.end_time_wait(cx, i),
                state if state.has_connection() => return self.reset(cx, i, ETIMEDOUT),
                _ => c.cold.close_at = NOWHERE,
            }
        }
        let mut c = self.connection(i);
        c.expire_delays(now);
        if c.live.reorder_at <= now {
            c.live.reorder_at = NEVER;
            c.expire_reordering(cx);
        }
        if c.live.probe_at <= now {
            c.expire_probe(cx);
        }
        if c.live.retransmit_at <= now {
            c.live.retransmit_at = NEVER;
            self.expire_retransmission(cx, i);
        }
        let mut c = self.connection(i);
        if c.live.keepalive_at <= now && c.expire_keepalive(cx) == Patience::Over {
            self.time_out(cx, i);
        }
    }

    fn expire_retransmission(&mut self, cx: &Context, i: u32) {
        let mut c = self.connection(i);
        let patience = match c.block.state() {
            State::SynSent | State::SynReceived => return self.expire_handshake(cx, i),
            _ if c.is_unproven() => return self.expire_handshake(cx, i),
            state if !state.may_send() => return,
            _ if c.block.flight_size() > 0 => c.expire_unacknowledged(cx),
            _ if c.has_unsent() => c.expire_persist(cx),
            _ => return,
        };
        if patience == Patience::Over {
            self.time_out(cx, i);
        }
    }

    fn expire_handshake(&mut self, cx: &Context, i: u32) {
        let c = self.connection(i);
        let active = c.block.state() == State::SynSent;
        let (retries, again) = match active {
            true => (c.option_or(Opt::SynCount, SYN_RETRIES).min(SYN_COUNT_MAX), true),
            false => self.while_deferred(i, SYN_ACK_RETRIES),
        };
        let mut c = self.connection(i);
        // Of an unproven connection, what went behind its SYN-ACK may have been sent again, too.
        let tries = if c.is_unproven() { c.block.backoff as u32 } else { c.cold.retransmits };
        if tries < retries && !c.is_out_of_patience(cx.now) {
            let is_first = c.block.backoff == 0;
            c.block.backoff = (c.block.backoff + 1).min(RETRIES);
            c.cold.retransmits = c.cold.retransmits.saturating_add(1);
            if !again {
                return c.wait_for_data(cx);
            }
            c.live.statistics.on_timeout(cx.now, is_first);
            cx.count(Counter::RetransmitTimeouts);
            cx.count(Counter::RetransmittedSegments);
            if active {
                c.stop_asking();
            }
            return c.mark(due::SYN);
        }
        cx.count(Counter::Timeouts);
        if !active && c.block.slot == NONE {
            return self.discard_embryonic(cx, i);
        }
        let errno = c.timeout_errno();
        cx.count(Counter::FailedConnects);
        self.end(cx, i, errno);
    }

    fn time_out(&mut self, cx: &Context, i: u32) {
        cx.count(Counter::Timeouts);
        let errno = self.connection(i).timeout_errno();
        self.reset(cx, i, errno);
    }
}

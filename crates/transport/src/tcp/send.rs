//! What to send (RFC 9293 §3.8.6: Nagle, silly windows; RFC 5681, RFC 6675 and RFC 9937 for how much).
//!
//! Segments are as large as the device can segment (`segment_max`) within the bounds of [`super::sizing`]. Lost data go before
//! new data.

use super::asked::Request;
use super::block::{NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::decide::{Decision, Wait};
use super::emit::Outgoing;
use super::engine::Tcp;
use super::idle;
use super::live::due;
use super::recovery::Phase;
use super::scoreboard::Range;
use super::sizing::MinSegments;
use super::statistics::Busy;
use super::tail_probe::TailProbe;
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::wire::{ECN_CAPABLE, TCP_CWR, TCP_FIN, TCP_PSH};
use eft_channel::socket::{Opt, cork};
use eft_component::{Context, Outbox};

/// Segments that one connection sends before another has its turn.
const QUANTUM: usize = 32;
/// How long a corked partial segment waits.
const CORK_TIME: Duration = Duration::from_millis(200);
/// How long sending waits for a larger piece: half a round trip, within these bounds. The acknowledgements that make
/// the piece larger come sooner, or not at all.
const PIECE_TIME_MIN: Duration = Duration::from_millis(1);
const PIECE_TIME_MAX: Duration = Duration::from_millis(10);

/// Whether a segment was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    New,
    /// Never; one packet that is larger than the others ([`super::mtu_search`]).
    Probe,
    Again,
}

impl Connection<'_> {
    /// The lost bytes that may be sent again now (RFC 6675 §5 step C).
    fn next_retransmission(&self, lost: Range, least: MinSegments) -> Option<Range> {
        let block = &*self.block;
        let recovery = &self.live.recovery;
        let mss = block.segment_size();
        let pipe = recovery.pipe(mss);
        let mss = mss as u64;
        let budget = (block.congestion.cwnd as u64).saturating_sub(pipe);
        if budget < mss && !recovery.force {
            return None;
        }
        let len = (budget - budget % mss).max(mss).min(self.chunk(least));
        Some(self.live.records.first_part(Range { start: lost.start, end: lost.end.min(lost.start + len) }))
    }

    /// A tail loss probe (RFC 8985 §7.3): new data if there are any and the peer's window has room, else the last segment
    /// again.
    fn next_probe(&self) -> Option<(Range, How)> {
        let block = &*self.block;
        let mss = block.segment_size() as u64;
        let new = block.snd_end.saturating_sub(block.snd_nxt).min(block.send_window()).min(mss);
        let records = &self.live.records;
        let new = records.next_end(block.snd_nxt).map_or(new, |end| new.min(end - block.snd_nxt));
        if new > 0 {
            let fin = block.fin_at == block.snd_nxt + new && block.send_window() > new;
            return Some((Range { start: block.snd_nxt, end: block.snd_nxt + new + fin as u64 }, How::New));
        }
        self.live.recovery.board.last_missing(mss).map(|range| (records.last_part(range), How::Again))
    }

    /// The next range to send, or the reason to wait.
    fn next_piece(&mut self, cx: &Context, least: MinSegments) -> Result<(Range, How), Wait> {
        let recovery = &self.live.recovery;
        let (probes, forced) = (recovery.probe_due, recovery.force);
        let piece = self.choose_piece(cx, least)?;
        match self.paced_until(cx.now) {
            Some(until) if !probes && !(forced && piece.1 == How::Again) => Err(Wait::Pace { until }),
            _ => Ok(piece),
        }
    }

    /// The same at any rate.
    fn choose_piece(&mut self, cx: &Context, least: MinSegments) -> Result<(Range, How), Wait> {
        if self.live.recovery.probe_due {
            match self.next_probe() {
                Some(probe) => return Ok(probe),
                None => self.live.recovery.probe_due = false,
            }
        }
        if let Some(lost) = self.live.recovery.next_lost() {
            // Lost data go first, although the window may have no room.
            let range = self.next_retransmission(lost, least).ok_or(Wait::Congestion)?;
            return Ok((range, How::Again));
        }
        if let Some(range) = self.next_mtu_probe(cx.now) {
            return Ok((range, How::Probe));
        }
        if !self.has_unsent() {
            return Err(Wait::Application);
        }
        let mut decision = self.situation(least).decide();
        if matches!(decision, Decision::Send { .. }) {
            let (silence, choice) = (cx.now.saturating_since(self.live.last_sent), self.live.after_idle);
            // Once for each silence: with what is sent now it ends.
            if idle::has_expired(&self.block, choice, silence) && self.paced_until(cx.now).is_none() {
                let (first, rto) = (self.view().initial_window(), self.block.rtt.rto());
                self.block.congestion.on_idle(first, silence, rto);
                decision = self.situation(least).decide();
            }
        }
        match decision {
            Decision::Send { len, fin } => {
                let start = self.block.snd_nxt;
                Ok((Range { start, end: start + len + fin as u64 }, How::New))
            }
            Decision::Wait(wait) => Err(wait),
        }
    }

    /// Nothing more goes out now; sets the timer after which sending is tried again.
    fn wait_for(&mut self, cx: &Context, wait: Wait) {
        let live = &mut *self.live;
        match wait {
            Wait::Pace { until } => {
                live.pace.resume_at = until;
                live.pace.resume_for = live.due & (due::OVERRIDE | due::PIECE);
            }
            _ => live.pace.on_rest(),
        }
        live.due &= !(due::SEND | due::OVERRIDE | due::PIECE);
        let mss = self.block.segment_size();
        let pipe = live.recovery.pipe(mss);
        self.note_limit(wait, mss, pipe);
        self.widen_ring();
        let (live, block) = (&mut *self.live, &*self.block);
        let waits = matches!(wait, Wait::Congestion | Wait::Piece { congestion: true });
        live.usage.update(block, waits || pipe + mss as u64 > block.congestion.cwnd as u64);
        live.piece_at = match wait {
            Wait::Piece { .. } => {
                let half = Duration::from_micros(block.rtt.srtt_us as u64 / 2);
                live.piece_at.min(cx.now + half.clamp(PIECE_TIME_MIN, PIECE_TIME_MAX))
            }
            _ => NEVER,
        };
        live.cork_at = match wait {
            Wait::Cork => live.cork_at.min(cx.now + CORK_TIME),
            _ => NEVER,
        };
        let flies = block.flight_size() > 0;
        let busy = match wait {
            Wait::Application if !flies => Busy::Not,
            Wait::Application if live.page.as_ref().is_some_and(|p| p.is_plugged()) => Busy::Ring,
            Wait::Window | Wait::Piece { congestion: false } => Busy::Window,
            _ => Busy::Sending,
        };
        live.statistics.set_busy(cx.now, busy);
        if wait == Wait::Window && !flies && live.retransmit_at == NEVER {
            live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        }
    }

    fn after_sending(&mut self, cx: &Context, range: Range, len: u64, how: How) {
        let idle = self.block.flight_size() == 0;
        self.stamp_sending(cx.now, idle);
        let live = &mut *self.live;
        let block = &mut self.block;
        let mss = block.segment_size() as u64;
        let segments = len.div_ceil(mss).max(1);
        let is_cut = len > mss && how != How::Probe;
        live.recovery.board.segment = if is_cut { mss as u32 } else { range.len() as u32 };
        live.statistics.on_sent(cx.now, len, segments as u32, how == How::Again);
        live.statistics.set_busy(cx.now, Busy::Sending);
        if how == How::Again {
            cx.add(Counter::RetransmittedSegments, segments);
            cx.add(Counter::RetransmittedBytes, len);
            self.cold.retransmits = self.cold.retransmits.saturating_add(segments as u32);
            live.recovery.on_sent_again(range, cx.now);
            live.timing = live.timing.map(|(_, at)| (NOWHERE, at));
        } else {
            cx.add(Counter::SentBytes, len);
            block.snd_nxt = range.end;
            live.recovery.on_sent(range, cx.now);
            if !len.is_multiple_of(mss) && how == How::New {
                block.snd_small = range.start + len;
            }
            let is_open = live.recovery.phase == Phase::Open;
            if live.timing.is_none_or(|(offset, _)| offset == NOWHERE && is_open) {
                live.timing = Some((range.end, cx.now));
            }
        }
        if idle {
            live.stuck_since = cx.now;
            if live.unused_since.is_none() {
                block.congestion.on_limited(cx.now.saturating_since(live.last_sent));
            }
        }
        if idle || live.retransmit_at == NEVER {
            live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        }
        live.last_sent = cx.now;
        live.usage.sent = true;
        live.due |= due::INFO;
        // Data that acknowledge the SYN-ACK are likely to be answered: the answer is acknowledged with what follows (RFC 1122
        // §4.2.3.2), as on Linux. So is what comes next where these data answer something.
        let asks = live.is_due(due::ACK) && block.rcv_nxt == 0 && !block.has(bit::PASSIVE);
        if how == How::New && (asks || len > 0 && live.answers(cx.now)) {
            live.quick_acks = 0;
        }
        // Out-of-order ranges need an acknowledgement of their own, with SACK.
        if live.out_of_order.is_empty() && live.duplicate_acks == 0 && live.duplicate.is_none() {
            self.on_acknowledged();
        }
        if how != How::Again {
            self.tell_sent();
        }
        if how == How::Probe {
            self.note_mtu_probe(cx, range);
        }
        self.keep_pace(cx.now, len);
        self.note_probe(cx, how);
    }

    /// Remembers a probe, so that its acknowledgment is judged; after other segments, a probe may be needed later.
    fn note_probe(&mut self, cx: &Context, how: How) {
        let recovery = &mut self.live.recovery;
        if recovery.probe_due {
            cx.add(Counter::LossProbes, (how == How::Again) as u64);
            recovery.probe_due = false;
            recovery.measured = false;
            recovery.probe = Some(TailProbe { end: self.block.snd_nxt, again: how == How::Again });
        } else if how != How::Again {
            self.arm_probe(cx.now);
        }
    }

    /// Whether unsent data keep the connection's timer running.
    pub(super) fn has_unsent(&self) -> bool {
        let block = &*self.block;
        block.snd_nxt < block.snd_end || (block.fin_at != NOWHERE && block.snd_nxt <= block.fin_at)
    }
}

impl Tcp {
    /// Sends what is due for a connection, as far as there is room. The rest stays due.
    pub(super) fn send_due(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        let Connection { block, live, .. } = self.connection(i);
        let state = block.state();
        if !state.has_connection() {
            live.due &= !(due::SYN | due::SEND | due::OVERRIDE | due::PIECE | due::PROBE | due::ACK);
            return;
        }
        let unproven = block.has(bit::UNPROVEN);
        if unproven && !block.has(bit::ROUTED) {
            // Once the path is known it becomes due again; the SYN-ACK goes first.
            live.due &= !(due::SYN | due::SEND | due::OVERRIDE | due::PIECE | due::PROBE | due::ACK);
            return;
        }
        if live.is_due(due::SYN) {
            if unproven || matches!(state, State::SynSent | State::SynReceived) {
                return self.send_syn(cx, i, out);
            }
            live.due &= !due::SYN;
        }
        if live.is_due(due::SEND | due::OVERRIDE | due::PIECE) {
            self.send_data(cx, i, out);
        }
        if self.connection(i).live.is_due(due::PROBE) {
            self.send_probe(cx, i, out);
        }
        let c = self.connection(i);
        if c.live.is_due(due::ACK) {
            if c.can_acknowledge() {
                self.send_acknowledgements(cx, i, out);
            } else {
                c.live.due &= !due::ACK;
            }
        }
    }

    fn send_data(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        let c = self.connection(i);
        if !c.block.state().may_send() || c.live.page.is_none() {
            c.live.due &= !(due::SEND | due::OVERRIDE | due::PIECE);
            return;
        }
        for _ in 0..QUANTUM {
            if !self.has_room(out) {
                return;
            }
            let least = self.min_segments;
            match self.connection(i).next_piece(cx, least) {
                Ok((range, how)) => self.send_segment(cx, i, range, how, out),
                Err(wait) => return self.connection(i).wait_for(cx, wait),
            }
        }
    }

    /// Sends the bytes (and the FIN) of `range`. The caller has checked for room.
    fn send_segment(&mut self, cx: &Context, i: u32, range: Range, how: How, out: &mut Outbox<Out>) {
        let payload = range.end.min(self.block(i).fin_at) - range.start;
        self.acknowledge_before(cx, i, payload, out);
        let signed = self.signed(i, range.start, payload as usize);
        let mut c = self.connection(i);
        let window = c.offer_window(cx.now);
        let mut options = c.ordinary_options(cx);
        c.add_byte_counts(cx.now, &mut options, payload, 0);
        let mut hop = c.hop_options();
        let mut flags = c.acknowledging_flags(false);
        let may_be_marked = c.may_be_marked();
        let urgent = c.view().urgent_pointer(range.start);
        let Connection { block, live, .. } = c;
        let Some(page) = &live.page else {
            return;
        };
        let fin = range.end > block.fin_at;
        let end = range.end - fin as u64;
        let len = end - range.start;
        let mss = block.segment_size();
        let marked = may_be_marked && how != How::Again && len > 0;
        let is_cut = len > mss as u64 && how != How::Probe;
        if marked {
            // Retransmissions and segments without data must not be ECN-capable (RFC 3168 §6.1.4, §6.1.5), nor are probes of the
            // window, which have none (§6.1.6).
            hop.tos |= ECN_CAPABLE;
            flags |= if block.has(bit::ECN | bit::ECN_REDUCED) { TCP_CWR.into() } else { 0 };
        }
        // At the end of what the application wrote, unless it said that more follows and is still believed (RFC 9293
        // §3.9.1.2); and at the end of what the device cuts, so that a receiver that merges it passes it on, as Linux does.
        let more = page.option(Opt::Cork) & cork::MORE != 0 && !live.is_due(due::OVERRIDE);
        let recorded = live.records.next_end(range.start) == Some(end) || live.early_end == Some(end);
        let ends = (end == block.snd_end || recorded) && !more;
        if len > 0 && (ends || is_cut) {
            flags |= u16::from(TCP_PSH);
        }
        if fin {
            flags |= u16::from(TCP_FIN);
        }
        let segment = Outgoing {
            payload: page.send_refs(live.pool, block.slot, range.start, len as usize),
            segment_size: if is_cut { mss as u16 } else { 0 },
            urgent,
            hop,
            signed,
            ..Outgoing::bare(
                block.tuple,
                block.send_sequence(range.start),
                block.acknowledgment(),
                flags,
                window,
                options.bytes(),
            )
        };
        let generation = block.generation;
        let group = (len > 0).then(|| live.in_flight.add(range.start, page.send_len()));
        let sent = self.transmit(cx, out, &segment, |descriptor| match group {
            Some(group) => Request::Data { block: i, generation, group, end, descriptor },
            None => Request::Bare { block: i, generation, descriptor },
        });
        let mut c = self.connection(i);
        if sent {
            if marked && c.block.has(bit::ECN) {
                c.block.clear(bit::ECN_REDUCED);
            }
            c.after_sending(cx, range, len, how);
            c.stamp_scheduled(cx.now, end);
        } else if let Some(group) = group {
            c.live.in_flight.remove(group);
        }
    }

    /// Sends an old sequence number: the peer answers with its acknowledgment and window (RFC 9293
    /// §3.8.6.1, §3.8.4).
    fn send_probe(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        if !self.has_room(out) {
            return;
        }
        let mut c = self.connection(i);
        let window = c.offer_window(cx.now);
        let options = c.ordinary_options(cx);
        let flags = c.acknowledging_flags(true);
        let block = &*c.block;
        let segment = Outgoing::bare(
            block.tuple,
            block.send_sequence(block.snd_una).wrapping_sub(1),
            block.acknowledgment(),
            flags,
            window,
            options.bytes(),
        );
        if self.transmit_bare(cx, out, i, segment) {
            cx.count(Counter::ProbesSent);
            self.connection(i).live.due &= !due::PROBE;
        }
    }
}

//! What to send (RFC 9293 §3.8.6: Nagle, silly windows; RFC 5681 and RFC 6675 for how much).
//!
//! Segments are as large as the device can segment (`segment_max`), so that the cost per byte is
//! that of a few large messages. What was lost goes before what is new.

use super::block::{NOWHERE, State};
use super::counters::Counter;
use super::emit::{Outgoing, Request};
use super::engine::Tcp;
use super::live::due;
use super::sack::Range;
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_PSH};
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

/// Segments that one connection sends before another has its turn.
const QUANTUM: usize = 32;
/// How long a corked partial segment waits.
const CORK_TIME: Duration = Duration::from_millis(200);

/// What decides about new data.
#[derive(Clone, Copy, Debug)]
struct Situation {
    /// Bytes that were never sent.
    available: u64,
    /// The FIN is to follow the last byte.
    fin: bool,
    /// Bytes that the peer's window still takes.
    window: u64,
    /// Bytes that the congestion window still takes.
    budget: u64,
    /// Bytes in the network.
    pipe: u64,
    /// The smaller of both windows, in all.
    whole: u64,
    mss: u64,
    /// Largest payload of one `Send`, a multiple of `mss`.
    chunk: u64,
    /// The largest window that the peer ever offered.
    window_max: u64,
    /// An earlier small segment is not acknowledged (RFC 896, with Minshall's refinement).
    small_in_flight: bool,
    no_delay: bool,
    cork: bool,
    /// The override timer ran out (RFC 1122 §4.2.3.4).
    overridden: bool,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing is there.
    Application,
    /// More should come before a small segment is worth it.
    Nagle,
    Cork,
    /// The peer's window.
    Window,
    /// The congestion window.
    Congestion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Send { len: u64, fin: bool },
    Wait(Wait),
}

impl Situation {
    fn decide(&self) -> Decision {
        if self.available == 0 {
            return if self.fin {
                Decision::Send { len: 0, fin: true }
            } else {
                Decision::Wait(Wait::Application)
            };
        }
        let limit = self.window.min(self.budget);
        if limit >= self.available { self.decide_all() } else { self.decide_limited(limit) }
    }

    /// Everything that is there may go.
    fn decide_all(&self) -> Decision {
        if self.available > self.chunk {
            return Decision::Send { len: self.chunk, fin: false };
        }
        let tail = self.available % self.mss;
        let small_ok =
            self.fin || self.overridden || (!self.cork && (self.no_delay || !self.small_in_flight));
        if tail == 0 || small_ok {
            return Decision::Send { len: self.available, fin: self.fin };
        }
        match self.available - tail {
            0 if self.cork => Decision::Wait(Wait::Cork),
            0 => Decision::Wait(Wait::Nagle),
            len => Decision::Send { len, fin: false },
        }
    }

    /// A window ends before the data does.
    fn decide_limited(&self, limit: u64) -> Decision {
        let by_peer = self.window <= self.budget;
        let wait = Decision::Wait(if by_peer { Wait::Window } else { Wait::Congestion });
        let full = (limit - limit % self.mss).min(self.chunk);
        if full == 0 {
            // Sender's silly window avoidance: at least half of the largest window, or the timer.
            let enough = limit * 2 >= self.window_max || self.overridden;
            return if by_peer && limit > 0 && enough {
                Decision::Send { len: limit, fin: false }
            } else {
                wait
            };
        }
        // With enough in the network to bring more acknowledgements, wait for a larger piece.
        if full < self.chunk && self.pipe > 0 && full * 3 < self.whole {
            return wait;
        }
        Decision::Send { len: full, fin: false }
    }
}

impl Tcp {
    /// Sends what is due for a connection, as far as there is room. What stays due is tried again.
    pub(super) fn send_due(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        let state = self.blocks[i].state();
        let live = &mut self.live[i as usize];
        if !state.has_connection() {
            live.due &= !(due::SYN | due::SEND | due::OVERRIDE | due::PROBE | due::ACK);
            return;
        }
        if live.is_due(due::SYN) {
            if matches!(state, State::SynSent | State::SynReceived) {
                return self.send_syn(cx, i, out);
            }
            live.due &= !due::SYN;
        }
        if live.is_due(due::SEND | due::OVERRIDE) {
            self.send_data(cx, i, out);
        }
        if self.live[i as usize].is_due(due::PROBE) {
            self.send_probe(cx, i, out);
        }
        if self.live[i as usize].is_due(due::ACK) {
            if self.can_acknowledge(i) {
                self.send_acknowledgements(cx, i, out);
            } else {
                self.live[i as usize].due &= !due::ACK;
            }
        }
    }

    fn send_data(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        if !self.blocks[i].state().may_send() || self.live[i as usize].page.is_none() {
            self.live[i as usize].due &= !(due::SEND | due::OVERRIDE);
            return;
        }
        for _ in 0..QUANTUM {
            if !self.has_room(out) {
                return;
            }
            if let Some(range) = self.next_retransmission(i) {
                self.send_segment(cx, i, range, true, out);
                continue;
            }
            if self.has_lost(i) {
                // What was lost goes first, but the window has no room.
                return self.wait_for(cx, i, Wait::Congestion);
            }
            match self.situation(i).decide() {
                Decision::Send { len, fin } => {
                    self.restart_after_idle(cx, i);
                    let start = self.blocks[i].snd_nxt;
                    let end = start + len + fin as u64;
                    self.send_segment(cx, i, Range { start, end }, false, out);
                }
                Decision::Wait(wait) => return self.wait_for(cx, i, wait),
            }
        }
    }

    fn has_lost(&self, i: u32) -> bool {
        let una = self.blocks[i].snd_una;
        self.live[i as usize].recovery.next_lost(una).is_some()
    }

    /// The lost bytes that may be sent again now (RFC 6675 §5 step C).
    fn next_retransmission(&self, i: u32) -> Option<Range> {
        let block = &self.blocks[i];
        let recovery = &self.live[i as usize].recovery;
        let lost = recovery.next_lost(block.snd_una)?;
        let mss = block.segment_size();
        let pipe = recovery.pipe(block.snd_una, block.snd_nxt, mss);
        let mss = mss as u64;
        let budget = (block.congestion.cwnd as u64).saturating_sub(pipe);
        if budget < mss && !recovery.force {
            return None;
        }
        let len = (budget - budget % mss).max(mss).min(self.chunk(i));
        Some(Range { start: lost.start, end: lost.end.min(lost.start + len) })
    }

    /// Largest payload of one `Send`: as many full segments as the device splits, or one.
    fn chunk(&self, i: u32) -> u64 {
        let block = &self.blocks[i];
        let mss = block.segment_size();
        ((block.segment_max / mss).max(1) * mss) as u64
    }

    fn situation(&self, i: u32) -> Situation {
        let block = &self.blocks[i];
        let live = &self.live[i as usize];
        let mss = block.segment_size();
        let pipe = live.recovery.pipe(block.snd_una, block.snd_nxt, mss);
        let cwnd = block.congestion.cwnd as u64;
        let option = |o| live.page.as_ref().is_some_and(|p| p.option(o) != 0);
        Situation {
            available: block.snd_end.saturating_sub(block.snd_nxt),
            fin: block.fin_at != NOWHERE && block.snd_nxt <= block.fin_at,
            window: block.send_window(),
            budget: cwnd.saturating_sub(pipe),
            pipe,
            whole: cwnd.min(block.snd_edge.saturating_sub(block.snd_una)),
            mss: mss as u64,
            chunk: self.chunk(i),
            window_max: block.snd_wnd_max as u64,
            small_in_flight: block.snd_small > block.snd_una,
            no_delay: option(Opt::NoDelay),
            cork: option(Opt::Cork),
            overridden: live.is_due(due::OVERRIDE),
        }
    }

    /// Nothing more goes out now; sees to it that somebody comes back.
    fn wait_for(&mut self, cx: &Context, i: u32, wait: Wait) {
        let live = &mut self.live[i as usize];
        let block = &self.blocks[i];
        live.due &= !(due::SEND | due::OVERRIDE);
        live.window_limited = wait == Wait::Congestion;
        live.cork_at = match wait {
            Wait::Cork => live.cork_at.min(cx.now + CORK_TIME),
            _ => NEVER,
        };
        if wait == Wait::Window && block.flight() == 0 && live.retransmit_at == NEVER {
            live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        }
    }

    /// RFC 5681 §4.1: after an idle time the old window says nothing.
    fn restart_after_idle(&mut self, cx: &Context, i: u32) {
        let live = &self.live[i as usize];
        let block = &mut self.blocks[i];
        let idle = cx.now.saturating_since(live.last_sent);
        if block.flight() == 0 && idle > block.rtt.rto() {
            let mss = block.segment_size();
            block.congestion.on_idle(mss);
        }
    }

    /// Sends the bytes (and the FIN) of `range`. The caller has looked for room.
    fn send_segment(&mut self, cx: &Context, i: u32, range: Range, again: bool, out: &mut Outbox<Out>) {
        let window = self.offer_window(i);
        let options = self.ordinary_options(cx, i);
        let (ttl, tos) = self.hop_options(i);
        let live = &mut self.live[i as usize];
        let block = &self.blocks[i];
        let Some(page) = &live.page else {
            return;
        };
        let fin = range.end > block.fin_at;
        let end = range.end - fin as u64;
        let len = end - range.start;
        let mss = block.segment_size();
        let mut flags = TCP_ACK;
        if end == block.snd_end && len > 0 {
            flags |= TCP_PSH;
        }
        if fin {
            flags |= TCP_FIN;
        }
        let segment = Outgoing {
            payload: page.send_refs(live.pool, block.slot, range.start, len as usize),
            segment_size: if len > mss as u64 { mss as u16 } else { 0 },
            ttl,
            tos,
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
        let epoch = (len > 0).then(|| live.in_flight.add(range.start));
        let sent = self.transmit(cx, out, &segment, |descriptor| match epoch {
            Some(epoch) => Request::Data { block: i, generation, epoch, end, descriptor },
            None => Request::Bare { block: i, generation, descriptor },
        });
        if !sent {
            if let Some(epoch) = epoch {
                self.live[i as usize].in_flight.remove(epoch);
            }
            return;
        }
        self.after_sending(cx, i, range, len, again);
    }

    fn after_sending(&mut self, cx: &Context, i: u32, range: Range, len: u64, again: bool) {
        let live = &mut self.live[i as usize];
        let block = &mut self.blocks[i];
        let mss = block.segment_size() as u64;
        let idle = block.flight() == 0;
        if again {
            let segments = len.div_ceil(mss).max(1);
            cx.add(Counter::RetransmittedSegments as usize, segments);
            cx.add(Counter::RetransmittedBytes as usize, len);
            block.retransmits = block.retransmits.saturating_add(segments as u32);
            live.recovery.on_retransmitted(range, block.snd_una, block.snd_nxt);
            live.timing = None;
        } else {
            cx.add(Counter::SentBytes as usize, len);
            block.snd_nxt = range.end;
            if !len.is_multiple_of(mss) {
                block.snd_small = range.start + len;
            }
            if live.timing.is_none() {
                live.timing = Some((range.end, cx.now));
            }
        }
        if idle {
            live.stuck_since = cx.now;
        }
        if idle || live.retransmit_at == NEVER {
            live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        }
        live.last_sent = cx.now;
        live.due |= due::INFO;
        // What is held out of order needs an acknowledgement of its own, with SACK.
        if block.reassembly.is_empty() && live.duplicate_acks == 0 && live.duplicate.is_none() {
            self.on_acknowledged(i);
        }
    }

    /// Sends an old sequence number: the peer answers with its acknowledgment and window (RFC 9293
    /// §3.8.6.1, §3.8.4).
    fn send_probe(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        if !self.has_room(out) {
            return;
        }
        let window = self.offer_window(i);
        let options = self.ordinary_options(cx, i);
        let block = &self.blocks[i];
        let segment = Outgoing::bare(
            block.tuple,
            block.send_sequence(block.snd_una).wrapping_sub(1),
            block.acknowledgment(),
            TCP_ACK,
            window,
            options.bytes(),
        );
        if self.transmit_bare(cx, out, i, segment) {
            cx.count(Counter::ProbesSent as usize);
            self.live[i as usize].due &= !due::PROBE;
        }
    }

    /// Whether anything keeps the connection's timer running.
    pub(super) fn has_unsent(&self, i: u32) -> bool {
        let block = &self.blocks[i];
        block.snd_nxt < block.snd_end || (block.fin_at != NOWHERE && block.snd_nxt <= block.fin_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Situation = Situation {
        available: 0,
        fin: false,
        window: 1 << 20,
        budget: 1 << 20,
        pipe: 0,
        whole: 1 << 20,
        mss: 1000,
        chunk: 64_000,
        window_max: 1 << 20,
        small_in_flight: false,
        no_delay: false,
        cork: false,
        overridden: false,
    };

    fn send(len: u64) -> Decision {
        Decision::Send { len, fin: false }
    }

    #[test]
    fn large_writes_go_in_the_largest_pieces() {
        let s = Situation { available: 200_000, ..BASE };
        assert_eq!(s.decide(), send(64_000));
    }

    #[test]
    fn nagle_holds_a_second_small_segment() {
        let first = Situation { available: 10, ..BASE };
        assert_eq!(first.decide(), send(10));
        let second = Situation { small_in_flight: true, pipe: 10, ..first };
        assert_eq!(second.decide(), Decision::Wait(Wait::Nagle));
        let mixed = Situation { available: 2_500, ..second };
        assert_eq!(mixed.decide(), send(2_000));
        let no_delay = Situation { no_delay: true, ..second };
        assert_eq!(no_delay.decide(), send(10));
        let last = Situation { fin: true, ..second };
        assert_eq!(last.decide(), Decision::Send { len: 10, fin: true });
    }

    #[test]
    fn cork_holds_even_the_first_and_its_timer_lets_go() {
        let s = Situation { available: 1_010, cork: true, no_delay: true, ..BASE };
        assert_eq!(s.decide(), send(1_000));
        let rest = Situation { available: 10, ..s };
        assert_eq!(rest.decide(), Decision::Wait(Wait::Cork));
        let over = Situation { overridden: true, ..rest };
        assert_eq!(over.decide(), send(10));
    }

    #[test]
    fn silly_windows_are_not_filled() {
        let s = Situation { available: 5_000, window: 300, ..BASE };
        assert_eq!(s.decide(), Decision::Wait(Wait::Window));
        let half = Situation { window_max: 600, ..s };
        assert_eq!(half.decide(), send(300));
        let over = Situation { overridden: true, ..s };
        assert_eq!(over.decide(), send(300));
        let closed = Situation { window: 0, ..over };
        assert_eq!(closed.decide(), Decision::Wait(Wait::Window));
    }

    #[test]
    fn a_small_piece_of_the_window_waits_for_a_larger_one() {
        let s = Situation { available: 100_000, budget: 2_000, pipe: 18_000, whole: 20_000, ..BASE };
        assert_eq!(s.decide(), Decision::Wait(Wait::Congestion));
        let more = Situation { budget: 7_500, pipe: 12_500, ..s };
        assert_eq!(more.decide(), send(7_000));
        let alone = Situation { pipe: 0, budget: 2_000, ..s };
        assert_eq!(alone.decide(), send(2_000));
    }

    #[test]
    fn a_fin_alone_needs_no_window() {
        let s = Situation { fin: true, window: 0, budget: 0, ..BASE };
        assert_eq!(s.decide(), Decision::Send { len: 0, fin: true });
    }
}

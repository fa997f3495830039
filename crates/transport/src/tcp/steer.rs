//! How fast the network delivers ([`super::rate`]), and connections whose congestion control sets a rate by it
//! ([`super::congestion::bbr`]): what it is told, and when.

use super::ack::Heard;
use super::congestion::bbr::{Ack, Bbr, Stage};
use super::connection::Connection;
use super::decide::Wait;
use super::rate::Sample;
use super::recovery::Phase;
use alloc::boxed::Box;
use core::time::Duration;
use eft_base::Instant;
use eft_component::Context;

impl Connection<'_> {
    /// The rate that an acknowledgment shows.
    pub(super) fn measure_rate(&mut self, now: Instant, heard: &Heard) -> Option<Sample> {
        let min_rtt = Duration::from_micros(self.block.rtt.min_us as u64);
        self.live.rate.on_ack(now, heard.delivered.bytes, heard.delivered.newest, min_rtt)
    }

    /// Takes an acknowledgment that showed the loss of `lost` bytes.
    pub(super) fn steer(&mut self, cx: &Context, heard: &Heard, sample: Option<Sample>, lost: u64) {
        let live = &mut *self.live;
        let block = &mut self.block;
        let mss = block.segment_size();
        let in_flight = live.recovery.pipe(mss);
        let ack = Ack {
            now: cx.now,
            sample,
            delivered: live.rate.delivered(),
            acked: heard.delivered.bytes,
            lost,
            prior_in_flight: heard.pipe,
            in_flight,
            rtt_us: heard.delivered.timed_at.map(|at| cx.now.saturating_since(at).as_micros() as u32),
            known_rtt_us: block.rtt.min_us,
            srtt_us: block.rtt.srtt_us,
            mss,
            stage: match live.recovery.phase {
                Phase::Open => Stage::Calm,
                Phase::Recovery => Stage::Recovery,
                Phase::Loss => Stage::Timeout,
            },
            chance: (block.iss as u64).wrapping_add(cx.now.as_nanos()),
        };
        let bbr = live.bbr.get_or_insert_with(|| Box::new(Bbr::new(&block.congestion)));
        bbr.on_ack(&mut block.congestion, &ack);
        if bbr.is_emptying() {
            live.rate.on_limited(in_flight);
        }
    }

    /// What is sent next is stamped; `idle`: nothing is in flight.
    pub(super) fn stamp_sending(&mut self, now: Instant, idle: bool) {
        let live = &mut *self.live;
        if idle
            && live.rate.is_limited()
            && let Some(bbr) = &mut live.bbr
        {
            bbr.on_restart(&self.block.congestion);
        }
        live.recovery.board.stamp = live.rate.on_send(now, idle);
    }

    /// Nothing more goes out now: whether that is for want of data.
    pub(super) fn note_limit(&mut self, wait: Wait, mss: u32, pipe: u64) {
        let live = &mut *self.live;
        if live.recovery.next_lost().is_some() {
            return;
        }
        let has_room = pipe + mss as u64 <= self.block.congestion.cwnd as u64;
        // A full ring holds back an application that has more: so much the connection can send, and whoever waits for more to be
        // delivered (the search for the path's rate) would wait for ever.
        let is_plugged = live.page.as_ref().is_some_and(|page| page.is_plugged());
        if has_room && !is_plugged && matches!(wait, Wait::Application | Wait::Nagle | Wait::Cork) {
            live.rate.on_limited(pipe);
        }
    }
}

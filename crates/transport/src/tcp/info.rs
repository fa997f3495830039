//! The numbers of `TCP_INFO`, from the block, the scoreboard and [`super::statistics`], published in the socket's page.

use super::acknowledge::promisable;
use super::block::{MSS_DEFAULT, NOWHERE, State, bit};
use super::connection::Connection;
use super::live::due;
use super::options::TIMESTAMPS_LEN;
use super::recovery::Phase;
use crate::timers::NEVER;
use core::time::Duration;
use eft_channel::socket::{Opt, SocketInfo, SocketStatistics};
use eft_component::Context;

/// Least time between two updates of a page's numbers.
const INFO_INTERVAL: Duration = Duration::from_millis(100);
/// The largest received segment is reported as this until larger ones come, as on Linux.
const RECEIVED_MSS_MIN: u32 = MSS_DEFAULT as u32;

/// Linux's numbers of `TCP_CA_*`.
mod phase {
    pub const OPEN: u8 = 0;
    pub const DISORDER: u8 = 1;
    pub const CWR: u8 = 2;
    pub const RECOVERY: u8 = 3;
    pub const LOSS: u8 = 4;
}

fn clip(v: u64) -> u32 {
    v.min(u32::MAX as u64) as u32
}

impl Connection<'_> {
    /// Publishes the numbers of `TCP_INFO`: at once if the application asks, else at a limited rate.
    pub(super) fn publish_info(&mut self, cx: &Context) {
        let live = &mut *self.live;
        if !live.is_due(due::INFO | due::ASKED) {
            return;
        }
        let asked = live.is_due(due::ASKED);
        live.due &= !(due::INFO | due::ASKED);
        if let Some(at) = live.info_published
            && cx.now < at + INFO_INTERVAL
            && !asked
        {
            live.info_at = at + INFO_INTERVAL;
            return;
        }
        live.info_published = Some(cx.now);
        live.info_at = NEVER;
        live.statistics.settle(cx.now);
        self.tell_numbers();
        if asked && let Some(page) = &self.live.page {
            page.answer_info();
        }
    }

    /// Publishes the numbers of `TCP_INFO`.
    pub(super) fn tell_numbers(&self) {
        if let Some(page) = &self.live.page {
            page.set_info(&self.info());
            page.set_statistics(&self.statistics());
        }
        self.tell_authentication();
    }

    fn info(&self) -> SocketInfo {
        let b = &*self.block;
        SocketInfo {
            // Linux reports this until the SYN-ACK is acknowledged.
            tcp_state: if self.is_unproven() { State::SynReceived as u32 } else { b.state as u32 },
            rtt_us: b.rtt.srtt_us,
            rttvar_us: b.rtt.rttvar_us,
            rto_us: b.rtt.rto_us(),
            cwnd_bytes: b.congestion.cwnd,
            ssthresh_bytes: b.congestion.ssthresh,
            mss: b.segment_size(),
            retransmits: self.cold.retransmits,
            unacked_bytes: clip(b.flight_size()),
            peer_window: clip(b.snd_edge.saturating_sub(b.snd_una)),
            send_scale: b.send_scale,
            receive_scale: b.receive_scale,
            options: b.has(bit::TIMESTAMPS) as u8
                | (b.has(bit::SACK) as u8) << 1
                | (b.has(bit::SCALED) as u8) << 2
                | (b.hears_of_marks() as u8) << 3
                | (b.has(bit::ECN_SEEN) as u8) << 4
                | (b.has(bit::SYN_DATA) as u8) << 5,
            soft_error: self.cold.soft_error.clamp(0, u16::MAX as i32) as u16,
            soft_errors: self.live.soft_errors,
            unfinished: (b.fin_at != NOWHERE && !b.fin_acknowledged()) as u8,
            reserved: 0,
        }
    }

    fn statistics(&self) -> SocketStatistics {
        let (b, cold, live) = (&*self.block, &*self.cold, &*self.live);
        let board = &live.recovery.board;
        let again = board.sent_again();
        let page = live.page.as_ref();
        let wished = page.map_or(0, |p| p.option(Opt::MaxSegment));
        let options = if b.has(bit::TIMESTAMPS) { TIMESTAMPS_LEN as u32 } else { 0 };
        let own_mss = (self.view().route_mss() as u32).saturating_sub(options);
        let advertised_mss = if wished == 0 { own_mss } else { own_mss.min(wished - options.min(wished)) };
        let window_max = page.map_or(0, |p| promisable(p, b.receive_scale));
        // What Linux expects of a reader before it is measured (`TCP_INIT_CWND` segments).
        let first_space = clip(window_max).min(10 * advertised_mss);
        // An active opener's SYN counts, and so does a FIN, as on Linux.
        let syn = (b.has(bit::CONNECTED) && !b.has(bit::PASSIVE)) as u64;
        let unanswered = b.flight_size() > 0 || matches!(b.state(), State::SynSent | State::SynReceived);
        let model = b.congestion.model();
        // Before the first acknowledgment Linux tells the round trip of the handshake, and that nothing is faster.
        let (pacing_gain, window_gain) = live.bbr.as_ref().map_or((256, 256), |bbr| bbr.gains());
        let path_rtt_us = if model.min_rtt_us == 0 { b.rtt.min_us } else { model.min_rtt_us };
        SocketStatistics {
            incarnation: cold.incarnation,
            phase: match live.recovery.phase {
                Phase::Open if self.is_reduced_for(b.snd_una) => phase::CWR,
                Phase::Open if live.recovery.is_calm() => phase::OPEN,
                Phase::Open => phase::DISORDER,
                Phase::Recovery => phase::RECOVERY,
                Phase::Loss => phase::LOSS,
            },
            timeouts: if unanswered { b.backoff } else { 0 },
            probes: cold.probes,
            backoff: b.backoff,
            heard_at: live.last_heard.as_nanos(),
            bytes_acked: b.snd_una + syn,
            bytes_received: b.rcv_nxt + b.has(bit::RECEIVED_FIN) as u64,
            sacked_bytes: clip(board.sacked()),
            lost_bytes: clip(board.lost() + if live.recovery.phase == Phase::Open { 0 } else { again }),
            again_bytes: clip(again),
            unsent_bytes: clip(b.snd_end.saturating_sub(b.snd_nxt)),
            path_mtu: cold.path_mtu as u32,
            advertised_mss,
            received_mss: live.statistics.counted.received_mss.max(RECEIVED_MSS_MIN.min(own_mss)),
            window_max: clip(window_max),
            window: clip(b.rcv_adv.saturating_sub(b.rcv_nxt)),
            min_rtt_us: b.rtt.min_us,
            backlog: cold.backlog,
            busy: live.statistics.busy as u32,
            told_at: live.statistics.busy_since.as_nanos(),
            pacing_limit: !live.pace.limit,
            pacing_rate: !self.pacing_rate(),
            path_bandwidth: model.bandwidth,
            path_rtt_us,
            receive_rtt_us: live.statistics.arriving.rtt_us(),
            receive_space: live.statistics.arriving.space(first_space),
            pacing_gain,
            window_gain,
            congestion: b.congestion.algorithm + 1,
            ..live.statistics.counted
        }
    }
}

//! The numbers of a connection on which it depends what is sent next.

use super::block::{NOWHERE, bit};
use super::connection::Connection;
use super::decide::Situation;
use super::live::due;
use super::sizing::{MinSegments, Sizing};
use eft_channel::socket::{Opt, cork};

impl Connection<'_> {
    /// Largest payload of one `Send`: as many full segments as the device splits, or one.
    pub(super) fn chunk(&self, least: MinSegments) -> u64 {
        let block = &*self.block;
        let sizing = Sizing {
            mss: block.segment_size(),
            device: self.cold.segment_max,
            window_max: self.cold.snd_wnd_max,
            cwnd: block.congestion.cwnd,
            min_rtt_us: block.rtt.min_us,
            rate: self.pacing_rate(),
        };
        if self.view().is_urgent() || block.has(bit::SIGNED) || block.has(bit::ACCURATE | bit::ECN_REDUCED) {
            // A device that cuts would repeat the urgent pointer and the signature, and send CWR once.
            return sizing.mss as u64;
        }
        sizing.chunk(least)
    }

    pub(super) fn situation(&self, least: MinSegments) -> Situation {
        let block = &*self.block;
        let live = &*self.live;
        let mss = block.segment_size();
        let pipe = live.recovery.pipe(mss);
        let cwnd = block.congestion.cwnd as u64;
        let option = |o| live.page.as_ref().map_or(0, |p| p.option(o));
        let all = block.snd_end.saturating_sub(block.snd_nxt);
        // What lies before the end of a record, if more follows: it goes by itself, and need not wait for that.
        let record = live.records.next_end(block.snd_nxt).map(|end| end - block.snd_nxt).filter(|n| *n < all);
        let available = record.unwrap_or(all);
        let flushed = option(Opt::Flush).wrapping_sub(block.snd_nxt as u32) as u64;
        Situation {
            available,
            fin: record.is_none() && block.fin_at != NOWHERE && block.snd_nxt <= block.fin_at,
            window: block.send_window(),
            budget: cwnd.saturating_sub(pipe),
            pipe,
            whole: cwnd.min(block.snd_edge.saturating_sub(block.snd_una)),
            mss: mss as u64,
            // CWR must be sent once; a device that segments would repeat it, or, if it is a count's, send it once only.
            chunk: if block.has(bit::ECN_REDUCED) { mss as u64 } else { self.chunk(least) },
            window_max: self.cold.snd_wnd_max as u64,
            small_in_flight: block.snd_small > block.snd_una,
            no_delay: option(Opt::NoDelay) != 0,
            cork: self.is_corked(),
            flushed: if flushed <= available { flushed } else { 0 },
            overridden: record.is_some() || live.is_due(due::OVERRIDE) || self.view().is_urgent(),
            patient: !live.is_due(due::PIECE) && live.recovery.is_calm(),
        }
    }

    /// Whether a partial segment waits for more. TCP_CORK holds it until its timer runs out; MSG_MORE also until something is
    /// acknowledged after it was written, as on Linux: then the connection has waited long enough for the rest.
    fn is_corked(&self) -> bool {
        let word = self.live.page.as_ref().map_or(0, |page| page.option(Opt::Cork));
        word & cork::OPTION != 0 || (word & cork::MORE != 0 && self.live.more_released < self.block.snd_end)
    }
}

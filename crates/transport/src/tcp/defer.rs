//! TCP_DEFER_ACCEPT: a connection can be accepted when its first data have come.
//!
//! As on Linux, an acknowledgment without data is dropped meanwhile, and the SYN-ACK is not sent again until the time is nearly over:
//! then the peer's answer completes the handshake. So nothing but the count of time-outs must outlive tcp. A connection that a SYN
//! cookie opens is not deferred, there neither: its handshake has no state whose time could run out.

use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::segment::Segment;
use eft_base::wire::TCP_FIN;
use eft_channel::socket::Opt;
use eft_component::Context;

impl Tcp {
    /// Time-outs of the SYN-ACK for which a passive connection is deferred; 0: it is not.
    fn deferral(&self, i: u32) -> u32 {
        let page = self.listener_of(i).and_then(|listener| self.view(listener).live.page.as_ref());
        page.map_or(0, |page| page.option(Opt::DeferAccept))
    }

    /// The handshake of a passive connection would be complete with this segment. True: it is to wait for data.
    pub(super) fn defers(&mut self, cx: &Context, i: u32, segment: &Segment) -> bool {
        let deferral = self.deferral(i);
        let c = self.connection(i);
        let waits = segment.len == 0 && !segment.has(TCP_FIN) && c.cold.retransmits < deferral;
        if waits {
            c.live.deferred = true;
            cx.count(Counter::DeferredAccepts);
        }
        waits
    }

    /// The SYN-ACK of a passive connection has timed out: what `retries` become, and whether it is sent again.
    pub(super) fn while_deferred(&mut self, i: u32, retries: u32) -> (u32, bool) {
        let deferral = self.deferral(i);
        let c = self.connection(i);
        match c.live.deferred {
            true => (retries.max(deferral), c.cold.retransmits + 1 >= deferral),
            false => (retries, true),
        }
    }
}

impl Connection<'_> {
    /// Waits on without sending anything.
    pub(super) fn wait_for_data(&mut self, cx: &Context) {
        self.live.retransmit_at = cx.now + self.block.rtt.backed_off(self.block.backoff as u32);
        self.rearm();
    }
}

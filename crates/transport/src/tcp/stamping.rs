//! Takes the times of sends and receives that the application wants to know (SO_TIMESTAMPING).

use super::connection::Connection;
use super::live::due;
use super::stamps::Event;
use eft_base::Instant;
use eft_channel::socket::{Opt, stamping};

impl Connection<'_> {
    /// Takes new requests from the page.
    pub(super) fn read_stamp_requests(&mut self) {
        let live = &mut *self.live;
        if let Some(page) = &live.page
            && page.option(Opt::Timestamping) != 0
        {
            live.stamps.read(page, self.block.snd_una);
        }
    }

    /// A segment that ends at `end` was given to ip.
    pub(super) fn stamp_scheduled(&mut self, now: Instant, end: u64) {
        self.stamp(now, end, Event::Scheduled);
    }

    /// A device had it.
    pub(super) fn stamp_sent(&mut self, now: Instant, end: u64) {
        self.stamp(now, end, Event::Sent);
    }

    /// The peer has everything up to `una`.
    pub(super) fn stamp_acknowledged(&mut self, now: Instant, una: u64) {
        self.stamp(now, una, Event::Acknowledged);
        self.live.stamps.forget(una);
    }

    fn stamp(&mut self, now: Instant, end: u64, event: Event) {
        let live = &mut *self.live;
        if live.stamps.is_empty() {
            return;
        }
        let Some(page) = &live.page else {
            return;
        };
        let mut told = false;
        live.stamps.reached(now, end, event, |stamp| told |= page.put_stamp(&stamp));
        if told {
            self.mark(due::READABLE | due::TELL);
        }
    }

    /// Bytes came in order.
    pub(super) fn stamp_received(&mut self, now: Instant) {
        if let Some(page) = &self.live.page
            && page.option(Opt::Timestamping) & stamping::RX_ANY != 0
        {
            page.set_received_at(now.as_nanos());
        }
    }
}

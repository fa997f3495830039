//! Times of sends and receives that the application wants to know (SO_TIMESTAMPING), and completions of sends with MSG_ZEROCOPY,
//! of which the shim needs no more than that its waiters wake.
//!
//! As on Linux, times are no promise: they are lost with this life, and if too many wait for the application.

use super::engine::Udp;
use super::live::due;
use eft_base::Instant;
use eft_channel::socket::{DatagramHeader, Opt, Stamp, stamped, wanted};

impl Udp {
    /// A datagram is given to ip. Returns its number if the application wants to know when a device has it, too.
    pub(super) fn stamp_scheduled(&mut self, now: Instant, i: u32, header: &DatagramHeader) -> Option<u16> {
        if header.stamps & wanted::SCHEDULED != 0 {
            self.stamp(now, i, header.interface, stamped::SCHEDULED);
        }
        (header.stamps & wanted::SENT != 0).then_some(header.interface)
    }

    /// A device had it.
    pub(super) fn stamp_sent(&mut self, now: Instant, i: u32, number: u16) {
        self.stamp(now, i, number, stamped::SENT);
    }

    fn stamp(&mut self, now: Instant, i: u32, number: u16, kind: u32) {
        if self.live[i as usize].stamps.put(Stamp { at: now.as_nanos(), end: number.into(), kind }) {
            self.mark(i, 0);
        }
    }

    /// Gives the application what its page has room for: the times of a turn together.
    pub(super) fn tell_stamps(&mut self, i: u32) {
        let live = &mut self.live[i as usize];
        if let Some(page) = &live.page
            && live.stamps.give(|stamps| page.put_stamps(stamps))
        {
            live.due |= due::READABLE;
        }
    }

    /// The application has sent with MSG_ZEROCOPY: who waits for completions is woken.
    pub(super) fn tell_completions(&mut self, i: u32) {
        let live = &mut self.live[i as usize];
        let count = live.page.as_ref().map_or(0, |page| page.option(Opt::ZeroCopySends));
        if core::mem::replace(&mut live.completions, count) != count {
            self.mark(i, due::READABLE);
        }
    }
}

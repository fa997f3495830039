//! Notifies the application: of what, and when.
//!
//! Waking a program costs tcp 13 us (docs/performance.md) and the program a sleep. While bulk data flows, the
//! notification of readable bytes is therefore delayed until a good part has come, or for a moment, like interrupt
//! moderation in network interfaces. Requests and answers never wait, since they are not part of a run.

use super::block::{NONE, bit};
use super::connection::Connection;
use super::live::{Live, due};
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;
use eft_component::transport::Effect;
use eft_component::{Context, Outbox};

/// A run is bulk after this many bytes without a pause.
const BULK: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(1);
/// The notification waits until this many bytes are unread …
const HOLD_BYTES: usize = 512 << 10;
/// … or for this long.
const HOLD: Duration = Duration::from_micros(200);

impl Live {
    /// Notes that `len` bytes came in order.
    pub(super) fn note_run(&mut self, now: Instant, len: u64) {
        if now.saturating_since(self.run_at) > PAUSE {
            self.run_bytes = 0;
        }
        self.run_at = now;
        self.run_bytes = self.run_bytes.saturating_add(len);
    }

    /// Whether the notification of readable bytes should wait; sets the time at which it no longer does.
    fn delays_notification(&mut self, now: Instant) -> bool {
        let unread = self.page.as_ref().map_or(0, |p| p.receivable());
        let hold = self.run_bytes >= BULK && unread < HOLD_BYTES;
        self.tell_at = if hold { self.tell_at.min(now + HOLD) } else { NEVER };
        hold
    }
}

impl Connection<'_> {
    /// Emits the effects that are due, if the application has a descriptor to show them on.
    pub(super) fn tell(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        let block = &*self.block;
        // Whoever takes one from its listener's ring may wait on its page before this hears of it.
        let attached = (block.has(bit::ATTACHED) || block.has(bit::QUEUED))
            && !block.has(bit::ORPHAN)
            && block.slot != NONE;
        let effects =
            due::READABLE | due::TELL | due::WRITABLE | due::END_OF_STREAM | due::HANG_UP | due::URGENT;
        let live = &mut *self.live;
        let what = live.due & effects;
        live.due &= !effects;
        if !attached {
            live.tell_at = NEVER;
        } else if what != 0 {
            let at_once = what & (due::TELL | due::END_OF_STREAM | due::HANG_UP) != 0;
            let readable = what & due::READABLE != 0 && (at_once || !live.delays_notification(cx.now));
            let readable = readable && !self.view().has_only_urgent();
            let socket = self.socket();
            // First, since it shows the final state at once: a program that wakes sees all of it.
            if what & due::HANG_UP != 0 {
                out.push(Out::Effect(Effect::HangUp(socket)));
            }
            if readable {
                out.push(Out::Effect(Effect::Readable(socket)));
            }
            if what & due::WRITABLE != 0 && self.has_room_for_writer() {
                out.push(Out::Effect(Effect::Writable(socket)));
            }
            // Who is signalled finds the byte, if it has come, and what precedes it.
            if what & due::URGENT != 0 {
                out.push(Out::Effect(Effect::Urgent(socket)));
            }
            if what & due::END_OF_STREAM != 0 {
                out.push(Out::Effect(Effect::EndOfStream(socket)));
            }
        }
        self.publish_info(cx);
    }
}

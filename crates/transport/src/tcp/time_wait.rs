//! Segments in TIME-WAIT (RFC 9293 §3.10.7.4; RFC 1337: resets are ignored; RFC 6191: a plainly new SYN is let in).

use super::acceptable::is_old;
use super::block::{Block, bit};
use super::connection::View;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::segment::Segment;
use crate::edge::Out;
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
use eft_component::{Context, Outbox};

impl Tcp {
    pub(super) fn receive_in_time_wait(
        &mut self,
        cx: &Context,
        i: u32,
        segment: &Segment,
        out: &mut Outbox<Out>,
    ) {
        if segment.has(TCP_RST) {
            return;
        }
        let View { block, cold, .. } = self.view(i);
        if segment.has(TCP_SYN) && !segment.has(TCP_ACK) {
            let new = is_new(block, segment) && block.slot == super::block::NONE;
            if new && self.ports.listener(&segment.tuple).is_some() {
                cx.count(Counter::TimeWaitReused);
                self.end_time_wait(cx, i);
                return self.receive_segment(cx, segment, out);
            }
            return self.connection(i).challenge(cx);
        }
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let exact = end == block.acknowledgment();
        if exact
            && segment.has(TCP_FIN)
            && block.may_acknowledge(segment.ack, cold.snd_wnd_max)
            && !is_old(block, segment, cx.now)
        {
            // The peer repeats its FIN: our last acknowledgement was lost.
            let mut c = self.connection(i);
            c.mark(due::ACK);
            c.restart_time_wait(cx.now);
        } else if !exact || segment.sequence_len() > 0 {
            self.connection(i).answer_stray(cx.now);
        }
    }
}

/// Whether a SYN plainly begins a connection after the one that waits (RFC 6191 §2, RFC 9293 §3.6.1).
fn is_new(block: &Block, segment: &Segment) -> bool {
    let beyond = segment.seq.wrapping_sub(block.acknowledgment()) as i32 >= 0;
    match segment.options.timestamps {
        Some((value, _)) if block.has(bit::TIMESTAMPS) => {
            let newer = value.wrapping_sub(block.ts_recent) as i32;
            newer > 0 || (newer == 0 && beyond)
        }
        _ => beyond,
    }
}

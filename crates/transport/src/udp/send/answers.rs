//! Answers of ip about datagrams.

use crate::edge::Out;
use crate::udp::asked::Request;
use crate::udp::counters::Counter;
use crate::udp::engine::Udp;
use crate::udp::live::due;
use eft_base::RequestId;
use eft_channel::rounds::REPEATED;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;

impl Udp {
    /// Releases ring space to which ip no longer refers.
    pub(super) fn release_ring(&mut self, i: u32) {
        let block = &mut self.blocks[i];
        let live = &self.live[i as usize];
        let released = block.sent.min(live.in_flight.lowest());
        if released > block.released {
            block.released = released;
            if let Some(page) = &live.page {
                page.set_send_released(released);
                self.mark(i, due::WRITABLE);
            }
        }
    }

    /// ip is done with a datagram.
    pub(in crate::udp) fn receive_sent(&mut self, cx: &Context, id: RequestId, errno: i32) {
        let Some(&Request::Datagram { block, generation, group, descriptor, stamp }) = self.requests.get(id)
        else {
            return cx.count(Counter::StaleReplies);
        };
        self.requests.remove(id);
        self.headers.free(descriptor);
        if errno != 0 {
            cx.count(Counter::SendErrors);
        }
        if self.blocks[block].generation != generation {
            return;
        }
        self.live[block as usize].in_flight.remove(group);
        self.release_ring(block);
        match (errno, stamp) {
            (0, Some(number)) => self.stamp_sent(cx.now, block, number),
            (0, None) => {}
            _ => self.set_error(block, errno),
        }
        self.finish_orphan(cx, block);
    }

    /// ip was reborn: everything unanswered is sent again, in order.
    pub(in crate::udp) fn resubmit(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        self.routes.clear();
        self.requests.renew();
        for (id, request) in self.requests.iter() {
            cx.count(Counter::Resubmitted);
            out.push(Out::Ip(request.message(id)));
        }
    }

    /// Repeats what ip has not answered for long: a lost answer would hold slots and rings for ever.
    pub(in crate::udp) fn repeat_requests(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        for id in self.requests.next_round(REPEATED.min(out.room(ComponentId::IP))) {
            if let Some(message) = self.requests.get(id).map(|request| request.message(id)) {
                cx.count(Counter::Repeated);
                out.push(Out::Ip(message));
            }
        }
    }
}

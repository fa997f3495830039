//! What is asked of transports, and asked again: of a successor, and of one that does not answer.

use super::{Out, Pending, Sockets, Waiting};
use crate::counters::Counter;
use eft_base::RequestId;
use eft_channel::rounds::REPEATED;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::SocketsToTransport;

impl Sockets {
    pub(super) fn submit(
        &mut self,
        transport: ComponentId,
        waiting: Waiting,
        build: impl Fn(RequestId) -> SocketsToTransport,
        out: &mut Outbox<Out>,
    ) {
        // The message contains its request id, which is allocated here.
        let unnumbered = build(RequestId::default());
        let Ok(request) =
            self.pending.insert(Pending { transport, waiting, message: unnumbered, doubted: false })
        else {
            return;
        };
        let message = build(request);
        if let Some(p) = self.pending.get_mut(request) {
            p.message = message;
        }
        out.push(Out::Transport(transport, message));
    }

    /// `peer` has a successor, which gets what its predecessor did not answer.
    pub(super) fn resubmit(&mut self, peer: ComponentId, out: &mut Outbox<Out>) {
        for (_, p) in self.pending.iter().filter(|(_, p)| p.transport == peer) {
            out.push(Out::Transport(peer, p.message));
        }
    }

    /// Repeats what a transport has not answered for long: a program would wait for ever for a lost answer, and a socket whose
    /// `Close` was lost would never end. The end of a domain may take long, and is then repeated in vain.
    pub(super) fn repeat_requests(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        if !self.rounds.expire(cx.now) {
            return;
        }
        for id in self.pending.next_round(REPEATED) {
            let Some(p) = self.pending.get(id).filter(|p| out.room(p.transport) > 0) else { continue };
            cx.count(Counter::Repeated);
            out.push(Out::Transport(p.transport, p.message));
        }
    }
}

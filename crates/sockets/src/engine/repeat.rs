//! What is asked of transports, and asked again: of a successor, and of one that does not answer.

use super::{Out, Pending, Sockets, Waiting};
use crate::counters::Counter;
use eft_base::{RequestId, SocketId};
use eft_channel::rounds::REPEATED;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};

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
        let Ok(request) = self.pending.insert(Pending { transport, waiting, message: unnumbered }) else {
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

    /// Takes out the request that a transport answers. An answer about another socket than was asked about, to the end of another
    /// one of its slot, or a new socket in a slot that is in use, is damaged: the request waits, and is repeated.
    pub(super) fn take_answered(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        answer: &TransportToSockets,
    ) -> Option<Pending> {
        let TransportToSockets::Reply { request, errno, socket, incarnation, .. } = *answer;
        let Some(pending) = self.pending.get(request).filter(|p| p.transport == from) else {
            cx.count(Counter::StaleReplies);
            return None;
        };
        if !self.fits(&pending.message, errno, socket, incarnation) {
            cx.count(Counter::DamagedReplies);
            return None;
        }
        self.pending.remove(request)
    }

    fn fits(&self, message: &SocketsToTransport, errno: i32, socket: SocketId, incarnation: u32) -> bool {
        let (_, asked) = message.asks();
        let slot_fits = match message {
            SocketsToTransport::Open { .. } => {
                errno != 0 || !self.open.contains_key(&(socket.domain, socket.slot))
            }
            SocketsToTransport::CloseDomain { .. } => true,
            // A transport of an older version names none.
            SocketsToTransport::Close { incarnation: asked, .. } if ![0, *asked].contains(&incarnation) => {
                false
            }
            _ => socket.slot == asked.slot,
        };
        (0..=ERRNO_MAX).contains(&errno) && socket.domain == asked.domain && slot_fits
    }
}

/// No errno of Linux is larger (`MAX_ERRNO` of its `include/linux/err.h`).
const ERRNO_MAX: i32 = 4095;

//! Which answers of transports are believed. A changed bit makes another request of one, or another answer of one, and who
//! believes it leaves a socket behind that nobody closes, or takes one from a program.

use super::{Out, Pending, Sockets, Waiting};
use crate::counters::Counter;
use eft_base::SocketId;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};

/// No errno of Linux is larger (`MAX_ERRNO` of its `include/linux/err.h`).
const ERRNO_MAX: i32 = 4095;

/// What is thought of an answer.
#[derive(PartialEq)]
enum Belief {
    Sure,
    /// It may be the answer to what a damaged request asked. The request is idempotent, and is asked once more.
    Doubtful,
    /// The request waits, and is repeated.
    Damaged,
}

impl Sockets {
    /// Takes out the request that a transport answers, if the answer is believed.
    pub(super) fn take_answered(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        answer: &TransportToSockets,
        out: &mut Outbox<Out>,
    ) -> Option<Pending> {
        let TransportToSockets::Reply { request, .. } = *answer;
        let Some(pending) = self.pending.get(request).filter(|p| p.transport == from) else {
            cx.count(Counter::StaleReplies);
            self.close_unclaimed(from, answer, out);
            return None;
        };
        let (message, doubted) = (pending.message, pending.doubted);
        match self.belief(from, &message, answer) {
            Belief::Damaged => {
                cx.count(Counter::DamagedReplies);
                self.close_unclaimed(from, answer, out);
                return None;
            }
            Belief::Doubtful if !doubted => {
                cx.count(Counter::AskedTwice);
                self.pending.get_mut(request)?.doubted = true;
                out.push(Out::Transport(from, message));
                return None;
            }
            Belief::Doubtful | Belief::Sure => {}
        }
        self.pending.remove(request)
    }

    /// An answer about another socket than was asked about, or to the end of another one of its slot, is damaged.
    fn belief(&self, from: ComponentId, message: &SocketsToTransport, answer: &TransportToSockets) -> Belief {
        let TransportToSockets::Reply { errno, socket, incarnation, .. } = *answer;
        let (_, asked) = message.asks();
        if !(0..=ERRNO_MAX).contains(&errno) || socket.domain != asked.domain {
            return Belief::Damaged;
        }
        let is_sure = match *message {
            SocketsToTransport::Open { .. } => {
                if errno == 0 && self.open.contains_key(&(socket.domain, socket.slot)) {
                    return Belief::Damaged;
                }
                // The program would be told of a slot that is not its own, and what was opened for it stay behind.
                errno == 0 && self.is_new(from, socket, incarnation)
            }
            SocketsToTransport::CloseDomain { .. } => true,
            _ if socket.slot != asked.slot => return Belief::Damaged,
            // Nobody refuses that. A transport of an older version names no incarnation.
            SocketsToTransport::Close { incarnation: asked, .. } => {
                if errno != 0 || ![0, asked].contains(&incarnation) {
                    return Belief::Damaged;
                }
                true
            }
            // A program would lose its connection, if it has it still.
            SocketsToTransport::Attached { incarnation: asked, .. } => {
                let open = self.open.get(&(socket.domain, socket.slot));
                errno == 0 || open.is_none_or(|open| open.incarnation != Some(asked))
            }
            SocketsToTransport::Bind { incarnation: asked, .. }
            | SocketsToTransport::Listen { incarnation: asked, .. }
            | SocketsToTransport::Connect { incarnation: asked, .. }
            | SocketsToTransport::Restore { incarnation: asked, .. }
            | SocketsToTransport::Membership { incarnation: asked, .. } => errno == 0 || incarnation == asked,
        };
        if is_sure { Belief::Sure } else { Belief::Doubtful }
    }

    /// Whether the page of this slot says that the transport has made this socket, and that no descriptor is its own.
    fn is_new(&self, from: ComponentId, socket: SocketId, incarnation: u32) -> bool {
        // Of a domain that has ended: the transport is told so, and closes what it has of it.
        !self.domains.contains_key(&socket.domain)
            || self.page(socket).is_some_and(|page| {
                page.owner() == Some(from) && page.incarnation() == incarnation && page.inode() == 0
            })
    }

    /// Closes what a transport opened for a damaged `Open`: the answer fits no request, and nobody has the socket. A connection
    /// that waits to be accepted has flags in its page.
    fn close_unclaimed(&mut self, from: ComponentId, answer: &TransportToSockets, out: &mut Outbox<Out>) {
        let TransportToSockets::Reply { errno, socket, incarnation, .. } = *answer;
        let is_unclaimed = errno == 0
            && self.domains.contains_key(&socket.domain)
            && !self.open.contains_key(&(socket.domain, socket.slot))
            && !self.closing.contains_key(&socket)
            && self.is_new(from, socket, incarnation)
            && self.page(socket).is_some_and(|page| page.flags() == 0);
        if is_unclaimed {
            let build = |request| SocketsToTransport::Close { request, socket, incarnation };
            self.submit(from, Waiting::Close(incarnation), build, out);
        }
    }
}

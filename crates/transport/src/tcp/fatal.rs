//! Inputs that have killed two lives: each input is recorded in the [docket](eft_arena::docket) before it runs, and a condemned one
//! is refused. A condemned segment is dropped; any other condemned input resets its connection.

use super::counters::Counter;
use super::engine::Tcp;
use crate::edge::{In, Out};
use crate::requests::Transport as _;
use eft_arena::docket::{Kind, Note};
use eft_base::Protection;
use eft_base::errno::ECONNABORTED;
use eft_component::{Context, Outbox};
use eft_messages::sockets::SocketsToTransport;
use eft_messages::transport::{IpToTransport, TransportToIp};

impl Tcp {
    /// Records that an input of a connection runs from now on. False: it has killed two predecessors, and must not run.
    /// A connection from before the crash is revived before.
    pub(super) fn enter(&mut self, cx: &Context, kind: Kind, i: u32, content: &[u64]) -> bool {
        if kind != Kind::Revive && !self.revive_if_due(cx, i) {
            return false;
        }
        if self.protection == Protection::Off {
            return true;
        }
        let note = Note::of(kind, i, self.block(i).generation, content);
        if self.docket.is_condemned(note) {
            cx.count(Counter::DropFatal);
            return false;
        }
        self.docket.name(note);
        true
    }

    /// The same for work that depends on the connection's state and not on an input's content.
    pub(super) fn enter_state(&mut self, cx: &Context, kind: Kind, i: u32) -> bool {
        let b = self.block(i);
        let content = [b.snd_una, b.snd_nxt, b.rcv_nxt, b.state as u64];
        self.enter(cx, kind, i, &content)
    }

    /// Resets a connection of which an input has killed two predecessors.
    pub(super) fn give_up(&mut self, cx: &Context, i: u32) {
        if self.free.contains(i) {
            return;
        }
        let before = self.view(i).block.state;
        self.abort_later(cx, i, ECONNABORTED);
        if self.view(i).block.state == before {
            // It was over, and had something left to send.
            self.connection(i).live.due = 0;
        }
    }

    /// Answers a message without handling it. Its request is refused, and its connection reset.
    pub(super) fn refuse_fatal(&mut self, cx: &Context, message: In, out: &mut Outbox<Out>) {
        match message {
            In::Ip(IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. }) => {
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            In::Ip(
                IpToTransport::Sent { .. } | IpToTransport::Routed { .. } | IpToTransport::Grouped { .. },
            ) => {}
            In::Sockets(message) => {
                let (request, socket) = message.asks();
                if let Some(i) = self.find_socket(socket) {
                    match message {
                        SocketsToTransport::Close { .. } => self.release(cx, i),
                        _ => self.give_up(cx, i),
                    }
                }
                self.reply(out, request, ECONNABORTED, socket, None);
            }
        }
    }
}

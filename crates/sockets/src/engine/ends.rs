//! The ends of sockets and domains.

use super::{Domain, Open, Out, Pending, Sockets, Waiting};
use crate::counters::Counter;
use alloc::vec::Vec;
use eft_base::{DomainId, SocketId};
use eft_component::sockets::Effect;
use eft_component::{Context, Outbox};
use eft_messages::sockets::SocketsToTransport;

impl Sockets {
    /// A socket's last descriptor was closed. While its transport takes nothing, this waits: what is dropped is forgotten by
    /// everybody, and a successor of this server would not close it.
    pub(super) fn closed(&mut self, cx: &mut Context, socket: SocketId, out: &mut Outbox<Out>) {
        self.examine(socket, out);
        let Some(open) = self.open.get(&(socket.domain, socket.slot)) else { return };
        match out.room(open.transport) {
            0 => drop(self.unclosed.insert(socket)),
            _ => self.close(cx, socket, out),
        }
    }

    /// A connection that has no descriptor here, as far as its page says the truth. It is closed like one whose descriptor is.
    pub(super) fn released(&mut self, cx: &mut Context, socket: SocketId, out: &mut Outbox<Out>) {
        let place = (socket.domain, socket.slot);
        let page = self.domains.get(&socket.domain).and_then(|domain| domain.arena.socket(socket.slot));
        let Some(page) = page.filter(|_| !self.open.contains_key(&place)) else { return };
        let Some(transport) = page.owner().filter(|owner| self.transports.contains(owner)) else { return };
        self.open.insert(place, Open { transport, incarnation: Some(page.incarnation()) });
        self.closed(cx, socket, out);
    }

    /// Closes what was closed while a transport took nothing.
    pub(super) fn close_the_rest(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        for socket in core::mem::take(&mut self.unclosed) {
            self.closed(cx, socket, out);
        }
    }

    fn close(&mut self, cx: &mut Context, socket: SocketId, out: &mut Outbox<Out>) {
        let Some(Open { transport, incarnation }) = self.open.remove(&(socket.domain, socket.slot)) else {
            return;
        };
        let incarnation = incarnation.unwrap_or_default();
        cx.count(Counter::Closed);
        for (further, ..) in self.beside(socket, out) {
            self.closed(cx, further, out);
        }
        if let Some(f) = self.domains.get_mut(&socket.domain) {
            f.listeners.remove(&socket.slot);
        }
        let build = |request| SocketsToTransport::Close { request, socket, incarnation };
        self.submit(transport, Waiting::Close(incarnation), build, out);
        // If the transport and this server die before the request is read, nobody knows of it. So the far end is kept until the
        // answer: who is given it as a successor closes the socket again, or finds that the slot has its next one.
        self.closing.insert(socket, incarnation);
        out.push(Out::Effect(Effect::Leave(socket)));
    }

    /// The transport has closed this incarnation. Its far end is dropped, unless the slot's next socket has replaced it.
    pub(super) fn has_closed(&mut self, socket: SocketId, incarnation: u32, out: &mut Outbox<Out>) {
        if self.closing.get(&socket) == Some(&incarnation) {
            self.closing.remove(&socket);
            out.push(Out::Effect(Effect::Drop(socket)));
        }
    }

    pub(super) fn domain_closed(&mut self, cx: &mut Context, domain: DomainId, out: &mut Outbox<Out>) {
        let open = self.open.range((domain, 0)..=(domain, u32::MAX));
        let slots: Vec<u32> = open.map(|((_, slot), _)| *slot).collect();
        for slot in slots {
            let socket = SocketId { domain, slot };
            self.unclosed.remove(&socket);
            self.examine(socket, out);
            // The end of the domain would close it in any case.
            self.close(cx, socket, out);
        }
        if let Some(Domain { pool, .. }) = self.domains.remove(&domain) {
            let socket = SocketId { domain, slot: 0 };
            for transport in self.transports.clone() {
                let build = |request| SocketsToTransport::CloseDomain { request, socket, pool };
                self.submit(transport, Waiting::DomainEnd(domain), build, out);
            }
        }
        cx.gauge(Counter::Domains, self.domains.len() as u64);
    }

    /// One transport has nothing of this domain left; the arena is released when the last one has
    /// answered.
    pub(super) fn domain_ended(&mut self, domain: DomainId, out: &mut Outbox<Out>) {
        let waits = |p: &Pending| matches!(p.waiting, Waiting::DomainEnd(f) if f == domain);
        if !self.pending.iter().any(|(_, p)| waits(p)) {
            out.push(Out::Effect(Effect::DomainGone(domain)));
        }
    }
}

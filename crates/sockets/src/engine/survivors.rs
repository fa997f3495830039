//! Sockets of a predecessor. Their pages say more about them, and a page that is touched for the first time costs
//! microseconds: it is read when something happens to its socket, or a few in each turn.

use super::{Out, Sockets};
use alloc::collections::VecDeque;
use eft_base::{ComponentId, DomainId, SocketId};
use eft_channel::socket::flag;
use eft_component::Outbox;
use eft_component::sockets::Effect;

/// Pages that are read in one turn, beside those of sockets to which something happens.
const EXAMINED_PER_TURN: usize = 64;

/// A socket with a descriptor in an application.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// The transport that owns it.
    pub transport: ComponentId,
    /// The incarnation of its slot; `None`: its page says it.
    pub incarnation: Option<u32>,
}

impl Sockets {
    /// Takes over a predecessor's socket.
    pub(super) fn survived(&mut self, socket: SocketId, transport: ComponentId) {
        let known = self.domains.get(&socket.domain).is_some_and(|d| d.arena.socket(socket.slot).is_some());
        if known {
            self.open.insert((socket.domain, socket.slot), Open { transport, incarnation: None });
            self.unexamined.push_back(socket);
        }
    }

    /// Reads in the page of a predecessor's socket which incarnation it is: an application that writes another one there
    /// only makes its own socket unreachable. And whether it listens. If the slot has its next socket, of which nobody has a
    /// descriptor yet, the predecessor died after the transport had freed the slot and before it had dropped the descriptor.
    pub(super) fn examine(&mut self, socket: SocketId, out: &mut Outbox<Out>) {
        let place = (socket.domain, socket.slot);
        let Some(open) = self.open.get_mut(&place) else { return };
        let Some(domain) = self.domains.get_mut(&socket.domain).filter(|_| open.incarnation.is_none()) else {
            return;
        };
        let Some(page) = domain.arena.socket(socket.slot) else { return };
        // In this order: a transport clears the inode before it writes the next incarnation.
        open.incarnation = Some(page.incarnation());
        if page.inode() == 0 {
            self.open.remove(&place);
            out.push(Out::Effect(Effect::Drop(socket)));
        } else if page.flags() & flag::LISTENING != 0 && !page.is_further() {
            domain.listeners.insert(socket.slot);
        }
    }

    pub(super) fn examine_some(&mut self, out: &mut Outbox<Out>) {
        for _ in 0..EXAMINED_PER_TURN {
            let Some(socket) = self.unexamined.pop_front() else { return };
            self.examine(socket, out);
        }
    }

    /// Its listeners are counted.
    pub(super) fn examine_domain(&mut self, domain: DomainId, out: &mut Outbox<Out>) {
        let all = core::mem::take(&mut self.unexamined);
        let (its, others): (VecDeque<_>, _) = all.into_iter().partition(|socket| socket.domain == domain);
        self.unexamined = others;
        its.into_iter().for_each(|socket| self.examine(socket, out));
    }
}

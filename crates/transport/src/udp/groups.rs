//! udp and groups: requests about memberships, ip's answers, and who gets a datagram to a group or a broadcast.

use super::counters::Counter;
use super::durable::bit;
use super::engine::Udp;
use super::memberships::Change;
use crate::edge::Out;
use crate::requests::{MembershipChange, Transport as _};
use core::net::IpAddr;
use eft_base::{RequestId, WireAddress};
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{TransportToSockets, membership};

impl Udp {
    /// Whether an address is everybody's or a group's: a socket may be bound to it, and does not send from it.
    pub(super) fn is_group(&self, address: WireAddress) -> bool {
        IpAddr::from(address).is_multicast() || self.addresses.is_broadcast(address)
    }

    pub(super) fn request_membership(
        &mut self,
        request: RequestId,
        i: u32,
        wanted: MembershipChange,
        out: &mut Outbox<Out>,
    ) {
        let MembershipChange { token, change, interface, group, source } = wanted;
        if self.memberships.is_short(i) {
            self.grow();
        }
        let change = Change { token, change, place: (interface, group), source };
        let generation = self.blocks[i].generation;
        let errno = self.memberships.request(i, generation, change);
        // Once it has something durable, the request that opened it is not repeated.
        self.blocks[i].open_request = 0;
        if wanted.change == membership::FILTER_TELL {
            return self.tell_filter(request, i, errno, change, out);
        }
        if errno != 0 || self.memberships.await_told(i, generation, request, change.place) {
            let socket = self.socket(i);
            self.reply(out, request, errno, socket, Some(i));
        }
    }

    fn tell_filter(&self, request: RequestId, i: u32, errno: i32, asked: Change, out: &mut Outbox<Out>) {
        let (address, port) = self.memberships.tell_filter(i, asked.place, asked.source);
        let (socket, incarnation) = (self.socket(i), self.place(i).incarnation);
        let reply =
            TransportToSockets::Reply { request, errno, socket, incarnation, address, port, taken: 0 };
        out.push(Out::Sockets(reply));
    }

    pub(super) fn receive_grouped(&mut self, cx: &Context, order: u32) {
        if !self.memberships.stepped(order) {
            cx.count(Counter::StaleReplies);
        }
    }

    /// Repeats the step about groups that ip has not answered for long.
    pub(super) fn repeat_step(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        if let Some(message) = self.memberships.repeated_step().filter(|_| out.room(ComponentId::IP) > 0) {
            cx.count(Counter::Repeated);
            out.push(Out::Ip(message));
        }
    }

    /// Tells ip what has changed about groups, and sockets what ip knows.
    pub(super) fn tell_groups(&mut self, out: &mut Outbox<Out>) {
        for (i, generation, request) in self.memberships.take_answers() {
            if self.blocks[i].generation == generation {
                let socket = self.socket(i);
                self.reply(out, request, 0, socket, Some(i));
            }
        }
        if out.room(ComponentId::IP) > 0
            && let Some(message) = self.memberships.next_step()
        {
            out.push(Out::Ip(message));
        }
    }

    /// Whether a socket wants a datagram to a group.
    pub(super) fn admits(&self, i: u32, interface: u8, group: WireAddress, source: WireAddress) -> bool {
        let others_suffice =
            self.live[i as usize].page.as_ref().is_none_or(|p| p.option(Opt::OwnGroupsOnly) == 0);
        self.blocks[i].has(bit::USED) && self.memberships.admit(i, (interface, group), source, others_suffice)
    }
}

//! Memberships through requests of sockets, across deaths, and what members receive.

use crate::allocations::allocations;
use crate::host::*;
use eft_base::errno::{EADDRINUSE, EADDRNOTAVAIL};
use eft_base::{SocketId, WireAddress};
use eft_channel::socket::Opt;
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, membership, reuse};
use eft_messages::transport::{SEND_HOST_ONLY, SEND_NO_LOOP, membership as step};

pub const GROUP: [u8; 4] = [239, 1, 2, 3];

impl Host {
    pub fn change(&mut self, socket: SocketId, token: u16, change: u8, source: [u8; 4]) -> i32 {
        let (incarnation, group, source) = (self.page(socket).incarnation(), v4(GROUP), v4(source));
        let interface = 0;
        self.ask(|request| SocketsToTransport::Membership {
            request,
            socket,
            incarnation,
            token,
            change,
            interface,
            group,
            source,
        })
        .0
    }

    fn told(&mut self) -> Vec<(u8, WireAddress)> {
        std::mem::take(&mut self.steps).into_iter().map(|(step, _, group, _)| (step, group)).collect()
    }
}

fn members(h: &mut Host) -> [SocketId; 2] {
    h.told();
    let both = [h.open(), h.open()];
    for s in both {
        assert_eq!(h.bind(s, [0; 4], 5353, reuse::ADDRESS), 0);
    }
    both
}

#[test]
fn every_member_gets_a_copy_and_so_it_is_after_a_crash() {
    let mut h = Host::new();
    let [a, b] = members(&mut h);
    assert_eq!(h.change(a, 1, membership::JOIN, [0; 4]), 0);
    assert_eq!(h.told().iter().map(|(s, _)| *s).collect::<Vec<_>>(), [step::BEGIN, step::EXCLUDE, step::END]);
    assert_eq!(h.change(a, 2, membership::JOIN, [0; 4]), EADDRINUSE);
    assert_eq!(h.change(b, 3, membership::LEAVE, [0; 4]), EADDRNOTAVAIL);
    h.page(b).set_option(Opt::OwnGroupsOnly, 1);
    let heard = |h: &mut Host| {
        h.deliver(&datagram((PEER, 9), (GROUP, 5353), b"hello"), true);
        [a, b].map(|s| h.receive(s).is_some())
    };
    assert_eq!(heard(&mut h), [true, false], "it is no member");
    h.page(b).set_option(Opt::OwnGroupsOnly, 0);
    assert_eq!(heard(&mut h), [true, true], "IP_MULTICAST_ALL");
    h.page(b).set_option(Opt::OwnGroupsOnly, 1);
    assert_eq!(h.change(b, 4, membership::JOIN_SOURCE, PEER), 0);
    assert_eq!(heard(&mut h), [true, true]);
    h.told();
    h.crash();
    assert_eq!(h.told().iter().map(|(s, _)| *s).collect::<Vec<_>>(), [step::BEGIN, step::EXCLUDE, step::END]);
    assert_eq!(heard(&mut h), [true, true]);
    assert_eq!(h.change(a, 1, membership::BLOCK, PEER), 0);
    assert_eq!(heard(&mut h), [false, true]);
    // Who closes leaves.
    h.close(b);
    assert_eq!(h.told().last().map(|(s, _)| *s), Some(step::ADD), "its source is not wanted any more");
    h.close(a);
    assert_eq!(h.told(), [(step::INCLUDE, v4(GROUP))]);
    assert_eq!(h.refused, 0, "nobody is told that a group's port is closed");
}

#[test]
fn a_datagram_to_a_group_asks_for_no_more_memory_than_another() {
    let mut h = Host::new();
    let [member, alone] = [h.open(), h.open()];
    assert_eq!((h.bind(member, [0; 4], 5353, 0), h.bind(alone, OWN, 99, 0)), (0, 0));
    assert_eq!(h.change(member, 1, membership::JOIN, [0; 4]), 0);
    let mut deliver = |to, socket: SocketId| {
        let bytes = datagram((PEER, 9), to, b"hello");
        let counted = allocations(|| h.deliver(&bytes, true));
        assert!(h.receive(socket).is_some());
        counted
    };
    let mut both = || [deliver((OWN, 99), alone), deliver((GROUP, 5353), member)];
    // What is kept for the next turns is there after the first.
    both();
    let [one, group] = both();
    assert!(group <= one, "{group} times, and {one} for a datagram to one socket");
}

#[test]
fn a_request_waits_until_ip_knows() {
    let mut h = Host::new();
    let s = h.open();
    // ip does not answer, and its next life does.
    h.answer_steps = false;
    let incarnation = h.page(s).incarnation();
    let request = eft_base::RequestId { index: 77, generation: 1 };
    let join = SocketsToTransport::Membership {
        request,
        socket: s,
        incarnation,
        token: 5,
        change: membership::JOIN,
        interface: 0,
        group: v4(GROUP),
        source: v4([0; 4]),
    };
    h.hear_from_sockets(join);
    h.hear_from_sockets(join);
    assert_eq!(h.flush(), []);
    h.answer_steps = true;
    h.host.reborn(ComponentId::IP);
    let answers = h.flush();
    let told = |a: &eft_messages::sockets::TransportToSockets| {
        let eft_messages::sockets::TransportToSockets::Reply { request, errno, .. } = *a;
        (request, errno)
    };
    assert_eq!(answers.iter().map(told).collect::<Vec<_>>(), [(request, 0)]);
    // It comes again, since the answer was lost.
    h.hear_from_sockets(join);
    assert_eq!(h.flush().iter().map(told).collect::<Vec<_>>(), [(request, 0)]);
}

#[test]
fn a_socket_bound_to_a_group_hears_it_alone_and_sends_from_a_hosts_address() {
    let mut h = Host::new();
    let s = h.open();
    assert_eq!(h.bind(s, GROUP, 5353, 0), 0);
    assert_eq!(h.change(s, 1, membership::JOIN, [0; 4]), 0);
    h.deliver(&datagram((PEER, 9), (OWN, 5353), b"no"), true);
    h.deliver(&datagram((PEER, 9), (GROUP, 5353), b"yes"), true);
    assert_eq!(h.receive(s).unwrap().1, b"yes");
    assert!(h.receive(s).is_none());
    h.send(s, Some((GROUP, 5353)), b"x");
    let (sent, _) = h.sent.pop().unwrap();
    assert_eq!((sent.source, sent.flags, sent.ttl), (v4(OWN), 0, 1));
    h.page(s).set_option(Opt::NoMulticastLoop, 1);
    h.send(s, Some((GROUP, 5353)), b"x");
    assert_eq!(h.sent.pop().unwrap().0.flags, SEND_NO_LOOP);
    // No hop: to members on this host alone.
    h.page(s).set_option(Opt::NoMulticastLoop, 0);
    h.page(s).set_option(Opt::MulticastHops, 1);
    h.send(s, Some((GROUP, 5353)), b"x");
    assert_eq!(h.sent.pop().unwrap().0.flags, SEND_HOST_ONLY);
}

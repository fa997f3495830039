//! Inputs that are no packets, and kill ip: each does so twice at most.

use super::*;
use core::net::Ipv6Addr;
use eft_arena::docket;
use eft_base::errno::{EHOSTUNREACH, ENETUNREACH};
use eft_component::Answer;
use eft_messages::transport::membership;

const SILENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 77);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const CONFIG6: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"fd77::2/64\"]\n";
const CONFIG_AUTO: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = []\nauto = [\"dhcp4\"]\n";

/// Begins a life, and lets time pass until such an input runs; there the life ends.
fn dies_of(docket: &Segment, what: &str, begin: impl Fn(&mut Bench)) {
    let mut b = life(docket, begin);
    for _ in 0..40 {
        b.now = b.ip.deadline().unwrap_or_else(|| panic!("{what} never runs"));
        b.with(|ip, cx, out| ip.expire(cx, out));
        if running_input(docket).as_deref() == Some(what) {
            return;
        }
        b.with(|ip, cx, _| ip.commit(cx));
        let out = b.drain();
        b.confirm(&out);
    }
    panic!("{what} does not run");
}

/// A life with one device, whose first messages are over.
fn life(docket: &Segment, begin: impl Fn(&mut Bench)) -> Bench {
    let mut b = Bench::raw_after(docket.clone(), false).begin().meet();
    b.with(|ip, cx, _| ip.commit(cx));
    begin(&mut b);
    b.with(|ip, cx, _| ip.commit(cx));
    b
}

/// The third life after two such deaths, and what it says within some time.
fn outlives(what: &str, time: Duration, begin: impl Fn(&mut Bench)) -> (Bench, Vec<ToPeer>) {
    let docket = Segment::heap(DOCKET_LEN);
    for _ in 0..2 {
        dies_of(&docket, what, &begin);
    }
    let mut b = life(&docket, &begin);
    assert_eq!((b.count(Counter::Blamed), b.count(Counter::DropFatal)), (1, 0));
    let all = heard_within(&mut b, time);
    assert!(b.count(Counter::DropFatal) > 0, "{what} is refused");
    (b, all)
}

/// What ip says within some time; the device takes all frames.
fn heard_within(b: &mut Bench, time: Duration) -> Vec<ToPeer> {
    let mut all = Vec::new();
    let end = b.now + time;
    while b.now < end {
        b.pass(Duration::from_millis(50).min(end.saturating_since(b.now)));
        let out = b.drain();
        b.confirm(&out);
        all.extend(out);
    }
    all
}

fn frames(out: &[ToPeer]) -> usize {
    out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))).count()
}

/// Sends a datagram to a neighbour that never answers; the question is taken by the device.
fn send_to_silent(b: &mut Bench) {
    b.send(ComponentId::UDP, 1, &datagram(SILENT, 0, 10));
    let out = b.drain();
    assert_eq!(frames(&out), 1);
    b.confirm(&out);
}

#[test]
fn a_neighbour_whose_timer_kills_twice_is_forgotten() {
    let (mut b, out) = outlives("a timer of a neighbour", Duration::from_millis(300), send_to_silent);
    assert_eq!(out, [sent(ComponentId::UDP, 1, 0)], "not asked again: its packet counts as lost");
    assert_eq!(b.count(Counter::DropFatal), 1);
    b.assert_idle();
    b.send(ComponentId::UDP, 2, &datagram(THEM, 0, 10));
    assert_eq!(frames(&b.drain()), 1, "others are reached");
    send_to_silent(&mut b);
}

#[test]
fn a_neighbour_that_cannot_be_given_up_is_forgotten() {
    let docket = Segment::heap(DOCKET_LEN);
    for _ in 0..2 {
        let mut b = life(&docket, send_to_silent);
        while b.count(Counter::NeighbourTimeouts) == 0 {
            let out = b.drain();
            b.confirm(&out);
            b.now = b.ip.deadline().unwrap();
            b.with(|ip, cx, out| ip.expire(cx, out));
        }
    }
    let mut b = life(&docket, send_to_silent);
    let out = heard_within(&mut b, Duration::from_secs(4));
    assert_eq!((frames(&out), out.len()), (3, 4), "it is asked as before");
    assert!(
        out.contains(&sent(ComponentId::UDP, 1, 0))
            && !out.contains(&sent(ComponentId::UDP, 1, EHOSTUNREACH))
    );
}

#[test]
fn fragments_whose_end_kills_twice_end_without_a_word() {
    let id = core::cell::Cell::new(0);
    let begin = |b: &mut Bench| {
        id.set(id.get() + 1);
        b.arrive(&packet(PROTOCOL_UDP, IPV4_MORE_FRAGMENTS, id.get(), &udp(5, 6, &[1; 8])));
        b.drain();
    };
    let (b, out) = outlives("a timer of fragments", Duration::from_secs(31), begin);
    assert_eq!((frames(&out), b.count(Counter::IcmpErrorsOut)), (0, 0));
    assert_eq!((b.count(Counter::ReassemblyTimeouts), b.count(Counter::DropFatal)), (1, 1));
    b.assert_idle();
}

#[test]
fn an_address_whose_trial_kills_twice_is_used_unannounced() {
    let begin = |b: &mut Bench| {
        b.configure(CONFIG6);
        let out = b.drain();
        b.confirm(&out);
    };
    let (mut b, _) = outlives("a timer of an address that is tried out", Duration::from_secs(3), begin);
    let ours: Ipv6Addr = "fd77::2".parse().unwrap();
    assert!(b.ip.routes.is_ours(ours.into()));
    assert!(b.ip.tentatives.deadline().is_none());
    b.pass(Duration::from_secs(1));
}

fn wish(b: &mut Bench, order: u32, step: u8, group: Ipv4Addr) {
    let (group, source) = (IpAddr::V4(group).into(), IpAddr::V4(THEM).into());
    let message = TransportToIp::Group { order, step, interface: 0, group, source };
    b.transport_says(ComponentId::UDP, message);
    assert_eq!(b.drain(), [ToPeer::Transport(ComponentId::UDP, IpToTransport::Grouped { order })]);
}

fn is_member(b: &Bench, group: Ipv4Addr) -> bool {
    b.ip.groups.admit(0, group.into(), THEM.into())
}

#[test]
fn a_group_whose_timer_kills_twice_is_not_spoken_of() {
    // It is left at once, so that there is nothing to report.
    let begin = |b: &mut Bench| {
        wish(b, 1, membership::EXCLUDE, GROUP);
        wish(b, 2, membership::INCLUDE, GROUP);
    };
    let (mut b, out) = outlives("a timer of a group", Duration::from_secs(3), begin);
    assert_eq!((frames(&out), b.count(Counter::DropFatal)), (0, 1));
    wish(&mut b, 3, membership::EXCLUDE, GROUP);
    assert!(is_member(&b, GROUP));
}

#[test]
fn a_report_that_kills_twice_is_not_sent() {
    let begin = |b: &mut Bench| wish(b, 1, membership::EXCLUDE, GROUP);
    let (b, out) = outlives("a packet to be sent", Duration::from_secs(3), begin);
    assert_eq!(frames(&out), 0);
    assert!(is_member(&b, GROUP), "its packets are taken");
}

#[test]
fn a_wish_for_a_group_that_kills_twice_is_left_out() {
    let docket = Segment::heap(DOCKET_LEN);
    for order in 1..3 {
        wish(&mut life(&docket, |_| {}), order, membership::EXCLUDE, GROUP);
    }
    let mut b = life(&docket, |_| {});
    wish(&mut b, 7, membership::EXCLUDE, GROUP);
    assert_eq!((is_member(&b, GROUP), b.count(Counter::DropFatal)), (false, 1));
    let other = Ipv4Addr::new(239, 1, 2, 4);
    wish(&mut b, 8, membership::EXCLUDE, other);
    assert!(is_member(&b, other));
}

#[test]
fn a_method_whose_timer_kills_twice_is_given_up() {
    let begin = |b: &mut Bench| {
        b.configure(CONFIG_AUTO);
        b.drain();
    };
    let what = "a timer of a method by which an interface gets addresses";
    let (b, out) = outlives(what, Duration::from_secs(20), begin);
    assert_eq!((frames(&out), b.count(Counter::DhcpOut)), (0, 0), "no server is asked");
    assert_eq!(b.ip.deadline(), None, "nothing is due any more");
}

#[test]
fn a_report_of_grants_that_kills_twice_is_left_out() {
    let docket = Segment::heap(DOCKET_LEN);
    let passes = |b: &mut Bench, port| {
        let all = FromPeer::Filter(FilterToIp::PassAll {});
        b.with(|ip, cx, out| ip.receive(cx, ComponentId::FILTER, all, out));
        b.arrive(&packet(PROTOCOL_UDP, 0, 1, &udp(port, 6, &[7; 3])));
        b.with(|ip, cx, _| ip.commit(cx));
        b.drain();
    };
    let reports = |out: &[ToPeer]| out.iter().any(|m| matches!(m, ToPeer::Filter(IpToFilter::Passed { .. })));
    for n in 0..3 {
        let mut b = Bench::raw_after(docket.clone(), true).begin().meet();
        passes(&mut b, 5);
        b.now = b.ip.grants.deadline().unwrap();
        b.with(|ip, cx, out| ip.expire_grants(cx, out));
        assert_eq!((reports(&b.drain()), b.count(Counter::DropFatal)), (n < 2, (n == 2) as u64));
        assert_eq!(running_input(&docket).is_some(), n < 2);
    }
}

#[test]
fn a_question_for_a_route_that_kills_twice_has_no_route_for_an_answer() {
    let docket = Segment::heap(DOCKET_LEN);
    let ask = |b: &mut Bench, to: Ipv4Addr| {
        let source = IpAddr::V4(Ipv4Addr::UNSPECIFIED).into();
        let destination = IpAddr::V4(to).into();
        b.transport_says(ComponentId::TCP, TransportToIp::Route { request: request(1), source, destination });
        match b.drain()[..] {
            [ToPeer::Transport(ComponentId::TCP, IpToTransport::Routed { errno, .. })] => errno,
            ref other => panic!("{other:?}"),
        }
    };
    for _ in 0..2 {
        assert_eq!(ask(&mut life(&docket, |_| {}), FAR), 0);
    }
    let mut b = life(&docket, |_| {});
    assert_eq!((ask(&mut b, FAR), b.count(Counter::DropFatal)), (ENETUNREACH, 1));
    assert_eq!(ask(&mut b, THEM), 0);
}

#[test]
fn a_device_whose_word_of_its_link_kills_twice_counts_as_not_there() {
    let docket = Segment::heap(DOCKET_LEN);
    let begins = || {
        let mut b = Bench::raw_after(docket.clone(), false);
        b.configure(CONFIG);
        b.link(true, 60000);
        b
    };
    for _ in 0..2 {
        assert!(begins().ip.link(0).is_some());
    }
    let mut b = begins();
    assert_eq!((b.ip.link(0), b.count(Counter::DropFatal)), (None, 1));
    b.link(true, 30000);
    assert!(b.ip.link(0).is_some(), "another word is heard");
}

#[test]
fn a_configuration_that_kills_twice_is_refused() {
    let docket = Segment::heap(DOCKET_LEN);
    let configured = || {
        let mut b = Bench::raw_after(docket.clone(), false);
        let setting = Configure { key: "ip".into(), value: CONFIG.into() };
        b.with(|ip, cx, out| ip.hear(cx, setting, out));
        b
    };
    for _ in 0..2 {
        assert_eq!(configured().ip.last_error(), None);
    }
    let mut b = configured();
    assert_eq!(b.ip.last_error(), Some("ip configuration: it has killed two predecessors"));
    assert_eq!((b.count(Counter::ConfigRefused), b.count(Counter::DropFatal)), (1, 1));
    assert!(!b.ip.routes.is_ours(US.into()));
    b.configure(&CONFIG.replace("eft0", "eft1"));
    assert!(b.ip.routes.is_ours(US.into()), "another one takes effect");
}

#[test]
fn an_operator_whose_question_kills_twice_gets_an_empty_answer() {
    let docket = Segment::heap(DOCKET_LEN);
    let ask = |b: &mut Bench| {
        let event = Configure { key: "neighbours:3".into(), value: Vec::new() };
        b.with(|ip, cx, out| ip.hear(cx, event, out));
        match &b.drain()[..] {
            [ToPeer::Answer(Answer { key, value })] if key == "neighbours:3" => value.len(),
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..2 {
        assert!(ask(&mut life(&docket, |_| {})) > 0);
    }
    assert_eq!(ask(&mut life(&docket, |_| {})), 0);
}

/// What waits, and is tried again, is known as when it came.
#[test]
fn what_is_repeated_is_named_as_the_packet_that_it_is() {
    let docket = Segment::heap(DOCKET_LEN);
    let mut b = life(&docket, |b| {
        b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
        b.drain();
    });
    while b.count(Counter::Repeated) == 0 {
        b.now = b.ip.deadline().unwrap();
        b.with(|ip, cx, out| ip.expire(cx, out));
    }
    assert_eq!(running_input(&docket).unwrap(), "a packet to be sent");
    let mut b = life(&docket, |_| {});
    assert_eq!(b.count(Counter::Blamed), 1);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert_eq!(frames(&b.drain()), 1);
    let mut b = life(&docket, |_| {});
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)]);
}

/// A packet to this host that waits for room is named when there is some.
#[test]
fn a_packet_to_this_host_that_kills_twice_is_dropped_wherever_it_waits() {
    let docket = Segment::heap(DOCKET_LEN);
    for n in 0..3 {
        let mut b = life(&docket, |_| {});
        b.out.set_room(ComponentId::UDP, 0, 1024);
        b.send(ComponentId::UDP, 1, &datagram(US, 0, 51));
        if n == 2 {
            assert_eq!(b.count(Counter::DropFatal), 1);
            return b.assert_idle();
        }
        b.with(|ip, cx, _| ip.commit(cx));
        assert_eq!((b.ip.local.len(), docket::running_input(&docket, |_| None)), (1, None));
        b.out.set_room(ComponentId::UDP, 1024, 1024);
        b.with(|_, _, _| {});
        assert_eq!(running_input(&docket).unwrap(), "a packet to be sent");
    }
}

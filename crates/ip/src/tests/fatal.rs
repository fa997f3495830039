//! Packets that kill ip: each does so twice at most.

use super::*;

/// One life: it handles one packet after all others, as which it may have died.
fn life(docket: &Segment, with_filter: bool) -> Bench {
    Bench::raw_after(docket.clone(), with_filter).begin().meet()
}

fn is_delivered(out: &[ToPeer]) -> bool {
    out.iter().any(|m| matches!(m, ToPeer::Transport(_, IpToTransport::Deliver { .. })))
}

fn leaves(out: &[ToPeer]) -> bool {
    out.iter().any(|m| matches!(m, ToPeer::Nic(_, IpToNic::Send { .. })))
}

#[test]
fn a_packet_that_kills_twice_is_dropped_and_others_come() {
    let docket = Segment::heap(DOCKET_LEN);
    // Its sender sends it again with another identification.
    let arrive = |b: &mut Bench, id, port| b.arrive(&packet(PROTOCOL_UDP, 0, id, &udp(port, 6, &[7; 3])));
    for id in [1, 2] {
        let mut b = life(&docket, false);
        arrive(&mut b, id, 5);
        assert!(is_delivered(&b.drain()));
    }
    let mut b = life(&docket, false);
    let frame = arrive(&mut b, 3, 5);
    assert_eq!(b.drain(), [ToPeer::Nic(0, IpToNic::Done { packet: frame })]);
    assert_eq!((b.count(Counter::Blamed), b.count(Counter::DropFatal)), (1, 1));
    b.assert_idle();
    arrive(&mut b, 4, 7);
    assert!(is_delivered(&b.drain()));
}

#[test]
fn a_packet_of_a_transport_that_kills_twice_counts_as_lost_and_others_leave() {
    let docket = Segment::heap(DOCKET_LEN);
    for _ in 0..2 {
        let mut b = life(&docket, false);
        b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
        assert!(leaves(&b.drain()));
    }
    let mut b = life(&docket, false);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)]);
    assert_eq!(b.count(Counter::DropFatal), 1);
    b.assert_idle();
    b.send(ComponentId::UDP, 2, &datagram(THEM, 0, 52));
    assert!(leaves(&b.drain()));
}

/// One death when it is handed over, one when the verdict comes.
#[test]
fn a_packet_that_kills_before_and_behind_the_filter_is_dropped() {
    let docket = Segment::heap(DOCKET_LEN);
    let judged = |b: &mut Bench| {
        let asked = asked(&b.drain()[0]);
        b.verdict(asked, true);
        b.drain()
    };
    life(&docket, true).send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    let mut b = life(&docket, true);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert!(leaves(&judged(&mut b)));
    let mut b = life(&docket, true);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)]);
    b.assert_idle();

    let arrive = |b: &mut Bench, id| b.arrive(&packet(PROTOCOL_UDP, 0, id, &udp(5, 6, &[7; 3])));
    arrive(&mut life(&docket, true), 1);
    let mut b = life(&docket, true);
    arrive(&mut b, 2);
    assert!(is_delivered(&judged(&mut b)));
    let mut b = life(&docket, true);
    arrive(&mut b, 3);
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    b.assert_idle();
}

#[test]
fn what_runs_is_told() {
    let docket = Segment::heap(DOCKET_LEN);
    let mut b = life(&docket, false);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    assert_eq!(running_input(&docket).unwrap(), "a packet to be sent");
    b.with(|ip, cx, _| ip.commit(cx));
    assert_eq!(running_input(&docket), None);
}

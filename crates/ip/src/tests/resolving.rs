//! Packets that wait for link addresses.

use super::*;

const SILENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 77);
/// Of a queue of 64, a fourth.
const SHARE: u32 = 16;

/// Sends datagrams with a small queue from ip to udp. Returns all that comes of it.
fn send(b: &mut Bench, requests: core::ops::Range<u32>, destination: Ipv4Addr) -> Vec<ToPeer> {
    b.out.set_room(ComponentId::UDP, 64, 64);
    for i in requests {
        b.send(ComponentId::UDP, i, &datagram(destination, 0, 10));
    }
    b.drain()
}

fn frames(out: &[ToPeer]) -> usize {
    out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))).count()
}

#[test]
fn a_silent_neighbour_does_not_keep_a_transport_from_others() {
    let mut b = Bench::met(false);
    b.pass(Duration::from_secs(2));
    let out = b.drain();
    b.confirm(&out);
    let out = send(&mut b, 0..SHARE + 2, SILENT);
    let [ToPeer::Nic(0, IpToNic::Send { .. }), lost_ones @ ..] = &out[..] else { panic!("{out:?}") };
    let lost = |request| sent(ComponentId::UDP, request, 0);
    assert_eq!(lost_ones, [lost(SHARE), lost(SHARE + 1)], "one question, and the rest waits");
    b.confirm(&out);
    assert_eq!(b.count(Counter::NeighbourFull), 2);
    // Its packets to others leave, and so do those of other transports.
    let out = send(&mut b, 100..101, THEM);
    assert_eq!(frames(&out), 1);
    b.confirm(&out);
    b.drain();
    b.send(ComponentId::TCP, 1, &segment(SILENT, 10, 0));
    assert_eq!(b.drain(), [], "tcp's share is its own");
    // A packet that may not wait asks, too, so that the next finds the neighbour known.
    let other = Ipv4Addr::new(10, 77, 0, 78);
    let out = send(&mut b, 101..102, other);
    assert_eq!((frames(&out), out.len()), (1, 2));
    assert!(out.contains(&lost(101)));
    b.confirm(&out);
    let reply = b.arp(ARP_REPLY, THEIR_MAC, other, US);
    b.drain();
    b.nic.free(reply);
    let out = send(&mut b, 102..103, other);
    assert_eq!(frames(&out), 1);
    b.confirm(&out);
    b.drain();
    // Who is given up waits no longer, and others may.
    let mut given_up = 0;
    for _ in 0..6 {
        b.pass(Duration::from_secs(1));
        let out = b.drain();
        b.confirm(&out);
        given_up +=
            out.iter().filter(|m| matches!(m, ToPeer::Transport(_, IpToTransport::Sent { .. }))).count();
    }
    assert_eq!(given_up as u32, SHARE + 1);
    b.assert_idle();
    let out = send(&mut b, 200..201, Ipv4Addr::new(10, 77, 0, 79));
    assert_eq!((frames(&out), out.len()), (1, 1), "it waits");
}

#[test]
fn a_transport_that_died_has_its_share_again() {
    let mut b = Bench::met(false);
    b.pass(Duration::from_secs(2));
    let out = b.drain();
    b.confirm(&out);
    let out = send(&mut b, 0..SHARE, SILENT);
    b.confirm(&out);
    b.reborn(ComponentId::UDP);
    let out = send(&mut b, 50..50 + SHARE, SILENT);
    assert_eq!(out, [], "all wait");
    let reply = b.arp(ARP_REPLY, THEIR_MAC, SILENT, US);
    let out = b.drain();
    b.nic.free(reply);
    assert_eq!(frames(&out) as u32, SHARE, "those of the dead one are forgotten");
    b.confirm(&out);
    b.drain();
    b.assert_idle();
}

#[test]
fn all_that_is_submitted_again_to_a_reborn_ip_waits_for_the_gateway() {
    let mut b = Bench::new(false);
    let out = send(&mut b, 0..40, FAR);
    assert_eq!((frames(&out), out.len()), (1, 1), "the question alone");
    b.confirm(&out);
    let reply = b.arp(ARP_REPLY, THEIR_MAC, THEM, US);
    let out = b.drain();
    b.nic.free(reply);
    assert_eq!(frames(&out), 40);
    b.confirm(&out);
    b.drain();
    b.assert_idle();
}

//! Addresses and routes that change while the engine works.

use super::*;

fn config(addresses: &str, routes: &str) -> String {
    format!("[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [{addresses}]\n{routes}")
}

/// Whom ARP announcements in these messages are about; other frames are not expected.
fn announced(b: &Bench, messages: &[ToPeer]) -> Vec<Ipv4Addr> {
    let about = |m: &ToPeer| {
        let f = b.frame(m);
        assert_eq!(f[12..14], [8, 6], "no ARP: {f:?}");
        assert_eq!(f[28..32], f[38..42], "no announcement: {f:?}");
        Ipv4Addr::new(f[28], f[29], f[30], f[31])
    };
    messages.iter().map(about).collect()
}

#[test]
fn a_new_address_is_announced_and_answered_for_until_it_goes() {
    let mut b = Bench::met(false);
    let second = Ipv4Addr::new(10, 77, 0, 9);
    b.configure(&config("\"10.77.0.2/24\", \"10.77.0.9/24\"", ""));
    let out = b.drain();
    // Neighbours have not forgotten the first.
    assert_eq!(announced(&b, &out), [second]);
    b.confirm(&out);
    b.arp(ARP_REQUEST, THEIR_MAC, THEM, second);
    let reply = b.drain();
    assert!(reply.iter().any(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))), "{reply:?}");
    b.confirm(&reply);
    b.configure(&config("\"10.77.0.2/24\"", ""));
    assert_eq!(b.drain(), []);
    b.arp(ARP_REQUEST, THEIR_MAC, THEM, second);
    let reply = b.drain();
    assert!(!reply.iter().any(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))), "{reply:?}");
}

#[test]
fn packets_take_the_new_route_from_the_next_on() {
    let mut b = Bench::met(false);
    let gone = config("\"10.77.0.2/24\"", "");
    let back =
        config("\"10.77.0.2/24\"", "[[route]]\ndestination = \"8.0.0.0/8\"\ngateway = \"10.77.0.1\"\n");
    for (n, text) in [&gone, &back, &gone, &back].into_iter().enumerate() {
        b.configure(text);
        b.send(ComponentId::UDP, n as u32, &datagram(FAR, 0, 10));
        let out = b.drain();
        match n % 2 {
            0 => assert_eq!(out, [sent(ComponentId::UDP, n as u32, eft_base::errno::ENETUNREACH)]),
            _ => assert_eq!(b.frame(&out[0])[..6], THEIR_MAC.0),
        }
        b.confirm(&out);
        b.drain();
    }
    b.assert_idle();
}

#[test]
fn a_configuration_that_is_refused_leaves_the_old_one_in_force() {
    let mut b = Bench::met(false);
    for text in [
        "interface = 3",
        "[[route]]\ndestination = \"0.0.0.0/0\"\nmetric = 1\n",
        &config("\"10.77.0.0/24\"", ""),
    ] {
        b.configure(text);
        assert!(b.ip.last_error().is_some_and(|e| e.lines().count() == 1));
        b.send(ComponentId::UDP, 1, &datagram(FAR, 0, 10));
        let out = b.drain();
        assert_eq!(b.frame(&out[0])[..6], THEIR_MAC.0);
        b.confirm(&out);
        b.drain();
    }
    assert_eq!(b.count(Counter::ConfigRefused), 3);
}

#[test]
fn operators_are_told_the_neighbours_on_the_wire() {
    let mut b = Bench::met(false);
    let key = "neighbours:7".to_string();
    let event = Configure { key: key.clone(), value: Vec::new() };
    b.with(|ip, cx, out| ip.event(cx, event, out));
    let value = format!("0 {THEM} {THEIR_MAC} reachable 0 -\n").into_bytes();
    assert_eq!(b.drain(), [ToPeer::Answer(eft_component::Answer { key, value })]);
}

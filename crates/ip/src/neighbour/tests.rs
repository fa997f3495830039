use super::*;
use core::net::Ipv4Addr;

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

fn id(index: u32) -> RequestId {
    RequestId { index, generation: 1 }
}

const ASKED: Learned = Learned { mac: MAC, confirmed: true };

#[test]
fn packets_wait_for_the_answer_in_order_and_within_limits() {
    let mut n = Neighbours::new(8, 4);
    let now = Instant::from_millis(5);
    assert_eq!(n.lookup(now, (0, A), id(1), || true), Lookup::Wait { ask: true });
    for i in 2..5 {
        assert_eq!(n.lookup(now, (0, A), id(i), || true), Lookup::Wait { ask: false });
    }
    assert_eq!(n.lookup(now, (0, A), id(5), || true), Lookup::Full { ask: false });
    assert_eq!(n.learn(now, 0, A, ASKED), [id(1), id(2), id(3), id(4)]);
    assert_eq!(n.lookup(now, (0, A), id(6), || true), Lookup::Send(MAC));
    assert_eq!(n.lookup(now, (1, A), id(6), || true), Lookup::Wait { ask: true });
}

#[test]
fn the_silent_are_given_up_and_asked_again_later() {
    let mut n = Neighbours::new(8, 4);
    let mut now = Instant::from_millis(5);
    n.lookup(now, (0, A), id(1), || true);
    let mut asked = 1;
    loop {
        now = n.deadline().unwrap();
        match &n.expire(now)[..] {
            [Due::Ask { mac: None, .. }] => asked += 1,
            [Due::GiveUp { interface: 0, address: A, waiting }] => {
                assert_eq!(*waiting, [id(1)]);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, WAITS_MS.len());
    assert_eq!(n.deadline(), None);
    assert_eq!(n.lookup(now, (0, A), id(2), || true), Lookup::Unreachable);
    now += SILENT;
    assert_eq!(n.lookup(now, (0, A), id(2), || true), Lookup::Wait { ask: true });
}

#[test]
fn a_stale_entry_is_used_while_it_is_probed() {
    let mut n = Neighbours::new(8, 4);
    let mut now = Instant::from_millis(5);
    n.learn(now, 0, A, ASKED);
    now += REACHABLE;
    assert_eq!(n.lookup(now, (0, A), id(1), || true), Lookup::SendAndProbe(MAC));
    assert_eq!(n.lookup(now, (0, A), id(2), || true), Lookup::Send(MAC));
    n.learn(now, 0, A, ASKED);
    assert_eq!(n.lookup(now, (0, A), id(3), || true), Lookup::Send(MAC));
    // Silent this time: first by unicast, then by broadcast, then packets wait.
    now += REACHABLE;
    assert_eq!(n.lookup(now, (0, A), id(4), || true), Lookup::SendAndProbe(MAC));
    let mut broadcasts = 0;
    while broadcasts == 0 {
        now = n.deadline().unwrap();
        for due in n.expire(now) {
            if matches!(due, Due::Ask { mac: None, .. }) {
                broadcasts += 1;
            }
        }
    }
    assert_eq!(n.lookup(now, (0, A), id(5), || true), Lookup::Wait { ask: false });
}

#[test]
fn the_table_is_bounded() {
    let mut n = Neighbours::new(1 << 20, 1 << 19);
    for i in 0..5000u32 {
        let now = Instant::from_millis(i as u64);
        n.learn(now, 0, Ipv4Addr::from_bits(0x0a00_0000 + i).into(), ASKED);
    }
    assert_eq!(n.entries.len(), ENTRIES_MAX);
    assert!(n.knows(0, Ipv4Addr::from_bits(0x0a00_0000 + 4999).into()));
}

#[test]
fn an_unsolicited_address_is_used_and_probed() {
    let mut n = Neighbours::new(8, 4);
    let now = Instant::from_millis(1);
    let heard = |mac| Learned { mac, confirmed: false };
    n.learn(now, 0, A, heard(MAC));
    assert_eq!(n.mac(0, A), Some(MAC));
    assert_eq!(n.lookup(now, (0, A), id(1), || true), Lookup::SendAndProbe(MAC));
    n.learn(now, 0, A, ASKED);
    assert_eq!(n.lookup(now, (0, A), id(2), || true), Lookup::Send(MAC));
    // The same link address again changes nothing; another one does.
    n.learn(now, 0, A, heard(MAC));
    assert_eq!(n.lookup(now, (0, A), id(3), || true), Lookup::Send(MAC));
    let other = MacAddress([2, 0, 0, 0, 0, 77]);
    n.learn(now, 0, A, heard(other));
    assert_eq!(n.lookup(now, (0, A), id(4), || true), Lookup::SendAndProbe(other));
    n.learn(now, 0, A, ASKED);
    n.doubt(now, 0, A);
    assert_eq!(n.lookup(now, (0, A), id(5), || true), Lookup::SendAndProbe(MAC));
}

#[test]
fn a_configured_neighbour_is_neither_asked_nor_learned_until_it_goes() {
    let mut n = Neighbours::new(8, 4);
    let now = Instant::from_millis(5);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    // What waited for its answer can be sent.
    n.lookup(now, (0, A), id(1), || true);
    assert_eq!(n.configure(now, [(0, A, OTHER)].into_iter()), [(OTHER, [id(1)].into())]);
    assert_eq!(n.lookup(now, (0, A), id(2), || true), Lookup::Send(OTHER));
    assert_eq!(n.learn(now, 0, A, ASKED), []);
    n.doubt(now, 0, A);
    let later = now + core::time::Duration::from_secs(3600);
    assert_eq!(n.expire(later), []);
    assert_eq!(n.lookup(later, (0, A), id(3), || true), Lookup::Send(OTHER));
    assert_eq!(n.mac(0, A), Some(OTHER));
    // No flood of other neighbours displaces it.
    for i in 0..3 * ENTRIES_MAX as u32 {
        let other = IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + i));
        n.learn(later + core::time::Duration::from_millis(i.into()), 0, other, ASKED);
    }
    assert_eq!(n.mac(0, A), Some(OTHER));
    n.configure(later, [].into_iter());
    assert_eq!(n.lookup(later, (0, A), id(4), || true), Lookup::Wait { ask: true });
}

#[test]
fn operators_see_state_and_age() {
    let mut n = Neighbours::new(8, 4);
    let start = Instant::from_millis(5);
    let shown =
        |n: &Neighbours, now| n.shown(now).map(|s| (s.state, s.mac, s.confirmed, s.used)).collect::<Vec<_>>();
    n.lookup(start, (0, A), id(1), || true);
    assert_eq!(shown(&n, start), [("incomplete", None, None, Some(start))]);
    let answered = start + Duration::from_secs(1);
    n.learn(answered, 0, A, ASKED);
    assert_eq!(shown(&n, answered), [("reachable", Some(MAC), Some(answered), Some(start))]);
    let later = answered + REACHABLE;
    assert_eq!(shown(&n, later), [("stale", Some(MAC), Some(answered), Some(start))]);
    n.lookup(later, (0, A), id(2), || true);
    assert_eq!(shown(&n, later), [("probe", Some(MAC), Some(answered), Some(later))]);
    n.configure(later, [(0, A, MAC)].into_iter());
    assert_eq!(shown(&n, later), [("permanent", Some(MAC), None, None)]);
}

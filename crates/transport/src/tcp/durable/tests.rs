use super::*;

fn connection() -> (Block, Cold) {
    let (mut b, mut c) = (Block::free(1), Cold::free());
    b.set_state(State::Established);
    b.set(bit::CONNECTED | bit::PASSIVE | bit::ROUTED);
    c.path_mtu = 1500;
    b.slot = 2;
    c.listener = 7;
    b.tuple.local_port = 80;
    b.tuple.remote_port = 4000;
    (b, c)
}

fn passes(b: &mut Block, c: &Cold) -> bool {
    check(3, b, c, &Reassembly::new())
}

#[test]
fn a_block_of_ours_passes() {
    let (mut b, c) = connection();
    assert!(passes(&mut b, &c));
    b.set(bit::QUEUED);
    assert!(passes(&mut b, &c));
    assert!(passes(&mut Block::free(9), &Cold::free()));
}

#[test]
fn what_arithmetic_relies_upon_is_checked() {
    let wrong: &[(&str, fn(&mut Block, &mut Cold))] = &[
        ("state", |b, _| b.state = 200),
        ("snd_una", |b, _| b.snd_una = 5),
        ("snd_end", |b, _| {
            (b.snd_released, b.snd_una, b.snd_nxt, b.snd_end) = (1 << 62, 1 << 62, 1 << 62, 1 << 62)
        }),
        ("snd_end alone", |b, _| b.snd_end = u64::MAX),
        ("snd_edge", |b, _| b.snd_edge = u64::MAX - 1),
        ("snd_small", |b, _| b.snd_small = u64::MAX),
        ("snd_wl1", |b, _| b.snd_wl1 = u64::MAX),
        ("snd_wl2", |b, _| b.snd_wl2 = u64::MAX),
        ("fin_at", |b, _| b.fin_at = 7),
        ("a fin in ESTABLISHED", |b, _| b.fin_at = b.snd_end),
        ("no fin in FIN-WAIT-1", |b, _| b.set_state(State::FinWait1)),
        ("rcv_nxt", |b, _| (b.rcv_nxt, b.rcv_taken) = (u64::MAX, u64::MAX)),
        ("rcv_taken", |b, _| b.rcv_taken = 1),
        ("rcv_adv", |b, _| b.rcv_adv = u64::MAX),
        ("rcv_fin_at", |b, _| (b.rcv_nxt, b.rcv_taken, b.rcv_fin_at) = (9, 9, 8)),
        ("path_mtu", |_, c| c.path_mtu = 30),
        ("path_mtu, not routed", |b, c| {
            b.clear(bit::ROUTED);
            c.path_mtu = 30
        }),
        ("no path_mtu", |_, c| c.path_mtu = 0),
        ("mss", |b, _| b.mss = 2000),
        ("peer_mss", |_, c| c.peer_mss = 0),
        ("backoff", |b, _| b.backoff = 255),
        ("soft_error", |_, c| c.soft_error = -1),
        ("send_scale", |b, _| b.send_scale = 60),
        ("receive_scale", |b, _| b.receive_scale = 60),
        ("far slot", |b, _| b.slot = 1 << 30),
        ("no slot", |b, _| b.slot = NONE),
        ("dead", |b, _| b.set(bit::DEAD)),
        ("draining", |b, _| b.set(bit::DRAINING)),
        ("port", |b, _| b.tuple.local_port = 0),
        ("its own listener", |_, c| c.listener = 3),
        ("a listener with a listener", |b, _| {
            b.clear(bit::PASSIVE);
            b.set(bit::BOUND);
            b.set_state(State::Listen)
        }),
        ("queued nowhere", |b, c| {
            b.set(bit::QUEUED);
            c.listener = NONE
        }),
        ("accept_at", |_, c| c.accept_at = u64::MAX),
    ];
    for (name, damage) in wrong {
        let (mut b, mut c) = connection();
        damage(&mut b, &mut c);
        assert!(!passes(&mut b, &c), "{name}");
    }
}

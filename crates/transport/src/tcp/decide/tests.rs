use super::*;

const BASE: Situation = Situation {
    available: 0,
    fin: false,
    window: 1 << 20,
    budget: 1 << 20,
    pipe: 0,
    whole: 1 << 20,
    mss: 1000,
    chunk: 64_000,
    window_max: 1 << 20,
    small_in_flight: false,
    no_delay: false,
    cork: false,
    flushed: 0,
    overridden: false,
    patient: true,
};

fn send(len: u64) -> Decision {
    Decision::Send { len, fin: false }
}

#[test]
fn large_writes_go_in_the_largest_pieces() {
    let s = Situation { available: 200_000, ..BASE };
    assert_eq!(s.decide(), send(64_000));
}

#[test]
fn nagle_holds_a_second_small_segment() {
    let first = Situation { available: 10, ..BASE };
    assert_eq!(first.decide(), send(10));
    let second = Situation { small_in_flight: true, pipe: 10, ..first };
    assert_eq!(second.decide(), Decision::Wait(Wait::Nagle));
    let mixed = Situation { available: 2_500, ..second };
    assert_eq!(mixed.decide(), send(2_000));
    let no_delay = Situation { no_delay: true, ..second };
    assert_eq!(no_delay.decide(), send(10));
    let last = Situation { fin: true, ..second };
    assert_eq!(last.decide(), Decision::Send { len: 10, fin: true });
}

#[test]
fn cork_holds_even_the_first_and_its_timer_lets_go() {
    let s = Situation { available: 1_010, cork: true, no_delay: true, ..BASE };
    assert_eq!(s.decide(), send(1_000));
    let rest = Situation { available: 10, ..s };
    assert_eq!(rest.decide(), Decision::Wait(Wait::Cork));
    let over = Situation { overridden: true, ..rest };
    assert_eq!(over.decide(), send(10));
}

#[test]
fn silly_windows_are_not_filled() {
    let s = Situation { available: 5_000, window: 300, ..BASE };
    assert_eq!(s.decide(), Decision::Wait(Wait::Window));
    let half = Situation { window_max: 600, ..s };
    assert_eq!(half.decide(), send(300));
    let over = Situation { overridden: true, ..s };
    assert_eq!(over.decide(), send(300));
    let closed = Situation { window: 0, ..over };
    assert_eq!(closed.decide(), Decision::Wait(Wait::Window));
}

#[test]
fn a_small_piece_of_the_window_waits_for_a_larger_one() {
    let s = Situation { available: 100_000, budget: 2_000, pipe: 18_000, whole: 20_000, ..BASE };
    assert_eq!(s.decide(), Decision::Wait(Wait::Piece { congestion: true }));
    // Not when something seems lost, or when it was waited for already.
    let hurried = Situation { patient: false, ..s };
    assert_eq!(hurried.decide(), send(2_000));
    let more = Situation { budget: 7_500, pipe: 12_500, ..s };
    assert_eq!(more.decide(), send(7_000));
    let alone = Situation { pipe: 0, budget: 2_000, ..s };
    assert_eq!(alone.decide(), send(2_000));
}

#[test]
fn a_fin_takes_a_place_in_the_window() {
    let s = Situation { fin: true, window: 1, ..BASE };
    let end = Decision::Send { len: 0, fin: true };
    assert_eq!(s.decide(), end);
    assert_eq!(Situation { window: 0, ..s }.decide(), Decision::Wait(Wait::Window));
    let last = Situation { fin: true, available: 10, window: 10, window_max: 10, ..BASE };
    assert_eq!(last.decide(), send(10));
    assert_eq!(Situation { window: 11, ..last }.decide(), Decision::Send { len: 10, fin: true });
}

#[test]
fn a_fin_waits_for_the_congestion_window_only_after_a_timeout() {
    let s = Situation { fin: true, budget: 900, pipe: 100, ..BASE };
    assert_eq!(s.decide(), Decision::Wait(Wait::Congestion));
    let end = Decision::Send { len: 0, fin: true };
    assert_eq!(Situation { budget: 1000, ..s }.decide(), end);
    assert_eq!(Situation { budget: 0, pipe: 10_000, ..s }.decide(), end);
    assert_eq!(Situation { pipe: 0, budget: 1000, ..s }.decide(), end);
}

use super::*;

fn grown() -> Block {
    let mut block = Block::free(0);
    block.congestion.cwnd = 100_000;
    block
}

#[test]
fn a_window_shrinks_after_a_long_silence() {
    let block = grown();
    let rto = block.rtt.rto();
    assert!(!has_expired(&block, SlowStartAfterIdle::On, rto));
    assert!(has_expired(&block, SlowStartAfterIdle::On, rto + Duration::from_millis(1)));
}

#[test]
fn a_window_stays_if_it_is_to() {
    let block = grown();
    assert!(!has_expired(&block, SlowStartAfterIdle::Off, 10 * block.rtt.rto()));
}

#[test]
fn a_window_stays_while_something_is_in_flight() {
    let mut block = grown();
    block.snd_nxt = 1;
    assert!(!has_expired(&block, SlowStartAfterIdle::On, 10 * block.rtt.rto()));
}

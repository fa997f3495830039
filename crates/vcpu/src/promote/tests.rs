use super::*;
use crate::guest::Vcpu;
use crate::host::tests::host;
use eft_base::time::TimeDelta;

const TICK: Duration = Duration::from_millis(10);
const NO_TIME: Duration = Duration::ZERO;

fn on(host: &Host, groups: &[usize]) -> Vec<Entry> {
    let entry = |(i, group): (usize, &usize)| Entry {
        group: Some(*group),
        ..Entry::new(Vcpu::new(i as u64, 0), host)
    };
    groups.iter().enumerate().map(entry).collect()
}

fn since(ran: Duration, waited: Duration) -> Since {
    Since { ran, waited }
}

#[test]
fn an_idle_fast_core_takes_whoever_waits() {
    let host = host(1, 1, 0.5);
    let mut all = on(&host, &[0, 1, 1]);
    let did = [since(NO_TIME, NO_TIME), since(TICK, NO_TIME), since(NO_TIME, TICK)];
    assert_eq!(promote(&host, &mut all, &did, TICK), 1);
    assert_eq!([all[1].group, all[2].group], [Some(1), Some(0)]);
}

#[test]
fn a_busy_fast_core_takes_nobody_and_sleepers_are_left() {
    let host = host(1, 1, 0.5);
    let mut all = on(&host, &[0, 1]);
    assert_eq!(promote(&host, &mut all, &[since(TICK, NO_TIME), since(TICK, NO_TIME)], TICK), 0);
    assert_eq!(promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK / 10, NO_TIME)], TICK), 0);
    all[1].vcpu.allowed = [1].into_iter().collect();
    assert_eq!(promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK, NO_TIME)], TICK), 0, "pinned");
}

#[test]
fn who_belongs_there_comes_first() {
    let host = host(1, 1, 0.5);
    let mut all = on(&host, &[0, 1]);
    assert_eq!(promote(&host, &mut all, &[since(NO_TIME, NO_TIME), since(TICK, NO_TIME)], TICK), 1);
    assert_eq!(
        retreat(&mut all, &[since(NO_TIME, NO_TIME), since(TICK, TICK)], TICK),
        0,
        "only the visitor waits"
    );
    assert_eq!(retreat(&mut all, &[since(TICK / 2, TICK / 2), since(TICK / 2, NO_TIME)], TICK), 1);
    assert_eq!([all[0].group, all[1].group], [Some(0), Some(1)]);
}

#[test]
fn no_more_move_than_there_are_seats() {
    let host = host(2, 4, 0.5);
    let mut all = on(&host, &[0, 1, 1, 1, 1]);
    all[3].owed[0] = TimeDelta(1);
    let did = [
        since(TICK, NO_TIME),
        since(TICK, NO_TIME),
        since(TICK, NO_TIME),
        since(TICK, NO_TIME),
        since(TICK, NO_TIME),
    ];
    assert_eq!(promote(&host, &mut all, &did, TICK), 1);
    assert_eq!(all[3].group, Some(0), "the one that is owed fast time");
}

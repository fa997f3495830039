use super::*;
use crate::indicators::Mix;
use crate::throughput::Throughput;
use eft_base::time::nanos;

fn load(throughput: f64) -> Measured {
    Measured { throughput: Throughput(throughput), ..Measured::default() }
}

#[test]
fn what_failed_is_barred_longer_each_time_and_only_for_its_load() {
    let mut memory = Memory::default();
    let plan = Plan::default();
    memory.bar(&plan, &load(100.0), Instant::ZERO);
    assert!(memory.is_barred(&plan, &load(110.0), Instant(nanos(FIRST) - 1)));
    assert!(!memory.is_barred(&plan, &load(110.0), Instant::ZERO + FIRST));
    assert!(!memory.is_barred(&plan, &load(200.0), Instant(1)));
    let other = Measured { mix: Mix { size: 0.9, ..Mix::default() }, ..load(100.0) };
    assert!(!memory.is_barred(&plan, &other, Instant(1)));
    memory.bar(&plan, &load(100.0), Instant::ZERO + FIRST);
    assert!(memory.is_barred(&plan, &load(100.0), Instant(3 * nanos(FIRST) - 1)));
    for _ in 0..100 {
        memory.bar(&plan, &load(1e9), Instant(u64::MAX - 5));
    }
    assert!(memory.entries.len() <= ENTRIES_MAX);
}

#[test]
fn a_load_that_takes_all_is_one_load_whatever_the_machine_gives() {
    let all = |throughput: f64| Measured { busy: 0.97, ..load(throughput) };
    assert!(is_same_load(&all(20.0), &all(40.0)));
    assert!(!is_same_load(&all(20.0), &load(40.0)));
    // Less work on a faster plan: nothing that was seen under different plans tells that it is the same load.
    assert!(!is_same_load(&all(20.0), &Measured { busy: 0.64, ..load(120.0) }));
}

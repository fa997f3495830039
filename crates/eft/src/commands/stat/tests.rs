use super::*;

#[test]
fn the_scheduler_finds_all_its_indicators() {
    assert_eq!(eft_linux::stack_sensor::missing_counters(counters_of), []);
}

/// Servers that yield look at them: without, bulk data would count as a load of small requests (`crates/linux/src/serve/park/crowd.rs`).
#[test]
fn who_moves_bytes_counts_them_both_ways() {
    use eft_cores::counted::BYTES;
    for peer in [ComponentId::TCP, ComponentId::UDP, ComponentId::IP, ComponentId::nic(0)] {
        let count = counters_of(peer).iter().filter(|name| BYTES.contains(name)).count();
        assert_eq!(count, 2, "{peer}");
    }
}

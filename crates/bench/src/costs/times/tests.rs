use super::*;
use std::collections::BTreeMap;

/// A round in which a driver had so many frames and kibibytes, whose costs are 2,000 cycles out, 1,000 in, 100 and 50 a KiB.
fn round([out, inn, out_kib, in_kib]: [f64; 4]) -> Accounts {
    let cycles = out * 2000.0 + inn * 1000.0 + out_kib * 100.0 + in_kib * 50.0;
    let account = Account {
        busy_ns: cycles / 2.0,
        messages: out + inn,
        wakes: 200.0,
        wakes_ns: 200.0 * 700.0,
        frames_in: inn,
        frames_out: out,
        bytes_in: in_kib * 1024.0,
        bytes_out: out_kib * 1024.0,
        ..Account::default()
    };
    BTreeMap::from([(ComponentId::nic(0).to_string(), account)])
}

fn times() -> Times {
    Times(vec![
        ("out", vec![round([100.0, 10.0, 5000.0, 1.0]), round([150.0, 20.0, 6000.0, 2.0])]),
        ("in", vec![round([10.0, 200.0, 1.0, 9000.0])]),
        ("requests", vec![round([500.0, 500.0, 60.0, 60.0]), round([100.0, 90.0, 7.0, 7.0])]),
    ])
}

#[test]
fn a_drivers_costs_are_found_in_its_account() {
    let found = times().of_driver(2000.0);
    for (parameter, cycles) in found.iter().zip([2000.0, 1000.0, 100.0, 50.0]) {
        assert!((parameter.value / cycles - 1.0).abs() < 0.05, "{parameter:?} for {cycles}");
    }
}

#[test]
fn a_wakes_cycles_are_its_time_at_the_clock() {
    let wake = times().of_wakes(2000.0).unwrap();
    assert_eq!((wake.value, wake.low, wake.high), (1400.0, 1400.0, 1400.0));
}

#[test]
fn a_messages_time_is_that_of_each_round_with_messages() {
    let empty = BTreeMap::from([(ComponentId::nic(0).to_string(), Account::default())]);
    let times = Times(vec![("out", vec![round([500.0, 500.0, 0.0, 0.0]), empty])]);
    assert_eq!(times.of_messages("out", ComponentId::nic(0)), [750.0]);
    assert_eq!(times.of_messages("in", ComponentId::nic(0)), [0.0; 0]);
}

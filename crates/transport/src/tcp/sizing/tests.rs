use super::*;

/// A path without bounds but the device's.
const BASE: Sizing = Sizing {
    mss: 1000,
    device: 64_000,
    window_max: 1 << 24,
    cwnd: 1 << 22,
    min_rtt_us: 90_000,
    rate: 80_000_000,
};

fn chunk(sizing: Sizing) -> u64 {
    sizing.chunk(MinSegments::default())
}

#[test]
fn a_fast_path_has_segments_as_large_as_the_device_takes() {
    // 80 MB a second.
    assert_eq!(chunk(BASE), 64_000);
}

#[test]
fn a_short_path_does_whatever_its_rate_is() {
    let near = Sizing { cwnd: 140_000, rate: 5_000_000, min_rtt_us: 300, ..BASE };
    assert_eq!(chunk(near), 64_000);
    let less_near = Sizing { min_rtt_us: 1_600, ..near };
    assert_eq!(chunk(less_near), 12_000);
}

#[test]
fn a_slow_path_has_what_it_sends_in_a_millisecond() {
    let slow = Sizing { cwnd: 1_000_000, rate: 12_000_000, ..BASE };
    assert_eq!(chunk(slow), 11_000);
    assert_eq!(chunk(Sizing { rate: 20_000_000, ..slow }), 19_000);
}

#[test]
fn a_very_slow_path_has_two_segments_or_what_is_wished() {
    let crawling = Sizing { cwnd: 40_000, rate: 800_000, ..BASE };
    assert_eq!(chunk(crawling), 2_000);
    assert_eq!(crawling.chunk("10".parse().expect("a number")), 10_000);
}

#[test]
fn neither_window_is_spent_on_one_segment() {
    let before_any_measurement = Sizing { rate: u64::MAX, min_rtt_us: 0, cwnd: 10_000, ..BASE };
    assert_eq!(chunk(before_any_measurement), 5_000);
    assert_eq!(chunk(Sizing { window_max: 7_000, ..before_any_measurement }), 3_000);
    assert_eq!(chunk(Sizing { window_max: 100, ..before_any_measurement }), 1_000);
}

#[test]
fn the_least_is_a_number_of_segments() {
    for wrong in ["0", "1001", "-1", "", "two", "2.5"] {
        assert!(wrong.parse::<MinSegments>().is_err(), "{wrong}");
    }
    assert_eq!("44".parse::<MinSegments>().map(MinSegments::count), Ok(44));
}

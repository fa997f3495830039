use super::*;

#[test]
fn a_ratio_to_nothing_is_a_number() {
    assert_eq!(Throughput(6.0).ratio_to(Throughput(4.0)), 1.5);
    assert_eq!(Throughput(6.0).ratio_to(Throughput::NONE), 6.0);
    assert_eq!(Throughput(6.0).ratio_to(Throughput(f64::NAN)), 6.0);
}

#[test]
fn throughputs_compare_and_their_parts_do() {
    let (less, more) = (Throughput(90.0), Throughput(100.0));
    assert!(less < more && less > more * Share(0.5) && less.abs_diff(more) == more * 0.1);
    assert_eq!([less, more].into_iter().sum::<Throughput>() / 2.0, Throughput(95.0));
    assert_eq!(ByteRate(1e6).mbit_per_s(), 8.0);
}

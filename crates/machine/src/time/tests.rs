use super::*;

#[test]
fn a_part_of_a_microsecond_counts_as_one() {
    assert_eq!(Microseconds::from(Nanoseconds(4_001)), Microseconds(5));
    assert_eq!(Microseconds::from(Nanoseconds(u64::MAX)).0, u64::MAX / 1000 + 1);
    assert_eq!(("17".parse(), Microseconds(17).to_string()), (Ok(Nanoseconds(17)), "17 us".into()));
}

#[test]
fn latencies_compare_and_are_printed_with_their_unit() {
    let (quick, slow) = (Latency(20.0), Latency(50.4));
    assert!(quick < slow && quick.is_valid() && !Latency(0.0).is_valid() && !Latency(f64::NAN).is_valid());
    assert_eq!(((quick * 2.0 + quick) / quick, format!("{slow:.0}")), (3.0, "50 us".into()));
    assert_eq!(format!("{:+.0}", quick - slow), "-30 us");
}

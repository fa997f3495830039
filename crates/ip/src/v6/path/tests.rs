use super::*;

#[test]
fn the_least_counts_until_it_is_old() {
    let mut paths = Paths::default();
    let (a, start) = (Ipv6Addr::from_bits(1), Instant::from_millis(1));
    assert_eq!(paths.get(start, a), None);
    paths.put(start, a, 1400);
    paths.put(start, a, 1500);
    assert_eq!(paths.get(start, a), Some(1400));
    paths.put(start, a, 100);
    assert_eq!(paths.get(start, a), Some(MTU_MIN));
    assert_eq!(paths.get(start + LIFETIME, a), None);
    for i in 0..2 * PATHS_MAX {
        paths.put(start + Duration::from_millis(i as u64), Ipv6Addr::from_bits(i as u128), 1400);
    }
    assert_eq!(paths.0.len(), PATHS_MAX);
}

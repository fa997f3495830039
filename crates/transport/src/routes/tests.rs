use super::*;

#[test]
fn an_answer_is_believed_for_its_time_and_the_table_is_bounded() {
    let mut routes = Routes::new(Key([1, 2]));
    let way = |n: u32| {
        let mut to = [0; 16];
        to[..4].copy_from_slice(&n.to_le_bytes());
        (WireAddress::default(), WireAddress(to))
    };
    let now = Instant::from_millis(5);
    routes.put(now, way(0), 7, LIFETIME);
    assert_eq!((routes.get(now, way(0)), routes.get(now, way(1))), (Some(7), None));
    assert_eq!(routes.get(now + LIFETIME, way(0)), None);
    for n in 0..20_000 {
        routes.put(now, way(n), 8, LIFETIME);
        assert_eq!(routes.get(now, way(n)), Some(8));
    }
    assert!(routes.0.len() <= ROUTES_MAX);
}

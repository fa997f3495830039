use super::*;

#[test]
fn drawn_loads_are_those_of_their_seed_and_differ() {
    let draw = |seed| {
        let mut random = Random::new(seed);
        (0..50).map(|_| Load::drawn(&mut random)).collect::<Vec<_>>()
    };
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
    assert!(draw(3).iter().all(|load| !load.0.is_empty() && load.0.len() <= 3));
    assert!(draw(3).iter().any(|load| load.0.len() > 1));
}

#[test]
fn places_cover_every_way() {
    let all = Places::all(&[CpuId(0), CpuId(1)]);
    assert_eq!(all.len(), 4);
    assert!(
        all.iter().any(|p| p.program != p.peer)
            && all.iter().any(|p| p.program == CpuId(1) && p.peer == CpuId(1))
    );
}

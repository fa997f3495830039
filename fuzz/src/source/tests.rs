use super::*;

/// A bit of everything.
fn draw(source: &mut Source) -> (u8, u32, u64, u64, bool, Vec<u8>, Vec<u8>) {
    (
        source.byte(),
        source.next_u32(),
        source.next_u64(),
        source.below(1000),
        source.chance(0.5),
        source.bytes(3),
        source.noise(4),
    )
}

#[test]
fn the_bytes_that_a_seeded_source_used_say_the_same_again() {
    let mut seeded = Source::seeded(7);
    let drawn: Vec<_> = (0..50).map(|_| draw(&mut seeded)).collect();
    let mut again = Source::of_bytes(seeded.used());
    for expected in drawn {
        assert!(!again.is_at_end());
        assert_eq!(draw(&mut again), expected);
    }
    assert!(again.is_at_end());
    // The values behind the end are the same as well.
    seeded.end();
    assert!(seeded.is_at_end());
    assert_eq!(draw(&mut seeded), draw(&mut again));
    assert_eq!(seeded.used(), again.used());
}

#[test]
fn one_byte_is_one_small_decision() {
    let mut source = Source::of_bytes(&[255, 255, 1, 0, 0, 255, 255]);
    assert_eq!((source.below(0), source.below(1)), (0, 0));
    assert_eq!(source.below(256), 255);
    assert_eq!(source.below(10), 5);
    assert_eq!(source.below(257), 1);
    assert!(!source.is_at_end());
    source.byte();
    assert_eq!(source.below(65_536), 65_535);
    assert!(source.is_at_end());
}

#[test]
fn zeros_say_no_and_chances_come_as_often_as_they_should() {
    assert!(!Source::of_bytes(&[0, 0]).chance(0.999));
    assert!(Source::of_bytes(&[0, 0]).chance(1.0));
    let mut source = Source::seeded(3);
    let yes = (0..100_000).filter(|_| source.chance(0.02)).count();
    assert!((1800..2200).contains(&yes), "{yes}");
    assert!((0..10_000).all(|_| source.below(3_000_000) < 3_000_000));
}

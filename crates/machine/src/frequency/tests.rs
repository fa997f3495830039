use super::*;

#[test]
fn a_share_of_a_clock_that_is_not_known_is_still_a_number() {
    assert_eq!(KiloHertz(800_000).share_of(KiloHertz(3_200_000)), Share(0.25));
    assert!(KiloHertz(800_000).share_of(KiloHertz(0)).0.is_finite());
    assert_eq!(KiloHertz::from_mhz(u64::MAX), KiloHertz(u64::MAX));
}

use super::*;

#[test]
fn a_bucket_refills_with_time_and_not_beyond_its_rate() {
    let mut b = Bucket::new(10);
    let mut take = |now| (0..100).filter(|_| b.take(Instant::from_millis(now), UNIT / 2)).count();
    assert_eq!(take(5_000), 10);
    assert_eq!(take(5_300), 3);
    assert_eq!(take(60_000), 10);
}

#[test]
fn how_many_tokens_there_are_is_not_known_exactly() {
    let mut random = eft_base::Random::new(1);
    let mut b = Bucket::new(1000);
    let counts: alloc::vec::Vec<usize> = (1..100)
        .map(|s| (0..3000).filter(|_| b.take(Instant::from_millis(s * 5000), random.next_u64())).count())
        .collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 900 && *most < 1100 && most - least > 20, "{least} to {most}");
}

use super::*;

#[test]
fn space_is_not_released_under_a_pending_send() {
    let mut random = eft_base::Random::new(9);
    for _ in 0..200 {
        let mut f = InFlight::default();
        let mut sends: alloc::vec::Vec<(u64, u8)> = alloc::vec::Vec::new();
        let mut next = 0;
        for _ in 0..200 {
            if random.below(2) == 0 {
                let offset = if random.below(4) == 0 && next > 0 {
                    random.below(next)
                } else {
                    next += 10;
                    next - 10
                };
                sends.push((offset, f.add(offset)));
            } else if !sends.is_empty() {
                let (_, epoch) = sends.remove(0);
                f.remove(epoch);
            }
            assert_eq!(f.count() as usize, sends.len());
            let lowest = sends.iter().map(|s| s.0).min().unwrap_or(u64::MAX);
            assert!(f.lowest() <= lowest, "{} {lowest}", f.lowest());
        }
        for (_, epoch) in sends {
            f.remove(epoch);
        }
        assert_eq!(f.lowest(), u64::MAX);
    }
}

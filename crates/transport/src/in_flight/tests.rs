use super::*;
use alloc::collections::VecDeque;
use eft_base::Random;

const RING: usize = 700;

#[test]
fn space_is_not_released_under_a_pending_send() {
    let mut random = Random::new(9);
    for _ in 0..200 {
        let mut f = InFlight::default();
        let mut sends: VecDeque<(u64, u8)> = VecDeque::new();
        let mut next = 0;
        for _ in 0..200 {
            if random.below(2) == 0 {
                let offset = if random.below(4) == 0 && next > 0 {
                    random.below(next)
                } else {
                    next += 10;
                    next - 10
                };
                sends.push_back((offset, f.add(offset, RING)));
            } else if let Some((_, group)) = sends.pop_front() {
                f.remove(group);
            }
            assert_eq!(f.count() as usize, sends.len());
            let lowest = sends.iter().map(|s| s.0).min().unwrap_or(u64::MAX);
            assert!(f.lowest() <= lowest, "{} {lowest}", f.lowest());
        }
        for (_, group) in sends {
            f.remove(group);
        }
        assert_eq!(f.lowest(), u64::MAX);
    }
}

/// Sends of any length, answered in order, with up to a ring of bytes between the first unanswered one and the last.
#[test]
fn what_is_kept_beside_pending_sends_is_a_small_part_of_the_ring() {
    let mut random = Random::new(10);
    for longest in [1, 10, 100] {
        let (mut f, mut sends, mut next) = (InFlight::default(), VecDeque::new(), 0);
        for _ in 0..10_000 {
            let len = 1 + random.below(longest);
            let first = sends.front().map_or(next, |s: &(u64, u8)| s.0);
            if random.below(2) == 0 && next + len <= first + RING as u64 {
                sends.push_back((next, f.add(next, RING)));
                next += len;
            } else if let Some((_, group)) = sends.pop_front() {
                f.remove(group);
            }
            let first = sends.front().map_or(u64::MAX, |s| s.0);
            let kept = first.min(next) - f.lowest().min(next);
            assert!(kept <= RING as u64 / 7 + longest, "{kept} bytes of sends up to {longest}");
        }
    }
}

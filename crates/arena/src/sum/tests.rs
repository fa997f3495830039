use super::*;
use eft_base::Random;

/// Both ways of summing agree on an item of this many words after a bit, a place or the length has changed.
fn both_ways_agree<const WORDS: usize>(random: &mut Random) {
    for _ in 0..100 {
        let mut item = [0u64; WORDS];
        item.iter_mut().for_each(|word| *word = random.next_u64());
        let narrow = Sums::Second.of(&item);
        let mut copy = [[7u64; WORDS]; 2];
        assert_eq!(
            Sum::from(Way::best(Sums::Second).sum_and_copy(&item, &mut copy[0])),
            narrow,
            "{WORDS} words"
        );
        assert_eq!(copy, [item, [7; WORDS]], "{WORDS} words, and none behind them");
        assert_eq!(Sum::from(Way::best(Sums::Second).sum(&item)), narrow, "{WORDS} words, without a copy");
        let at = random.below(WORDS as u64) as usize;
        item[at] ^= 1 << random.below(64);
        assert_ne!(Sums::Second.of(&item)[0], narrow[0], "a bit of {WORDS} words");
    }
}

#[test]
fn both_ways_come_to_the_same() {
    let random = &mut Random::new(1);
    both_ways_agree::<1>(random);
    both_ways_agree::<2>(random);
    both_ways_agree::<3>(random);
    both_ways_agree::<4>(random);
    both_ways_agree::<5>(random);
    both_ways_agree::<7>(random);
    both_ways_agree::<8>(random);
    both_ways_agree::<9>(random);
    both_ways_agree::<32>(random);
    both_ways_agree::<39>(random);
    both_ways_agree::<270>(random);
}

/// Arenas outlive the program that wrote them, so checksums must not change.
#[test]
fn sums_are_those_of_earlier_releases() {
    let words: Vec<u64> = (1..=9u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let words: [u64; 9] = words.try_into().unwrap();
    assert_eq!(Sums::First.of(&words), OF_NINE);
    assert_eq!(Sums::Second.of(&words), [OF_NINE[0], 0xf509268ef389a64a]);
    for sums in [Sums::First, Sums::Second] {
        assert_eq!(sums.of(&[0u64; 4]), [4 | 1 << 63, !0]);
    }
}

const OF_NINE: Sum = [0x247fe29027d2ad5f, 0xcf40221892770b10];

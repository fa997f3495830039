use super::*;
use eft_base::Random;

#[test]
fn pieces_of_any_length_sum_as_the_whole() {
    let mut random = Random::new(3);
    for round in 0..500 {
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next_u32() as u8).collect();
        let mut sum = PieceSum::default();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            sum.add(piece);
            rest = after;
        }
        let whole = Checksum::new().add_bytes(&bytes).finish();
        assert_eq!(sum.finish(), whole, "round {round}");
    }
}

use super::*;

#[test]
fn built_options_are_parsed_back() {
    let mut b = Builder::new();
    b.mss(1460);
    b.sack_permitted_and_timestamps(1, 2);
    b.scale(7);
    assert_eq!(b.bytes().len(), 20);
    let o = Options::parse(b.bytes());
    assert_eq!((o.mss, o.scale, o.sack_permitted, o.timestamps), (Some(1460), Some(7), true, Some((1, 2))));
    let mut b = Builder::new();
    b.timestamps(1, 2);
    assert_eq!(b.sack_room(), 3);
    b.sack(&[Range { start: 5, end: 9 }, Range { start: 20, end: 30 }, Range { start: 40, end: 41 }], |o| {
        o as u32
    });
    assert_eq!(b.bytes().len(), OPTIONS_MAX);
    assert_eq!(Options::parse(b.bytes()).sack_blocks(), &[(5, 9), (20, 30), (40, 41)]);
}

#[test]
fn broken_lists_end_quietly() {
    assert_eq!(Options::parse(&[2]), Options::default());
    assert_eq!(Options::parse(&[2, 0, 1]), Options::default());
    assert_eq!(Options::parse(&[2, 9, 1]), Options::default());
    assert_eq!(Options::parse(&[2, 3, 1, 4, 2]).mss, None);
    assert_eq!(Options::parse(&[3, 3, 200]).scale, Some(SCALE_MAX));
    let mut random = eft_base::Random::new(3);
    for _ in 0..20_000 {
        let bytes: [u8; 40] = core::array::from_fn(|_| random.next_u32() as u8 & 15);
        let _ = Options::parse(&bytes[..random.below(41) as usize]);
    }
}

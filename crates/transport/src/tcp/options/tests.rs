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

#[test]
fn tcp_ao_is_found_wherever_it_is_and_once() {
    let option = Builder::authentication(7, 9, 12, &[5; MAC_MAX]);
    let told = Authentication { key_id: 7, next_id: 9, mac_len: 12, mac: [5; MAC_MAX] };
    for (before, after) in
        [(&[][..], &[][..]), (&[MSS, 4, 5, 180], &[NOP, NOP, SACK_PERMITTED, 2]), (&[NOP], &[END])]
    {
        let all = [before, &option, after].concat();
        assert_eq!(Options::parse(&all).authentication, Some(told));
        assert_eq!(mac_range(&all), Some(before.len() + 4..before.len() + 16));
    }
    let short = Builder::authentication(1, 2, 5, &[3; MAC_MAX]);
    assert_eq!((short[1], short[9..].iter().all(|b| *b == NOP)), (9, true));
    assert_eq!(mac_range(&short), Some(4..9));
    // Twice, too long, or without KeyIDs: no key makes that.
    let twice = Options::parse(&[option, option].concat()).authentication;
    assert_eq!(twice.map(|a| a.mac_len), Some(u8::MAX));
    let long = [&[AUTHENTICATION, 20, 1, 2][..], &[0; 16]].concat();
    assert_eq!(Options::parse(&long).authentication.map(|a| a.mac_len), Some(16));
    assert_eq!(Options::parse(&[AUTHENTICATION, 3, 1, NOP]).authentication, None);
}

/// Where a code is looked for lies within the options, whatever they are.
#[test]
fn a_code_is_within_any_options() {
    let mut random = eft_base::Random::new(29);
    for _ in 0..20_000 {
        let len = random.below(OPTIONS_MAX as u64 + 1) as usize;
        let kinds = [END, NOP, MSS, AUTHENTICATION, AUTHENTICATION, 2, 3, 4, 6, 16, 40];
        let bytes: Vec<u8> = (0..len).map(|_| kinds[random.below(kinds.len() as u64) as usize]).collect();
        let Some(place) = mac_range(&bytes) else { continue };
        assert!(place.start >= 4 && place.start <= place.end && place.end <= len, "{bytes:?}");
        assert_eq!(bytes[place.start - 4], AUTHENTICATION);
    }
}

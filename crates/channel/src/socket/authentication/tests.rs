use super::*;

#[test]
fn wishes_are_the_same_after_their_way_through_a_word() {
    let mut wishes = AuthenticationWishes { required: true, ..AuthenticationWishes::default() };
    assert_eq!(AuthenticationWishes::from_word(wishes.word()), wishes);
    for turn in 1..=17 {
        wishes.choose(Some(255 - turn), (turn % 2 == 0).then_some(turn));
        assert_eq!(wishes.changes, turn % 16);
        assert_eq!(AuthenticationWishes::from_word(wishes.word()), wishes);
    }
    wishes.accepts_icmp = true;
    wishes.choose(None, None);
    assert_eq!(AuthenticationWishes::from_word(wishes.word()), wishes);
    assert_eq!(AuthenticationWishes::from_word(0), AuthenticationWishes::default());
}

#[test]
fn a_connection_gets_what_does_not_name_a_key() {
    let mut wishes = AuthenticationWishes { accepts_icmp: true, ..AuthenticationWishes::default() };
    wishes.choose(Some(1), Some(2));
    let got = AuthenticationWishes { accepts_icmp: true, ..AuthenticationWishes::default() };
    assert_eq!(wishes.inherited(), got);
}

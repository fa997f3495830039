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

/// Programs keep the library that they started with: what it reads stays where it was, and what came later lies behind it.
#[test]
fn status_and_statistics_lie_where_layout_7_began_to_have_them() {
    use crate::socket::{ARENA_HEADER_LEN, Arena, Geometry, SocketStatistics};
    let geometry = Geometry { slots: 1, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(crate::Segment::heap(geometry.arena_len()), geometry).unwrap();
    let page = arena.socket(0).unwrap();
    let statistics = SocketStatistics {
        incarnation: page.incarnation(),
        congestion: 3,
        receive_rtt_us: 0x0102_0304,
        received_bytes_by_mark: [7, 8, 9],
        accurate_failures: 0x0a0b,
        ..SocketStatistics::default()
    };
    let status =
        AuthenticationStatus { incarnation: page.incarnation(), good: 11, ..AuthenticationStatus::default() };
    page.set_authentication_status(&status);
    page.set_statistics(&statistics);
    assert_eq!((page.statistics(), page.authentication_status()), (Some(statistics), Some(status)));
    let word = |at: usize| {
        let mut bytes = [0; 4];
        arena.view().segment.read(ARENA_HEADER_LEN + at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    assert_eq!((word(1268), word(1280)), (3, 11));
    assert_eq!((word(1440), word(1460), word(1476)), (0x0102_0304, 9, 0x0a0b_0000));
}

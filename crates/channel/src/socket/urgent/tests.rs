use super::*;
use crate::segment::Segment;
use crate::socket::{Arena, Geometry};

fn page() -> SocketPage {
    let geometry = Geometry { slots: 1, send_len: 4096, receive_len: 4096 };
    Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap().socket(0).unwrap()
}

fn announce(page: &SocketPage, at: u64, arrived: bool) {
    page.set_urgent(Urgent::word(Some(Urgent { at, arrived })));
}

#[test]
fn a_word_holds_what_it_was_made_of() {
    for urgent in [None, Some(Urgent { at: 0, arrived: false }), Some(Urgent { at: 1 << 40, arrived: true })]
    {
        assert_eq!(Urgent::of_word(Urgent::word(urgent)), urgent);
    }
}

#[test]
fn a_receive_stops_before_the_urgent_byte_and_leaves_it_out() {
    let page = page();
    assert_eq!(page.receive_step(0, 100, false), Step { skip: 0, len: 100, at_mark: false });
    announce(&page, 10, true);
    assert_eq!(page.receive_step(0, 100, false), Step { skip: 0, len: 10, at_mark: false });
    assert_eq!(page.receive_step(10, 90, false), Step { skip: 1, len: 89, at_mark: true });
    assert_eq!(page.receive_step(10, 1, false), Step { skip: 1, len: 0, at_mark: true });
    assert_eq!(page.receive_step(10, 0, false), Step { skip: 0, len: 0, at_mark: true });
    assert_eq!(page.receive_step(11, 80, false), Step { skip: 0, len: 80, at_mark: false });
}

#[test]
fn in_line_the_byte_is_one_of_many_and_a_receive_stops_before_it() {
    let page = page();
    announce(&page, 10, true);
    assert_eq!(page.receive_step(0, 100, true), Step { skip: 0, len: 10, at_mark: false });
    assert_eq!(page.receive_step(10, 90, true), Step { skip: 0, len: 90, at_mark: true });
}

#[test]
fn the_byte_is_there_until_it_is_taken_or_passed() {
    let page = page();
    announce(&page, 10, false);
    assert_eq!((page.urgent().is_some(), page.urgent_byte()), (true, None));
    announce(&page, 10, true);
    assert_eq!(page.urgent_byte(), Some(10));
    page.set_urgent_taken(11);
    assert_eq!((page.urgent().is_some(), page.urgent_byte()), (true, None));
    page.set_receive_taken(11);
    assert_eq!(page.urgent(), None);
}

#[test]
fn a_byte_that_was_taken_by_itself_does_not_come_again() {
    let page = page();
    announce(&page, 10, true);
    page.set_urgent_taken(11);
    announce(&page, 20, true);
    assert_eq!(page.receive_step(0, 30, false), Step { skip: 0, len: 10, at_mark: false });
    assert_eq!(page.receive_step(10, 20, false), Step { skip: 1, len: 9, at_mark: false });
    // Whatever an application writes into its page, nothing leads out of what is there.
    page.set_urgent_taken(u64::MAX);
    page.set_urgent(u64::MAX);
    assert_eq!(page.receive_step(u64::MAX, 20, false).len, 20);
}

use super::*;
use eft_base::DomainId;
use eft_channel::socket::{Arena, Geometry, flag};

const GEOMETRY: Geometry = Geometry { slots: 4, send_len: 4096, receive_len: 4096 };

fn arena() -> Arena {
    Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap()
}

fn page(stage: &Stage, arena: &Arena, slot: u32) -> Page {
    let socket = SocketId { domain: DomainId(1), slot };
    Page::new(stage, arena.socket(slot).unwrap(), socket, slot, (0, 0))
}

#[test]
fn nothing_is_seen_before_the_commit() {
    let (stage, arena) = (Stage::default(), arena());
    let (page, seen) = (page(&stage, &arena, 0), arena.socket(0).unwrap());
    let incarnation = page.reset(ComponentId::TCP);
    page.set_option(Opt::Ttl, 9);
    page.set_receive_end(64);
    page.set_flags(flag::CONNECTED);
    page.set_error(111);
    page.put_record(0, [7; RECORD_MAX]);
    assert_eq!((page.receivable(), page.option(Opt::Ttl), page.option(Opt::Tos)), (64, 9, 0));
    let read = || {
        let mut record = [0; RECORD_MAX];
        seen.read_receive(0, &mut record);
        (seen.kind(), seen.incarnation(), seen.receive_end(), seen.flags(), seen.error(), record[5])
    };
    assert_eq!(read(), (0, 0, 0, 0, 0, 0));
    stage.commit(|_| panic!("nobody reads"));
    assert_eq!(read(), (1, incarnation, 64, flag::CONNECTED, 111, 7));
    assert_eq!(seen.option(Opt::Ttl), 9);
    seen.take_error();
    stage.commit(|_| panic!("nothing is left"));
    assert_eq!(seen.error(), 0, "written once");
}

#[test]
fn words_of_the_slots_last_user_are_not_read_in_the_turn_of_the_reset() {
    let (stage, arena) = (Stage::default(), arena());
    let program = arena.socket(0).unwrap();
    program.set_send_end(1 << 40);
    program.set_receive_taken(1 << 40);
    program.add_wish(2);
    program.set_option(Opt::SendBuffer, 4096);
    let page = page(&stage, &arena, 0);
    page.reset(ComponentId::TCP);
    assert_eq!((page.send_end(), page.receive_taken(), page.wishes()), (0, 0, 0));
    assert_eq!((page.option(Opt::SendBuffer), page.is_worth_writing()), (0, true));
    stage.commit(|_| ());
    assert_eq!((page.send_end(), page.receive_taken(), page.wishes()), (0, 0, 0));
}

#[test]
fn two_uses_of_a_slot_in_one_turn_have_two_incarnations() {
    let (stage, arena) = (Stage::default(), arena());
    let first = page(&stage, &arena, 0);
    let one = first.reset(ComponentId::TCP);
    first.set_free();
    let second = page(&stage, &arena, 0);
    let two = second.reset(ComponentId::UDP);
    assert_eq!(two, one + 1);
    stage.commit(|_| ());
    let seen = arena.socket(0).unwrap();
    assert_eq!((seen.kind(), seen.incarnation()), (2, two));
}

#[test]
fn an_application_that_read_past_the_notify_position_is_found_at_the_commit() {
    let (stage, arena) = (Stage::default(), arena());
    let (page, program) = (page(&stage, &arena, 3), arena.socket(3).unwrap());
    page.arm_receive_notify(100);
    program.set_receive_taken(100);
    let mut late = Vec::new();
    stage.commit(|i| late.push(i));
    assert_eq!((late.as_slice(), program.receive_notify()), (&[3][..], 100));
    page.arm_receive_notify(200);
    page.set_receive_notify(u64::MAX);
    stage.commit(|_| panic!("it was taken back"));
}

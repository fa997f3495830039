use super::*;

/// One life of a server, which ends after it has named each of `notes` in turn.
fn dies(segment: &Segment, notes: &[Note]) -> Finding {
    let (docket, finding) = Docket::open(segment.clone());
    notes.iter().for_each(|n| docket.name(*n));
    finding
}

fn segment(seq: u64) -> Note {
    Note::of(Kind::Segment, 7, 3, &[seq, 1460])
}

fn lives(segment: &Segment) -> Docket {
    let (docket, _) = Docket::open(segment.clone());
    docket
}

#[test]
fn an_input_that_kills_twice_in_a_row_is_condemned() {
    let arena = Segment::heap(4096);
    assert_eq!(dies(&arena, &[segment(5), segment(9)]), Finding::Nothing);
    assert_eq!(dies(&arena, &[segment(9)]), Finding::Blamed);
    assert_eq!(dies(&arena, &[]), Finding::Condemned(None));
    let docket = lives(&arena);
    assert!(docket.is_condemned(segment(9)) && !docket.is_condemned(segment(5)));
    assert!(!docket.is_condemned(Note::of(Kind::Segment, 7, 4, &[9, 1460])), "another use of the block");
    assert!(!docket.is_condemned(Note::of(Kind::Serve, 7, 3, &[9, 1460])));
}

#[test]
fn deaths_of_other_inputs_or_from_outside_condemn_none() {
    let arena = Segment::heap(4096);
    assert_eq!(dies(&arena, &[segment(1)]), Finding::Nothing);
    for seq in [2, 1, 2] {
        assert_eq!(dies(&arena, &[segment(seq)]), Finding::Blamed);
    }
    for _ in 0..3 {
        dies(&arena, &[segment(3)]);
        acquit(&arena);
    }
    let (docket, finding) = Docket::open(arena.clone());
    docket.name(segment(2));
    docket.clear();
    assert_eq!((finding, dies(&arena, &[])), (Finding::Nothing, Finding::Nothing));
}

#[test]
fn who_reads_the_bytes_knows_whether_an_input_runs() {
    let arena = Segment::heap(4096);
    let runs = || {
        let mut head = [0; 4096];
        arena.read(0, &mut head).unwrap();
        has_running(&head)
    };
    let docket = lives(&arena);
    assert!(!runs());
    docket.name(segment(4));
    assert!(runs());
    docket.clear();
    assert!(!runs(), "between two of them");
    assert!(!has_running(&[1; 64]), "a head that is too short");
}

#[test]
fn a_connection_is_given_up_for_its_third_segment() {
    let arena = Segment::heap(4096);
    let found: Vec<Finding> =
        [1, 1, 2, 2, 3, 3, 4].iter().map(|seq| dies(&arena, &[segment(*seq)])).collect();
    let condemned = |of: Option<u32>| found.iter().filter(|f| **f == Finding::Condemned(of)).count();
    assert_eq!((condemned(None), condemned(Some(7))), (2, 1), "the third segment of one connection");
}

#[test]
fn many_condemned_push_the_oldest_out() {
    let arena = Segment::heap(4096);
    for n in 0..20 {
        let message = Note::alone(Kind::Message, &[n]);
        dies(&arena, &[message]);
        dies(&arena, &[message]);
        assert!(lives(&arena).is_condemned(message));
    }
    assert!(!lives(&arena).is_condemned(Note::alone(Kind::Message, &[0])));
}

#[test]
fn a_condemned_message_is_refused_once() {
    let arena = Segment::heap(4096);
    let line = [1, 2];
    for fatal in [false, false, true, false] {
        let mut docket = lives(&arena);
        docket.begin(&line);
        assert_eq!((docket.take_fatal(), docket.take_fatal()), (fatal, false));
    }
}

/// The begin of an IP packet with other addresses, and what follows them.
fn head(version: u8, following: u8) -> Vec<u8> {
    let mut head = vec![if version == 4 { 0x45 } else { 0x60 }; 80];
    let (addresses, behind) = if version == 4 { (12, 20) } else { (8, 40) };
    head[addresses] = 10;
    head[behind + 15] = following;
    head
}

#[test]
fn a_packet_is_known_when_it_is_sent_again() {
    for (version, len, changes) in [(4, 3, [5, 8, 10]), (6, 5, [3, 7, 3])] {
        let arena = Segment::heap(4096);
        let mut blamed = 0;
        for (enters, changed) in [true, true, false].into_iter().zip(changes) {
            let mut docket = lives(&arena);
            let mut again = head(version, 1);
            again[changed] ^= 1;
            again[77] ^= changed as u8;
            assert_eq!(docket.enter(Note::packet(&again)), enters);
            blamed += docket.take_blamed();
        }
        assert_eq!(blamed, 2);
        let docket = lives(&arena);
        let mut longer = head(version, 1);
        longer[len] ^= 1;
        assert!([head(version, 2), longer].iter().all(|other| docket.enter(Note::packet(other))));
    }
    assert_ne!(Note::packet(&[0, 1, 2]), Note::packet(&[0, 1, 3]));
}

#[test]
fn who_is_not_protected_names_nothing() {
    let arena = Segment::heap(4096);
    let mut docket = lives(&arena);
    docket.name(segment(1));
    docket.stop();
    docket.begin(&[1]);
    assert!(docket.enter(segment(1)) && !docket.take_fatal());
    assert_eq!(Docket::open(arena).1, Finding::Nothing);
}

/// What is done in the place of a condemned input is not to be laid to the input before it.
#[test]
fn nothing_runs_when_an_input_is_refused() {
    let arena = Segment::heap(4096);
    let condemned = Note::setting("key", b"value");
    dies(&arena, &[condemned]);
    dies(&arena, &[condemned]);
    let docket = lives(&arena);
    docket.name(segment(1));
    assert!(!docket.enter(condemned));
    assert_eq!(running_input(&arena, |_| None), None);
    docket.name(segment(1));
    assert!(!docket.enter_again(Running(condemned.words())));
    assert_eq!(running_input(&arena, |_| None), None);
    assert!(docket.enter(Note::setting("key", b"other")) && docket.enter(Note::setting("ke", b"yvalue")));
}

#[test]
fn people_are_told_what_ran() {
    let arena = Segment::heap(4096);
    let told = || running_input(&arena, |block| Some(format!("block {block}")));
    assert_eq!(told(), None);
    lives(&arena).name(segment(1));
    assert_eq!(told().unwrap(), "a segment of block 7");
    lives(&arena).name(Note::packet(&[1]));
    assert_eq!(told().unwrap(), "a packet");
    lives(&arena).name(Note::setting("ip", b""));
    assert_eq!(told().unwrap(), "a setting");
}

/// A successor dies at the `steps`-th store while it opens the docket. False: it has fewer.
fn dies_while_opening(segment: &Segment, steps: u64) -> bool {
    let fuse = Fuse::default();
    fuse.light(steps);
    let open = || Docket::open_with(segment.clone(), fuse);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)).is_err()
}

#[test]
fn an_input_that_killed_once_is_not_condemned_for_a_death_while_the_docket_is_opened() {
    let mut deaths = 0;
    for steps in 1.. {
        let arena = Segment::heap(4096);
        dies(&arena, &[segment(9)]);
        if !dies_while_opening(&arena, steps) {
            break;
        }
        deaths += 1;
        let (docket, finding) = Docket::open(arena);
        assert!(!docket.is_condemned(segment(9)), "{finding:?} after a death at store {steps}");
    }
    assert!(deaths >= 4, "{deaths} stores");
}

#[test]
fn an_input_that_kills_is_condemned_once_wherever_a_successor_dies_while_it_opens_the_docket() {
    let mut deaths = 0;
    for steps in 1.. {
        let arena = Segment::heap(4096);
        dies(&arena, &[segment(9)]);
        dies(&arena, &[segment(9)]);
        if !dies_while_opening(&arena, steps) {
            break;
        }
        deaths += 1;
        // Unless it is condemned already, it kills once more.
        if !lives(&arena).is_condemned(segment(9)) {
            dies(&arena, &[segment(9)]);
        }
        let docket = lives(&arena);
        assert!(docket.is_condemned(segment(9)), "after a death at store {steps}");
        let places = (0..CONDEMNED_MAX).filter(|n| docket.pair(CONDEMNED + 2 * n) == segment(9).words());
        assert_eq!(places.count(), 1, "after a death at store {steps}");
    }
    assert!(deaths >= 8, "{deaths} stores");
}

use super::super::layout1::{ENTRY_LEN, HEADER_LEN, MAGIC, read as read_1, sum};
use super::*;
use crate::rule::Packet;
use crate::{Filter, arena_len};
use eft_base::Instant;
use eft_base::wire::PROTOCOL_UDP;
use zerocopy::IntoBytes;

const CONFIG: FilterConfig = FilterConfig { states: 100, seed: 3 };

/// A state that a datagram from this port begins.
fn state(port: u16) -> State {
    let packet = Packet {
        source: "10.0.0.1".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
        source_port: port,
        destination_port: 53,
        protocol: PROTOCOL_UDP,
        tcp_flags: 0,
        interface: 0,
        inbound: false,
        quoted: None,
    };
    State::new(Instant::from_millis(port as u64), &packet).unwrap()
}

fn sorted(states: impl Iterator<Item = State>) -> Vec<State> {
    let mut all: Vec<State> = states.collect();
    all.sort_by_key(|s| s.flow.low.1);
    all
}

fn in_order(states: &States) -> Vec<State> {
    sorted(states.iter().copied())
}

/// An arena of layout 1 with these states.
fn old(states: &[State]) -> Segment {
    let old = Segment::heap(HEADER_LEN + CONFIG.states * ENTRY_LEN);
    old.write(0, MAGIC.as_bytes()).unwrap();
    for (i, state) in states.iter().enumerate() {
        let mut entry = Entry::new(state);
        entry.last = sum(&entry);
        // They lie anywhere.
        old.write(HEADER_LEN + (3 * i + 1) * ENTRY_LEN, entry.as_bytes()).unwrap();
    }
    old
}

#[test]
fn states_of_an_older_arena_are_found_and_taken_back() {
    let states: Vec<State> = (0..30).map(|i| state(1000 + i)).collect();
    let old = old(&states);
    assert_eq!(examine(&old, &CONFIG), Err(Refused::Older { theirs: 1, ours: LAYOUT.version }));
    let ours = Segment::heap(arena_len(&CONFIG));
    convert(&old, ours.clone(), &CONFIG).unwrap();
    let (opened, recovery) = States::open(ours.clone(), CONFIG.states, 1, Default::default());
    assert_eq!((in_order(&opened), recovery.damaged), (states.clone(), 0));
    let back = Segment::heap(old.len());
    revert(&ours, &old, back.clone(), &CONFIG).unwrap();
    assert_eq!(sorted(read_1(&back)), states);
    assert_eq!(revert(&ours, &ours, back, &CONFIG), Err(Refused::Foreign), "that is no older one");
    assert_eq!(convert(&ours, Segment::heap(arena_len(&CONFIG)), &CONFIG), Err(Refused::Foreign));
}

#[test]
fn an_entry_that_is_damaged_is_not_converted() {
    let states: Vec<State> = (0..3).map(|i| state(1000 + i)).collect();
    let old = old(&states);
    old.write(HEADER_LEN + ENTRY_LEN + 32, &[0xff]).unwrap();
    let ours = Segment::heap(arena_len(&CONFIG));
    convert(&old, ours.clone(), &CONFIG).unwrap();
    assert_eq!(sorted(Filter::open(ours, CONFIG).states().copied()), states[1..]);
}

#[test]
fn states_of_layout_2_are_found_and_taken_back() {
    let states: Vec<State> = (0..90).map(|i| state(1000 + i)).collect();
    let old = Segment::heap(LAYOUT_2.arena_len(CONFIG.states));
    write(LAYOUT_2, states.iter().copied(), old.clone(), &CONFIG);
    assert_eq!(examine(&old, &CONFIG), Err(Refused::Older { theirs: 2, ours: LAYOUT.version }));
    let ours = Segment::heap(arena_len(&CONFIG));
    convert(&old, ours.clone(), &CONFIG).unwrap();
    let (opened, recovery) = States::open(ours.clone(), CONFIG.states, 1, Default::default());
    assert_eq!((in_order(&opened), recovery.damaged, recovery.mended), (states.clone(), 0, 0));
    let back = Segment::heap(old.len());
    revert(&ours, &old, back.clone(), &CONFIG).unwrap();
    assert_eq!(in_order(&read(LAYOUT_2, &back, &CONFIG).unwrap()), states);
}

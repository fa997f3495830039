//! Every way in which a segment can be unacceptable, in every state: what is answered, and that nothing of the
//! connection changes (RFC 9293 §3.10.7, RFC 5961, RFC 7323 §5).
//!
//! "Nothing" is every byte of the arena: state, windows, TS.Recent, deadlines.

use crate::app::App;
use crate::closing::states;
use crate::script::*;
use eft_channel::socket::{Opt, wish};
use eft_transport::tcp::block::State;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// What the peer's clock says while the connection is made, and in a segment that is older or newer.
const CLOCK: u32 = 1000;
const OLDER: u32 = 900;
const NEWER: u32 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    /// An acknowledgement of what was received.
    Ack,
    Reset,
    /// A SYN-ACK: the segment begins a connection after this one (RFC 6191).
    New,
}
use Answer::*;

/// A segment: its sequence number and acknowledgment relative to the right ones.
struct Row {
    name: &'static str,
    flags: u8,
    seq: i32,
    ack: i32,
    len: usize,
    clock: u32,
    /// In ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, CLOSING and LAST-ACK.
    synchronized: Answer,
    time_wait: Answer,
    syn_received: Answer,
}

const FAR: i32 = 1 << 30;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // §3.10.7.4 step 1: the window.
    row("data before the window",        ACK,       -100,  0, 50, NEWER, Ack,     Ack,     Ack),
    row("data far before the window",    ACK,       -FAR,  0, 50, NEWER, Ack,     Ack,     Ack),
    row("data beyond the window",        ACK,        FAR,  0, 50, NEWER, Ack,     Ack,     Ack),
    row("nothing before the window",     ACK,         -1,  0,  0, NEWER, Ack,     Ack,     Ack),
    row("nothing beyond the window",     ACK,        FAR,  0,  0, NEWER, Ack,     Ack,     Ack),
    row("a FIN before the window",       FIN | ACK, -100,  0,  0, NEWER, Ack,     Ack,     Ack),
    row("a FIN beyond the window",       FIN | ACK,  FAR,  0,  0, NEWER, Ack,     Ack,     Ack),
    row("no flag beyond the window",     0,          FAR,  0,  0, NEWER, Ack,     Ack,     Ack),
    // RFC 7323 §5.3 R1.
    row("old data",                      ACK,          0,  0, 50, OLDER, Ack,     Ack,     Ack),
    row("an old FIN",                    FIN | ACK,    0,  0,  0, OLDER, Ack,     Ack,     Ack),
    row("an old SYN",                    SYN,          0,  0,  0, OLDER, Ack,     Ack,     Ack),
    // Step 2: RST, with RFC 5961 §3.2; in TIME-WAIT RFC 1337.
    row("a reset before the window",     RST,         -1,  0,  0, NEWER, Nothing, Nothing, Nothing),
    row("a reset beyond the window",     RST,        FAR,  0,  0, NEWER, Nothing, Nothing, Nothing),
    row("a reset within the window",     RST,          1,  0,  0, NEWER, Ack,     Nothing, Ack),
    row("a reset with an acknowledgment", RST | ACK,   9,  0,  0, NEWER, Ack,     Nothing, Ack),
    row("an old reset within the window", RST,         1,  0,  0, OLDER, Ack,     Nothing, Ack),
    // Step 4: SYN, with RFC 5961 §4.2.
    row("a SYN before the window",       SYN,       -100,  0,  0, NEWER, Ack,     New,     Ack),
    row("a SYN within the window",       SYN,          0,  0,  0, NEWER, Ack,     New,     Ack),
    row("a SYN beyond the window",       SYN,        FAR,  0,  0, NEWER, Ack,     New,     Ack),
    row("a SYN-ACK within the window",   SYN | ACK,    0,  0,  0, NEWER, Ack,     Ack,     Ack),
    row("a SYN with data",               SYN | ACK, -100,  0, 50, NEWER, Ack,     Ack,     Ack),
    // Step 5: ACK, with RFC 5961 §5.2.
    row("data without acknowledgment",   0,            0,  0, 50, NEWER, Nothing, Ack,     Nothing),
    row("a FIN without acknowledgment",  FIN,          0,  0,  0, NEWER, Nothing, Ack,     Nothing),
    row("an acknowledgment of nothing sent", ACK,      0,  9,  0, NEWER, Ack,     Nothing, Reset),
    row("data that acknowledges nothing sent", ACK,    0,  9, 50, NEWER, Ack,     Ack,     Reset),
    row("a FIN that acknowledges nothing sent", FIN | ACK, 0, 9, 0, NEWER, Ack,   Ack,     Reset),
    row("a very old acknowledgment",     ACK,          0, -FAR, 0, NEWER, Ack,    Nothing, Reset),
    row("data with a very old acknowledgment", ACK,    0, -FAR, 50, NEWER, Ack,   Ack,     Reset),
];

#[allow(clippy::too_many_arguments)]
const fn row(
    name: &'static str,
    flags: u8,
    seq: i32,
    ack: i32,
    len: usize,
    clock: u32,
    synchronized: Answer,
    time_wait: Answer,
    syn_received: Answer,
) -> Row {
    Row { name, flags, seq, ack, len, clock, synchronized, time_wait, syn_received }
}

const STATES: [State; 8] = [
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// Side 1 in that state, with timestamps, and nothing due.
fn in_state(state: State) -> Script {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(CLOCK);
    if state == State::SynReceived {
        let mut options = vec![2, 4, 3, 232];
        options.extend(timestamps(CLOCK, 0));
        s.say_with(SYN, &[], &options);
        s.ack = s.hear()[0].seq.wrapping_add(1);
        return s;
    }
    let socket = s.handshake(&timestamps(CLOCK, 0));
    s.say(ACK, &stream_bytes(40_000, 0, 10));
    // The application has read them.
    s.world.dirty(1, socket);
    let shut = |s: &mut Script| {
        s.world.sides[1].page(socket).add_wish(wish::SHUT_WRITE);
        s.world.dirty(1, socket);
    };
    match state {
        State::FinWait1 => shut(&mut s),
        State::FinWait2 | State::TimeWait => {
            shut(&mut s);
            s.ack = s.ack.wrapping_add(1);
            s.say(ACK, &[]);
            if state == State::TimeWait {
                s.say(FIN | ACK, &[]);
            }
        }
        State::CloseWait => s.say(FIN | ACK, &[]),
        State::LastAck => {
            s.say(FIN | ACK, &[]);
            shut(&mut s);
        }
        State::Closing => {
            shut(&mut s);
            s.say(FIN | ACK, &[]);
        }
        _ => {}
    }
    s.hear();
    assert_eq!(states(&s.world, 1), [state]);
    s
}

fn arena(s: &Script) -> Vec<u8> {
    eft_transport::tcp::inspect::contents(&s.world.sides[1].durable).unwrap()
}

fn say_row(s: &mut Script, row: &Row) {
    let right = (s.seq, s.ack);
    s.seq = s.seq.wrapping_add(row.seq as u32);
    s.ack = s.ack.wrapping_add(row.ack as u32);
    s.timestamp = Some(row.clock);
    s.say(row.flags, &vec![0x55; row.len]);
    (s.seq, s.ack) = right;
}

#[test]
fn unacceptable_segments_change_nothing() {
    for state in STATES {
        for row in TABLE {
            let mut s = in_state(state);
            let (seq, before) = (s.seq, arena(&s));
            say_row(&mut s, row);
            let heard = s.hear();
            let what = format!("{} in {state:?}: {heard:?}", row.name);
            let expected = match state {
                State::SynReceived => row.syn_received,
                State::TimeWait => row.time_wait,
                _ => row.synchronized,
            };
            match (expected, &heard[..]) {
                (Nothing, []) => {}
                (Ack, [h]) => {
                    assert_eq!((h.flags, h.ack, h.len), (ACK, seq, 0), "{what}");
                    let echo = &find_option(&h.options, 8).unwrap()[4..];
                    assert_eq!(echo, CLOCK.to_be_bytes(), "{what}");
                }
                (Reset, [h]) => assert_eq!(h.flags, RST, "{what}"),
                (New, [h]) => {
                    assert_eq!(h.flags, SYN | ACK, "{what}");
                    continue;
                }
                _ => panic!("{expected:?} expected: {what}"),
            }
            assert!(arena(&s) == before, "the connection changed: {what}");
        }
    }
}

/// Segments without data are answered every 50 ms at most, whoever sends them.
#[test]
fn a_flood_of_unacceptable_segments_is_answered_seldom() {
    for state in STATES {
        for row in TABLE.iter().filter(|r| (r.len == 0 || r.flags & SYN != 0) && r.flags & RST == 0) {
            let mut s = in_state(state);
            s.hear();
            for _ in 0..100 {
                say_row(&mut s, row);
            }
            let acks = s.hear().iter().filter(|h| h.flags == ACK).count();
            assert!(acks <= 1, "{acks} answers to {} in {state:?}", row.name);
            s.wait(51 * MS);
            say_row(&mut s, row);
            let again = s.hear().iter().filter(|h| h.flags == ACK).count();
            assert_eq!(acks, again, "later, to {} in {state:?}", row.name);
        }
    }
}

/// SYN-SENT (§3.10.7.3), LISTEN and no connection at all (§3.10.7.1, §3.10.7.2).
#[test]
fn without_a_synchronized_connection_only_syns_count() {
    #[rustfmt::skip]
    let syn_sent = [
        ("a SYN-ACK of something else",     SYN | ACK, 9, Reset),
        ("an acknowledgment of something else", ACK,   9, Reset),
        ("a reset of something else",       RST | ACK, 9, Nothing),
        ("a reset that acknowledges nothing", RST,     0, Nothing),
        ("a reset with SYN of something else", SYN | RST | ACK, 9, Nothing),
        ("an acknowledgment without SYN",   ACK,       0, Nothing),
        ("a FIN",                           FIN | ACK, 0, Nothing),
        ("no flag",                         0,         0, Nothing),
    ];
    for (name, flags, ack, expected) in syn_sent {
        let mut s = Script::new(quiet_plan());
        App::connect(&mut s.world, 1, 5555, quiet_plan());
        let syn = s.hear().pop().unwrap();
        let local = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket).local().port;
        let (from, to) = ((s.source, 5555), (s.world.sides[1].address, local));
        let before = arena(&s);
        let numbers = (77, syn.seq.wrapping_add(1 + ack));
        s.world.deliver(1, &segment(from, to, numbers, flags, 1000, &timestamps(NEWER, 0), &[]));
        s.world.turn(1);
        check(&mut s, name, expected, &before);
    }
    #[rustfmt::skip]
    let unconnected = [
        ("an acknowledgment",     ACK,       [10, 0, 0, 1], Reset),
        ("a SYN-ACK",             SYN | ACK, [10, 0, 0, 1], Reset),
        ("a reset",               RST,       [10, 0, 0, 1], Nothing),
        ("a SYN with FIN",        SYN | FIN, [10, 0, 0, 1], Nothing),
        ("a SYN with RST",        SYN | RST, [10, 0, 0, 1], Nothing),
        ("a SYN from a group",    SYN,       [224, 0, 0, 1], Nothing),
        ("data from a group",     ACK,       [224, 0, 0, 1], Nothing),
        ("a SYN from nowhere",    SYN,       [0, 0, 0, 0],  Nothing),
        ("data from nowhere",     ACK,       [0, 0, 0, 0],  Nothing),
    ];
    for (name, flags, source, expected) in unconnected {
        let mut s = Script::new(quiet_plan());
        s.source = std::net::IpAddr::from(source).into();
        let before = arena(&s);
        s.say(flags, &[]);
        check(&mut s, name, expected, &before);
    }
}

fn check(s: &mut Script, name: &str, expected: Answer, before: &[u8]) {
    let heard = s.hear();
    match (expected, &heard[..]) {
        (Nothing, []) => {}
        (Reset, [h]) => assert!(h.flags & RST != 0, "{name}: {heard:?}"),
        _ => panic!("{expected:?} expected of {name}: {heard:?}"),
    }
    assert!(arena(s) == before, "something changed: {name}");
}

/// One segment with a clock from the future made PAWS drop the peer's data for days.
#[test]
fn a_stranger_s_clock_does_not_freeze_a_connection() {
    for (flags, seq) in [(ACK, FAR), (ACK, -FAR), (RST, 5), (SYN, 5)] {
        let mut s = in_state(State::Established);
        s.timestamp = Some(NEWER);
        let stray = s.seq.wrapping_add(seq as u32);
        s.say_at(stray, flags, &[]);
        s.timestamp = Some(CLOCK + 1);
        s.say(ACK, &stream_bytes(40_000, 10, 100));
        assert_eq!(s.world.sides[1].app.streams[0].received, 110);
        assert_eq!(s.counter("drop_paws"), 0);
    }
}

/// RFC 7323 §5.5: after 24 days without a segment TS.Recent is not valid any more, and is replaced.
#[test]
fn a_clock_that_went_round_meanwhile_is_taken_over() {
    let mut s = in_state(State::Established);
    s.wait(Duration::from_secs(25 * 24 * 3600));
    let later = CLOCK.wrapping_sub(5);
    s.timestamp = Some(later);
    s.say(ACK, &stream_bytes(40_000, 10, 10));
    let h = s.hear().pop().unwrap();
    assert_eq!(find_option(&h.options, 8).unwrap()[4..], later.to_be_bytes());
    s.timestamp = Some(later.wrapping_sub(100));
    s.say(ACK, &stream_bytes(40_000, 20, 10));
    assert_eq!((s.counter("drop_paws"), s.world.sides[1].app.streams[0].received), (1, 20));
}

/// Forged segments do not keep a connection alive whose peer is dead.
#[test]
fn strangers_do_not_keep_a_dead_connection_alive() {
    let mut s = in_state(State::Established);
    let socket = s.world.sides[1].app.streams[0].socket;
    let page = s.world.sides[1].page(socket);
    for (option, value) in
        [(Opt::KeepAlive, 1), (Opt::KeepIdle, 10), (Opt::KeepInterval, 5), (Opt::KeepCount, 3)]
    {
        page.set_option(option, value);
    }
    s.world.dirty(1, socket);
    for _ in 0..6 {
        s.wait(5_000 * MS);
        let stray = s.seq.wrapping_add(FAR as u32);
        s.say_at(stray, ACK, &[]);
    }
    assert_eq!(s.world.sides[1].app.streams[0].error, eft_base::errno::ETIMEDOUT);
}

/// RFC 9293 §3.10.7.4: only the peer's own FIN restarts the wait.
#[test]
fn time_wait_is_prolonged_by_the_right_fin_alone() {
    for (offset, prolonged) in [(0u32, true), (FAR as u32, false), (1, false)] {
        let mut s = in_state(State::TimeWait);
        s.wait(30_000 * MS);
        let fin = s.seq.wrapping_sub(1).wrapping_add(offset);
        s.say_at(fin, FIN | ACK, &[]);
        assert_eq!(s.hear().len(), 1, "it is acknowledged");
        s.wait(40_000 * MS);
        let left = states(&s.world, 1) == [State::TimeWait];
        assert_eq!(left, prolonged, "after a FIN at {offset}");
    }
}

/// A limit shared by all connections would reveal to strangers which connections exist.
#[test]
fn challenges_of_one_connection_are_not_missing_in_another() {
    let mut s = in_state(State::Established);
    let first = (s.source_port, s.seq, s.ack);
    s.source_port = 40_001;
    s.handshake(&timestamps(CLOCK, 0));
    let second = (s.source_port, s.seq, s.ack);
    s.hear();
    (s.source_port, s.seq, s.ack) = first;
    for i in 0..5000 {
        s.say_at(first.1.wrapping_add(1 + i), SYN, &[]);
    }
    assert_eq!(s.hear().len(), 1);
    (s.source_port, s.seq, s.ack) = second;
    s.say_at(second.1.wrapping_add(1), SYN, &[]);
    assert_eq!(s.hear().len(), 1);
    assert_eq!(s.counter("challenge_acks"), 2);
}

//! Accurate ECN (RFC 9768): who agrees on what, by the RFC's tables, and counts that arrive whatever happens.

use crate::app::App;
use crate::loss::{MS, sender};
use crate::marks::{configure, marks_losses_and_crashes};
use crate::script::*;
use crate::streams::{plan, run_to_end};
use crate::world::{Conditions, Packet, World};

const IP_HEADER: usize = 20;
const PSH: u8 = 8;
/// The ACE field: AE, CWR, ECE.
pub const NOT_ECT: u8 = 0b010;
const ECT_1: u8 = 0b011;
const ECT_0: u8 = 0b100;
const MARKED: u8 = 0b110;
const MSS: [u8; 4] = [2, 4, 3, 232];

fn field(packet: &Packet) -> u8 {
    (packet.bytes[IP_HEADER + 12] & 1) << 2 | packet.flags() >> 6
}

/// Sends a segment with this ACE field in a packet with these ECN bits, and moves on behind it.
pub fn say(s: &mut Script, flags: u8, ace: u8, ecn: u8, payload: &[u8], options: &[u8]) {
    let mut packet = s.packet(flags | ace << 6, payload, options);
    packet.bytes[1] |= ecn;
    if ace & 4 != 0 {
        packet.bytes[IP_HEADER + 12] |= 1;
        let at = IP_HEADER + 16;
        // RFC 1624 §3: one more in the upper byte of a word, one less in that of the sum.
        let sum = u32::from(!u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]])) + 0x100;
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    s.seq = s.seq.wrapping_add(payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0));
    s.world.deliver(1, &packet);
    s.world.turn(1);
}

/// The ACE fields of what side 1 sent since `from` packets were captured.
fn fields(s: &Script, from: usize) -> Vec<u8> {
    let sent = &s.world.capture.as_ref().unwrap()[from..];
    sent.iter().filter(|(_, side, _)| *side == 1).map(|(_, _, packet)| field(packet)).collect()
}

fn captured(s: &Script) -> usize {
    s.world.capture.as_ref().unwrap().len()
}

/// The field of the answer to a SYN with this field, in a packet with these ECN bits.
fn answer(setting: &str, ace: u8, ecn: u8) -> u8 {
    let mut s = Script::new(quiet_plan());
    configure(&mut s.world, 1, setting);
    say(&mut s, SYN, ace, ecn, &[], &MSS);
    let fields = fields(&s, 0);
    assert_eq!(fields.len(), 1);
    fields[0]
}

/// RFC 9768 §3.1.1, table 2, and §3.1.3: combinations that mean nothing yet ask for it, too.
#[test]
fn a_server_answers_with_what_became_of_the_syn() {
    for setting in ["accurate", "accurate-ask", "accurate-answer"] {
        for ace in [0b111, 0b001, 0b010, 0b100, 0b101, 0b110] {
            let answers = [0, 1, 2, 3].map(|ecn| answer(setting, ace, ecn));
            assert_eq!(answers, [NOT_ECT, ECT_1, ECT_0, MARKED], "{setting}, {ace:03b}");
        }
        assert_eq!((answer(setting, 0b011, 0), answer(setting, 0, 0)), (0b001, 0), "as RFC 3168 has it");
    }
}

#[test]
fn a_server_without_it_takes_the_question_for_that_of_rfc_3168() {
    for setting in ["ask", "answer"] {
        assert_eq!(answer(setting, 0b111, 0), 0b001, "{setting}");
    }
    assert_eq!(answer("off", 0b111, 0), 0);
}

/// A connection with it, whose application sends `bytes`; the last segment of the handshake has this field.
fn connected(bytes: u64, last: u8) -> Script {
    connected_with(bytes, last, &[])
}

/// The same with these options in it.
pub fn connected_with(bytes: u64, last: u8, options: &[u8]) -> Script {
    let mut s = Script::new(sender(bytes));
    configure(&mut s.world, 1, "accurate");
    say(&mut s, SYN, 0b111, 0, &[], &MSS);
    let heard = s.hear();
    s.ack = heard[0].seq.wrapping_add(1);
    s.world.run_for(40 * MS);
    say(&mut s, ACK, last, 0, &[], options);
    s
}

#[test]
fn the_count_begins_at_five_and_grows_with_each_mark_whatever_carries_it() {
    let mut s = connected(0, NOT_ECT);
    let mut told: Vec<u8> = Vec::new();
    // Data, a bare acknowledgment, data, two that a successor counts.
    for (turn, (ecn, len)) in
        [(2, 100), (3, 100), (3, 0), (3, 100), (3, 100), (3, 100)].into_iter().enumerate()
    {
        if turn == 4 {
            s.world.crash(1);
            s.hear();
        }
        let from = captured(&s);
        let payload = stream_bytes(s.source_port, s.counter("received_bytes"), len);
        say(&mut s, ACK | PSH, 5, ecn, &payload, &[]);
        if len == 0 {
            continue;
        }
        s.wait(300 * MS);
        told.extend(fields(&s, from).last().copied());
    }
    assert_eq!(told, [5, 6, 0, 1, 2], "5, 6, 7 unsaid, 8, 9, 10");
}

#[test]
fn the_second_mark_is_told_at_once() {
    let mut s = connected(0, NOT_ECT);
    for round in 0..4 {
        let from = captured(&s);
        for n in 0..2 {
            let payload = stream_bytes(s.source_port, (round * 2 + n) * 100, 100);
            say(&mut s, ACK, 5, 3, &payload, &[]);
        }
        let told = fields(&s, from);
        assert_eq!(told.last(), Some(&((5 + 2 * (round as u8 + 1)) & 7)), "round {round}: {told:?}");
    }
}

/// Acknowledges so many bytes with this field.
fn acknowledge(s: &mut Script, bytes: u32, ace: u8) {
    s.ack = s.ack.wrapping_add(bytes);
    say(s, ACK, ace, 0, &[], &[]);
    s.hear();
}

#[test]
fn each_new_mark_reduces_the_window_once_in_a_round_trip_and_none_is_counted_twice() {
    let mut s = connected(1_000_000, NOT_ECT);
    let sent = s.hear();
    assert!(sent.iter().all(|h| h.ecn == 2), "what is sent may be marked: {sent:?}");
    acknowledge(&mut s, 1000, 5);
    assert_eq!(s.counter("mark_reductions"), 0);
    acknowledge(&mut s, 2000, 7);
    acknowledge(&mut s, 1000, 7);
    acknowledge(&mut s, 1000, 0);
    assert_eq!(s.counter("mark_reductions"), 1, "in the same window");
    // An older acknowledgment comes late.
    let now = s.ack;
    s.ack = now.wrapping_sub(3000);
    say(&mut s, ACK, 5, 0, &[], &[]);
    s.ack = now;
    let end = s.world.capture.as_ref().unwrap().iter().filter(|(_, side, _)| *side == 1);
    let end = end.map(|(_, _, p)| p.seq().wrapping_add(p.payload().len() as u32)).next_back().unwrap();
    let rest = end.wrapping_sub(s.ack);
    acknowledge(&mut s, rest, 0);
    assert_eq!(s.counter("mark_reductions"), 1);
    s.wait(10 * MS);
    acknowledge(&mut s, 1000, 1);
    assert_eq!(s.counter("mark_reductions"), 2, "in the next");
}

/// RFC 9768 §3.2.2.3, §3.2.2.4: something on the way clears the field, or changes that of IP in a packet that cannot be marked.
#[test]
fn a_path_that_changes_the_field_gets_nothing_that_can_be_marked() {
    for (last, markable) in
        [(0, false), (ECT_1, false), (ECT_0, false), (MARKED, false), (1, true), (5, true), (7, true)]
    {
        let sent = connected(50_000, last).hear();
        assert!(!sent.is_empty() && sent.iter().all(|h| (h.ecn == 2) == markable), "{last}: {sent:?}");
    }
    let mut s = connected(50_000, 0);
    s.hear();
    acknowledge(&mut s, 1000, 3);
    assert_eq!(s.counter("mark_reductions"), 0);
    // Our own count goes on.
    let from = captured(&s);
    let payload = stream_bytes(s.source_port, 0, 100);
    say(&mut s, ACK | PSH, 0, 3, &payload, &[]);
    s.wait(300 * MS);
    assert_eq!(fields(&s, from).last(), Some(&6));
}

pub fn transfer(seed: u64, settings: [&str; 2], conditions: Conditions) -> World {
    let mut world = World::new(seed, conditions);
    world.capture = Some(Vec::new());
    for (side, setting) in settings.into_iter().enumerate() {
        configure(&mut world, side, setting);
    }
    App::listen(&mut world, 1, PORT, 16, plan(1 << 20, 1 << 20));
    App::connect(&mut world, 0, PORT, plan(1 << 20, 1 << 20));
    run_to_end(&mut world);
    world
}

#[test]
fn two_ends_agree_on_what_both_have() {
    let handshake = |settings| {
        let world = transfer(1, settings, Conditions::default());
        let sent = world.capture.as_ref().unwrap();
        sent[..3].iter().map(|(_, _, packet)| field(packet)).collect::<Vec<_>>()
    };
    assert_eq!(handshake(["accurate", "accurate"]), [0b111, NOT_ECT, NOT_ECT]);
    assert_eq!(handshake(["accurate", "accurate-answer"]), [0b111, NOT_ECT, NOT_ECT]);
    assert_eq!(handshake(["accurate", "answer"]), [0b111, 0b001, 0]);
    assert_eq!(handshake(["accurate", "off"]), [0b111, 0, 0]);
    assert_eq!(handshake(["accurate-ask", "accurate"]), [0b011, 0b001, 0]);
    assert_eq!(handshake(["accurate-answer", "accurate"]), [0, 0, 0]);
}

/// Each end hears of every mark that the other saw: of what was marked, nothing else counts.
#[test]
fn marks_are_all_heard_of() {
    for seed in 0..4 {
        let conditions = Conditions { mark: 0.02, delay_us: 5000, split: true, ..Conditions::default() };
        let mut w = transfer(seed, ["accurate", "accurate"], conditions);
        for side in 0..2 {
            // The numbers of now, not of some time ago.
            let socket = w.sides[side].app.streams[0].socket;
            w.sides[side].page(socket).ask_info();
            w.dirty(side, socket);
            w.run_for(20 * MS);
            let (near, far) = (&w.sides[side], &w.sides[1 - side]);
            assert!(near.counter("mark_reductions") > 0, "seed {seed}");
            assert_eq!(near.counter("retransmitted_segments"), 0, "seed {seed}");
            let page = near.page(near.app.streams[0].socket);
            let told = page.statistics().expect("numbers").delivered_marked;
            let seen = far.counter("marks_received") as u32;
            // Who counts by whole segments counts a short one, too.
            assert!(told >= seen * 9 / 10 && told <= seen + seen / 10 + 1, "seed {seed}: {told} of {seen}");
        }
    }
}

#[test]
fn marks_losses_and_crashes_together_lose_nothing() {
    for seed in 0..8 {
        transfer(seed, ["accurate", "accurate"], marks_losses_and_crashes());
    }
}

/// RFC 9768 §3.1.4.1.
#[test]
fn a_syn_asks_twice_before_it_asks_no_more() {
    let mut world = World::new(1, Conditions::default());
    world.capture = Some(Vec::new());
    world.blackhole[1] = true;
    configure(&mut world, 0, "accurate");
    App::connect(&mut world, 0, PORT, plan(100, 0));
    world.run_for(4000 * MS);
    let sent: Vec<u8> = world.capture.as_ref().unwrap().iter().map(|(_, _, p)| field(p)).collect();
    assert_eq!(sent, [0b111, 0b111, 0]);
}

//! Urgent data (RFC 9293 §3.8.5, RFC 6093).

use crate::loss::{MS, sender};
use crate::script::*;
use eft_base::SocketId;
use eft_channel::socket::{SocketPage, Urgent, wish};
use eft_component::transport::Effect;

const URG: u8 = 32;

fn page(s: &Script, socket: SocketId) -> SocketPage {
    s.world.sides[1].page(socket)
}

/// A segment of `payload` at `seq` whose urgent pointer is `pointer`; our place in the stream stays.
fn say_urgent(s: &mut Script, seq: u32, payload: &[u8], pointer: u16) {
    let mine = std::mem::replace(&mut s.seq, seq);
    let mut packet = s.packet(ACK | URG, payload, &[]);
    s.seq = mine;
    // RFC 1624: one more field in the sum.
    let sum = !u16::from_be_bytes([packet.bytes[36], packet.bytes[37]]);
    let (sum, carry) = sum.overflowing_add(pointer);
    packet.bytes[36..38].copy_from_slice(&(!(sum + carry as u16)).to_be_bytes());
    packet.bytes[38..40].copy_from_slice(&pointer.to_be_bytes());
    s.world.deliver(1, &packet);
    s.world.turn(1);
}

/// A connection whose application reads nothing.
fn untouched() -> (Script, SocketId) {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.world.sides[1].app.streams.clear();
    (s, socket)
}

fn urgent(at: u64, arrived: bool) -> Option<Urgent> {
    Some(Urgent { at, arrived })
}

fn pointers(s: &Script) -> Vec<(u32, u16)> {
    let sent = s.world.capture.as_ref().expect("captures").iter().filter(|(_, side, _)| *side == 1);
    let of = |p: &crate::world::Packet| u16::from_be_bytes([p.bytes[38], p.bytes[39]]);
    sent.filter(|(_, _, p)| p.flags() & URG != 0).map(|(_, _, p)| (p.seq(), of(p))).collect()
}

#[test]
fn the_application_is_told_where_the_urgent_byte_lies() {
    let (mut s, socket) = untouched();
    let (port, seq) = (s.source_port, s.seq);
    say_urgent(&mut s, seq, &stream_bytes(port, 0, 100), 100);
    assert_eq!(page(&s, socket).urgent(), urgent(99, true));
    // An older one, and one that has come, mean nothing; a pointer of 0 means the first byte, as on Linux.
    say_urgent(&mut s, seq, &stream_bytes(port, 0, 100), 50);
    assert_eq!(page(&s, socket).urgent(), urgent(99, true));
    say_urgent(&mut s, seq + 100, &stream_bytes(port, 100, 10), 0);
    assert_eq!(page(&s, socket).urgent(), urgent(100, true));
}

#[test]
fn an_announcement_comes_before_the_byte_and_the_byte_perhaps_before_others() {
    let (mut s, socket) = untouched();
    let (port, seq) = (s.source_port, s.seq);
    say_urgent(&mut s, seq, &stream_bytes(port, 0, 10), 2000);
    assert_eq!(page(&s, socket).urgent(), urgent(1999, false));
    s.say_at(seq + 1990, ACK, &stream_bytes(port, 1990, 10));
    assert_eq!((page(&s, socket).urgent(), page(&s, socket).receive_end()), (urgent(1999, true), 10));
    let mut byte = [0];
    page(&s, socket).read_receive(1999, &mut byte);
    assert_eq!(byte.to_vec(), stream_bytes(port, 1999, 1));
}

#[test]
fn an_announcement_survives_a_crash_and_is_forgotten_when_it_was_passed() {
    let (mut s, socket) = untouched();
    let (port, seq) = (s.source_port, s.seq);
    say_urgent(&mut s, seq, &stream_bytes(port, 0, 100), 60);
    // What the dying engine had committed and not written yet.
    page(&s, socket).set_urgent(0);
    s.world.crash(1);
    s.world.run_for(MS);
    assert_eq!(page(&s, socket).urgent(), urgent(59, true));
    let read = page(&s, socket);
    read.set_receive_taken(100);
    s.world.dirty(1, socket);
    s.world.run_for(MS);
    page(&s, socket).set_urgent(0);
    s.world.crash(1);
    s.world.run_for(MS);
    assert_eq!(page(&s, socket).urgent(), None);
}

#[test]
fn an_urgent_byte_alone_makes_the_descriptor_readable_only_for_those_who_want_it() {
    for wanted in [false, true] {
        let (mut s, socket) = untouched();
        let (port, seq) = (s.source_port, s.seq);
        if wanted {
            page(&s, socket).add_wish(wish::WANTS_URGENT);
        }
        s.world.sides[1].app.effects.clear();
        say_urgent(&mut s, seq, &stream_bytes(port, 0, 1), 1);
        s.world.run_for(MS);
        let told = s.world.sides[1].app.effects.contains(&Effect::Readable(socket));
        assert_eq!(told, wanted);
        say_urgent(&mut s, seq + 1, &stream_bytes(port, 1, 1), 0);
        s.world.run_for(MS);
        assert!(s.world.sides[1].app.effects.contains(&Effect::Readable(socket)));
    }
}

#[test]
fn the_owner_is_signalled_once_for_each_announcement() {
    let (mut s, socket) = untouched();
    let (port, seq) = (s.source_port, s.seq);
    let signals = |s: &mut Script| {
        s.world.run_for(MS);
        let effects = std::mem::take(&mut s.world.sides[1].app.effects);
        effects.into_iter().filter(|effect| *effect == Effect::Urgent(socket)).count()
    };
    signals(&mut s);
    say_urgent(&mut s, seq, &stream_bytes(port, 0, 10), 2000);
    assert_eq!(signals(&mut s), 1, "before the byte has come");
    say_urgent(&mut s, seq + 10, &stream_bytes(port, 10, 10), 1990);
    s.say_at(seq + 20, ACK, &stream_bytes(port, 20, 1980));
    assert_eq!(signals(&mut s), 0, "the same one");
    s.world.crash(1);
    assert_eq!(signals(&mut s), 0, "it was announced to a former life");
    say_urgent(&mut s, seq + 2000, &stream_bytes(port, 2000, 10), 10);
    assert_eq!(signals(&mut s), 1);
}

#[test]
fn what_the_application_sends_urgently_is_announced_until_it_is_acknowledged() {
    let (mut s, socket) = Script::connected(sender(3000));
    s.hear();
    let base = s.ack;
    let end = page(&s, socket).send_end();
    page(&s, socket).write_send(end, &[7]);
    page(&s, socket).set_send_urgent(end + 1);
    page(&s, socket).add_wish(wish::SENDS_URGENT);
    page(&s, socket).set_send_end(end + 1);
    s.world.dirty(1, socket);
    s.world.run_for(MS);
    // Though other small data are under way (Linux's Nagle).
    assert_eq!(pointers(&s), [(base.wrapping_add(3000), 1)]);
    // It goes again, a segment at a time, each with its own pointer; also from the next life.
    s.world.crash(1);
    s.world.run_for(3000 * MS);
    let all = pointers(&s);
    assert!(all.len() > 2, "{all:?}");
    assert!(all.iter().all(|(seq, p)| seq.wrapping_add(*p as u32) == base.wrapping_add(3001)), "{all:?}");
    s.ack = base.wrapping_add(3001);
    s.say(ACK, &[]);
    let count = pointers(&s).len();
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, 0, 10));
    s.world.run_for(100 * MS);
    assert_eq!(pointers(&s).len(), count);
}

#[test]
fn a_mark_outside_of_the_stream_means_nothing() {
    for end in [0, 3001, u64::MAX] {
        let (mut s, socket) = Script::connected(sender(3000));
        page(&s, socket).set_send_urgent(end);
        page(&s, socket).add_wish(wish::SENDS_URGENT);
        s.world.dirty(1, socket);
        s.world.run_for(1000 * MS);
        assert_eq!(pointers(&s), []);
    }
}

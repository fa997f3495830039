//! Signed segments (RFC 2385): who has no key gets nothing done, and streams go on as ever, through crashes, too.

use crate::app::App;
use crate::script::*;
use crate::streams::{bad, plan, run_to_end, seeds};
use crate::world::{Conditions, Packet, World};
use eft_base::Random;
use eft_channel::socket::{KEY_BYTES_MAX, SignatureKey};
use md5::{Digest, Md5};
use std::time::Duration;
use zerocopy::FromZeros;

const SIGNATURE: u8 = 19;
const IP_HEADER: usize = 20;
const SECRET: &[u8] = b"between us";

/// A key for everybody.
fn key(text: &[u8]) -> SignatureKey {
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..text.len()].copy_from_slice(text);
    let address = std::net::IpAddr::from([0u8; 4]).into();
    SignatureKey { address, prefix_len: 96, len: text.len() as u8, bytes, ..SignatureKey::new_zeroed() }
}

/// The digest of a packet as it is on the wire, from its bytes alone.
fn digest(packet: &Packet, key: &[u8]) -> [u8; 16] {
    let (ip, tcp) = packet.bytes.split_at(IP_HEADER);
    let header_len = packet.header_len();
    let mut bytes = ip[12..20].to_vec();
    bytes.extend([0, 6]);
    bytes.extend((tcp.len() as u16).to_be_bytes());
    bytes.extend(&tcp[..16]);
    bytes.extend([0, 0]);
    bytes.extend(&tcp[18..20]);
    bytes.extend(&tcp[header_len..]);
    bytes.extend(key);
    Md5::digest(&bytes).into()
}

/// Sends a segment that is signed with `key`, and moves on behind it.
fn say(s: &mut Script, flags: u8, payload: &[u8], options: &[u8], key: &[u8]) {
    let mut all = options.to_vec();
    all.extend([1, 1, SIGNATURE, 18]);
    all.extend([0; 16]);
    let digest = digest(&s.packet(flags, payload, &all), key);
    let at = all.len() - 16;
    all[at..].copy_from_slice(&digest);
    s.say_with(flags, payload, &all);
}

/// A world whose listener has a key.
fn guarded() -> Script {
    let mut world = World::new(1, Conditions::default());
    world.capture = Some(Vec::new());
    world.blackhole[0] = true;
    world.sides[1].app.keys = vec![key(SECRET)];
    App::listen(&mut world, 1, PORT, 16, quiet_plan());
    let mut s = Script::new(quiet_plan());
    s.source = world.sides[0].address;
    s.world = world;
    s
}

/// What side 1 sent, each checked to be signed.
fn hear(s: &mut Script) -> Vec<Heard> {
    let packets: Vec<Packet> = s
        .world
        .capture
        .as_ref()
        .unwrap()
        .iter()
        .filter(|(_, side, _)| *side == 1)
        .map(|(_, _, packet)| packet.clone())
        .collect();
    for packet in &packets {
        let options = &packet.bytes[2 * IP_HEADER..IP_HEADER + packet.header_len()];
        assert_eq!(find_option(options, SIGNATURE), Some(&digest(packet, SECRET)[..]), "{packet:?}");
    }
    s.hear()
}

fn connect(s: &mut Script) {
    say(s, SYN, &[], &[2, 4, 3, 232], SECRET);
    let heard = hear(s);
    assert_eq!((heard.len(), heard[0].flags), (1, SYN | ACK));
    s.ack = heard[0].seq.wrapping_add(1);
    say(s, ACK, &[], &[], SECRET);
    assert_eq!(s.world.sides[1].app.streams.len(), 1);
}

#[test]
fn a_listener_with_a_key_answers_only_who_has_it() {
    let mut s = guarded();
    let seq = s.seq;
    s.say_with(SYN, &[], &[2, 4, 3, 232]);
    s.seq = seq;
    say(&mut s, SYN, &[], &[2, 4, 3, 232], b"a guess");
    s.seq = seq;
    assert!(s.hear().is_empty());
    let counts = ["drop_unsigned", "drop_bad_signature", "drop_unexpected_signature"].map(|n| s.counter(n));
    assert_eq!(counts, [1, 1, 0]);
    connect(&mut s);
}

#[test]
fn a_listener_without_a_key_answers_nobody_who_signs() {
    let mut s = Script::new(quiet_plan());
    say(&mut s, SYN, &[], &[2, 4, 3, 232], SECRET);
    assert!(s.hear().is_empty());
    assert_eq!(s.counter("drop_unexpected_signature"), 1);
}

#[test]
fn only_a_signed_reset_ends_a_connection() {
    let mut s = guarded();
    connect(&mut s);
    s.say(RST, &[]);
    say(&mut s, RST, &[], &[], b"a guess");
    assert_eq!(s.counter("connections_open"), 1);
    say(&mut s, RST, &[], &[], SECRET);
    assert_eq!((s.counter("connections_open"), s.counter("resets_received")), (0, 1));
}

#[test]
fn data_are_taken_and_acknowledged_if_they_are_signed_after_a_crash_too() {
    let mut s = guarded();
    connect(&mut s);
    for (round, crash) in [(0, false), (1, true), (2, true)] {
        if crash {
            s.world.crash(1);
        }
        let (seq, data) = (s.seq, stream_bytes(s.source_port, round * 100, 100));
        s.say(ACK, &data);
        s.seq = seq;
        say(&mut s, ACK, &data, &[], b"a guess");
        s.seq = seq;
        assert_eq!(s.world.sides[1].app.streams[0].received, round * 100);
        hear(&mut s);
        say(&mut s, ACK, &data, &[], SECRET);
        assert_eq!(s.world.sides[1].app.streams[0].received, round * 100 + 100);
        s.world.run_for(Duration::from_millis(300));
        let heard = hear(&mut s);
        assert_eq!(heard.last().expect("an acknowledgment").ack, s.seq);
    }
}

/// A crash before the application has its connection: what the predecessor had not written yet is written again.
#[test]
fn a_crash_in_the_handshake_keeps_it_signed() {
    let mut s = guarded();
    say(&mut s, SYN, &[], &[2, 4, 3, 232], SECRET);
    let heard = hear(&mut s);
    s.ack = heard[0].seq.wrapping_add(1);
    s.world.crash(1);
    s.say(ACK, &[]);
    assert!(s.world.sides[1].app.streams.is_empty());
    say(&mut s, ACK, &[], &[], SECRET);
    assert_eq!(s.world.sides[1].app.streams.len(), 1);
}

/// Beside a signature there is no room for SACK blocks and timestamps: SACK is worth more.
#[test]
fn of_sack_and_timestamps_sack_is_agreed_on() {
    let mut s = guarded();
    let mut options = vec![2, 4, 3, 232, 4, 2, 1, 1];
    // A SYN that has all leaves no room for a signature of 20 bytes and a scale.
    options.extend(&timestamps(5000, 0)[2..]);
    options.truncate(20);
    options.resize(20, 1);
    say(&mut s, SYN, &[], &options, SECRET);
    let heard = hear(&mut s);
    let has = |kind| find_option(&heard[0].options, kind).is_some();
    assert_eq!((has(4), has(8)), (true, false));
}

/// Whole streams between two of us, over bad networks, through crashes.
#[test]
fn signed_streams_arrive_whatever_happens() {
    for seed in seeds(40) {
        let mut random = Random::new(seed ^ 0x5196);
        let mut conditions = bad(&mut random);
        conditions.crash = if random.below(2) == 0 { 0.0 } else { 0.002 };
        conditions.ip_crash = if random.below(2) == 0 { 0.0 } else { 0.002 };
        let (up, down) = (random.below(60_000), random.below(60_000));
        let mut world = World::new(seed, conditions);
        for side in 0..2 {
            world.sides[side].app.keys = vec![key(SECRET)];
        }
        App::listen(&mut world, 1, PORT, 16, plan(down, up));
        App::connect(&mut world, 0, PORT, plan(up, down));
        run_to_end(&mut world);
        for side in 0..2 {
            let dropped = ["drop_unsigned", "drop_bad_signature"].map(|name| world.sides[side].counter(name));
            assert_eq!(dropped, [0, 0], "seed {seed}");
        }
    }
}

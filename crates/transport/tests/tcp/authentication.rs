//! TCP-AO (RFC 5925): who has no key gets nothing done; keys change while a connection lives, and crashes change nothing.

use crate::app::App;
use crate::script::*;
use crate::world::{Conditions, Packet, World};
use eft_channel::socket::signature_keys::algorithm;
use eft_channel::socket::{AuthenticationWishes, KEY_BYTES_MAX, SignatureKey};
use eft_harness::Quote;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use std::time::Duration;

const AUTHENTICATION: u8 = 29;
const IP_HEADER: usize = 20;
const MAC_LEN: usize = 12;

/// A key for everybody, by the script's name of it: side 1 signs with `id`, and knows it again by `id + 100`.
pub fn key(id: u8) -> SignatureKey {
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..4].copy_from_slice(&[b'k', b'e', b'y', id]);
    SignatureKey {
        address: std::net::IpAddr::from([0u8; 4]).into(),
        prefix_len: 96,
        len: 4,
        algorithm: algorithm::HMAC_SHA1,
        send_id: id,
        receive_id: id + 100,
        mac_len: MAC_LEN as u8,
        excludes_options: 0,
        reserved: [0; 9],
        bytes,
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// The code of a packet as it is on the wire, from its bytes alone (RFC 5925 §5.1, RFC 5926 §3.1.1.1).
fn code(packet: &Packet, master: &SignatureKey, isns: (u32, u32), extension: u32) -> Vec<u8> {
    let (ip, tcp) = packet.bytes.split_at(IP_HEADER);
    let isns = [isns.0.to_be_bytes(), isns.1.to_be_bytes()].concat();
    let traffic =
        hmac(master.bytes(), &[b"\x01TCP-AO", &ip[12..20], &tcp[..4], &isns, &160u16.to_be_bytes()]);
    let mut tcp = tcp.to_vec();
    tcp[16..18].fill(0);
    let mut at = 20;
    while tcp[at] != AUTHENTICATION {
        at += if tcp[at] == 1 { 1 } else { tcp[at + 1] as usize };
    }
    tcp[at + 4..at + 4 + MAC_LEN].fill(0);
    let len = (tcp.len() as u16).to_be_bytes();
    hmac(&traffic, &[&extension.to_be_bytes(), &ip[12..20], &[0, 6], &len, &tcp])[..MAC_LEN].to_vec()
}

/// A script's connection: its own initial sequence number, that of side 1, the key that it uses and the one that it asks for.
struct Peer {
    s: Script,
    isns: (u32, u32),
    uses: u8,
    asks: u8,
    /// It knows of sequence numbers that wrap.
    extends: bool,
}

impl Peer {
    /// A world whose listener has these keys.
    fn new(keys: &[SignatureKey]) -> Peer {
        let mut world = World::new(1, Conditions::default());
        world.capture = Some(Vec::new());
        world.blackhole[0] = true;
        world.sides[1].app.keys = keys.to_vec();
        App::listen(&mut world, 1, PORT, 16, quiet_plan());
        let mut s = Script::new(quiet_plan());
        s.source = world.sides[0].address;
        s.world = world;
        Peer { s, isns: (0, 0), uses: 1, asks: 1, extends: true }
    }

    /// The options of the next segment, signed by `master`.
    fn options(&self, flags: u8, payload: &[u8], options: &[u8], master: &SignatureKey) -> Vec<u8> {
        let mut all = vec![AUTHENTICATION, 4 + MAC_LEN as u8, self.uses + 100, self.asks];
        all.extend([0; MAC_LEN]);
        all.extend(options);
        let isns = if flags == SYN { (self.s.seq, 0) } else { self.isns };
        let extension = (self.extends && flags != SYN && self.s.seq < isns.0) as u32;
        let code = code(&self.s.packet(flags, payload, &all), master, isns, extension);
        all[4..4 + MAC_LEN].copy_from_slice(&code);
        all
    }

    /// Sends a segment that is signed with `master`, and moves on behind it.
    fn say_as(&mut self, flags: u8, payload: &[u8], options: &[u8], master: &SignatureKey) {
        let options = self.options(flags, payload, options, master);
        self.s.say_with(flags, payload, &options);
    }

    fn say(&mut self, flags: u8, payload: &[u8]) {
        let options: &[u8] = if flags & SYN != 0 { &[2, 4, 3, 232] } else { &[] };
        self.say_as(flags, payload, options, &key(self.uses));
    }

    /// What side 1 sent, each checked to be signed with the key `id`, and to ask for the one that we use.
    fn hear(&mut self, id: u8) -> Vec<Heard> {
        let heard = self.s.hear();
        let capture = self.s.world.capture.as_ref().unwrap();
        let packets = capture.iter().filter(|(_, side, _)| *side == 1).map(|(_, _, packet)| packet);
        let packets: Vec<&Packet> = packets.collect();
        for packet in &packets[packets.len() - heard.len()..] {
            let options = &packet.bytes[2 * IP_HEADER..IP_HEADER + packet.header_len()];
            let told = find_option(options, AUTHENTICATION).expect("a signed segment");
            assert_eq!(told[..2], [id, self.uses + 100], "{packet:?}");
            let server = if packet.flags() & SYN != 0 { packet.seq() } else { self.isns.1 };
            let extension = (packet.seq() < server) as u32;
            assert_eq!(told[2..], code(packet, &key(id), (server, self.isns.0), extension), "{packet:?}");
        }
        heard
    }

    fn connect(&mut self) {
        self.isns.0 = self.s.seq;
        self.say(SYN, &[]);
        let heard = self.hear(self.asks);
        assert_eq!((heard.len(), heard[0].flags), (1, SYN | ACK));
        self.isns.1 = heard[0].seq;
        self.s.ack = heard[0].seq.wrapping_add(1);
        self.say(ACK, &[]);
        assert_eq!(self.s.world.sides[1].app.streams.len(), 1);
    }

    /// The next bytes of the stream, which arrive, and are acknowledged with the key `id`.
    fn send(&mut self, id: u8) {
        let before = self.received();
        let data = stream_bytes(self.s.source_port, before, 100);
        self.say(ACK, &data);
        assert_eq!(self.received(), before + 100);
        self.s.world.run_for(Duration::from_millis(300));
        let heard = self.hear(id);
        assert_eq!(heard.last().expect("an acknowledgment").ack, self.s.seq);
    }

    fn received(&self) -> u64 {
        self.s.world.sides[1].app.streams[0].received
    }

    fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.s.counter(name))
    }
}

#[test]
fn a_listener_answers_only_who_has_a_key() {
    let mut p = Peer::new(&[key(1), key(2)]);
    let seq = p.s.seq;
    p.s.say_with(SYN, &[], &[2, 4, 3, 232]);
    p.s.seq = seq;
    p.say_as(SYN, &[], &[2, 4, 3, 232], &key(2));
    p.s.seq = seq;
    p.uses = 7;
    p.say(SYN, &[]);
    p.uses = 1;
    assert!(p.s.hear().is_empty());
    let names = ["drop_unsigned", "drop_bad_signature", "drop_unknown_key", "drop_unexpected_signature"];
    assert_eq!(p.counters(names), [1, 1, 1, 0]);
    p.s.seq = seq;
    p.connect();
    p.send(1);
}

#[test]
fn a_listener_without_keys_answers_nobody_who_signs() {
    let mut p = Peer::new(&[]);
    p.say(SYN, &[]);
    assert!(p.s.hear().is_empty());
    assert_eq!(p.counters(["drop_unexpected_signature"]), [1]);
}

#[test]
fn if_authentication_is_required_no_key_is_no_way_in() {
    let mut p = Peer::new(&[]);
    let listener = p.s.world.sides[1].app.listener.expect("it listens");
    let wishes = AuthenticationWishes { required: true, ..AuthenticationWishes::default() };
    p.s.world.sides[1].page(listener).set_authentication_wishes(&wishes);
    p.s.say_with(SYN, &[], &[2, 4, 3, 232]);
    assert!(p.s.hear().is_empty());
    assert_eq!(p.counters(["drop_unsigned"]), [1]);
}

#[test]
fn only_a_signed_reset_ends_a_connection() {
    let mut p = Peer::new(&[key(1)]);
    p.connect();
    p.s.say(RST, &[]);
    p.say_as(RST, &[], &[], &key(2));
    assert_eq!(p.counters(["connections_open", "drop_unsigned", "drop_bad_signature"]), [1, 1, 1]);
    p.say(RST, &[]);
    assert_eq!(p.counters(["connections_open", "resets_received"]), [0, 1]);
}

#[test]
fn a_connection_goes_on_through_crashes() {
    let mut p = Peer::new(&[key(1), key(2)]);
    p.connect();
    for round in 0..3 {
        p.send(1);
        p.s.world.crash(1);
        let (seq, data) = (p.s.seq, stream_bytes(p.s.source_port, p.received(), 100));
        p.s.say(ACK, &data);
        p.s.seq = seq;
        p.say_as(ACK, &data, &[], &key(2));
        p.s.seq = seq;
        assert_eq!(p.received(), round * 100 + 100);
        p.hear(1);
    }
    p.send(1);
}

#[test]
fn a_crash_in_the_handshake_keeps_it_signed() {
    let mut p = Peer::new(&[key(1)]);
    p.isns.0 = p.s.seq;
    p.say(SYN, &[]);
    let heard = p.hear(1);
    p.isns.1 = heard[0].seq;
    p.s.ack = heard[0].seq.wrapping_add(1);
    p.s.world.crash(1);
    p.s.say(ACK, &[]);
    assert!(p.s.world.sides[1].app.streams.is_empty());
    p.say(ACK, &[]);
    assert_eq!(p.s.world.sides[1].app.streams.len(), 1);
    p.send(1);
}

/// The peer asks for another key: it is used from then on, after a crash, too. One that does not exist is not.
#[test]
fn the_peer_chooses_the_key_that_it_gets() {
    let mut p = Peer::new(&[key(1), key(2)]);
    p.connect();
    p.send(1);
    p.asks = 2;
    p.send(2);
    assert_eq!(p.counters(["keys_changed"]), [1]);
    p.s.world.crash(1);
    p.send(2);
    p.asks = 9;
    p.send(2);
    // Our own is another matter: each segment says which it is.
    p.say_as(ACK, &[], &[], &key(1));
    assert_eq!(p.counters(["drop_bad_signature"]), [0]);
}

/// The application chooses, too: what to sign with, and what to ask for.
#[test]
fn the_application_chooses_keys_once() {
    let mut p = Peer::new(&[key(1), key(2)]);
    p.connect();
    p.send(1);
    let socket = p.s.world.sides[1].app.streams[0].socket;
    let page = p.s.world.sides[1].page(socket);
    let mut wishes = page.authentication_wishes();
    wishes.choose(Some(2), Some(102));
    page.set_authentication_wishes(&wishes);
    p.s.world.dirty(1, socket);
    p.uses = 2;
    p.asks = 2;
    p.send(2);
    // The peer's wish is later than the application's, which a successor finds in the page.
    p.asks = 1;
    p.send(1);
    p.s.world.crash(1);
    p.send(1);
    let status = p.s.world.sides[1].page(socket).authentication_status().expect("a connection with keys");
    assert_eq!((status.current, status.next, status.count), (1, 102, 2));
    assert!(status.good >= 4 && status.bad == 0, "{status:?}");
}

#[test]
fn sequence_numbers_that_wrap_are_extended() {
    let mut p = Peer::new(&[key(1)]);
    p.s.seq = u32::MAX - 250;
    p.connect();
    for _ in 0..5 {
        p.send(1);
    }
    assert!(p.s.seq < 1000);
    // As if it had not wrapped.
    let data = stream_bytes(p.s.source_port, p.received(), 100);
    p.extends = false;
    p.say(ACK, &data);
    assert_eq!(p.counters(["drop_bad_signature"]), [1]);
}

/// With TCP-AO there is room for SACK and timestamps.
#[test]
fn sack_and_timestamps_are_agreed_on() {
    let mut p = Peer::new(&[key(1)]);
    p.isns.0 = p.s.seq;
    let mut options = vec![2, 4, 3, 232, 4, 2, 8, 10];
    options.extend(&timestamps(5000, 0)[4..]);
    p.say_as(SYN, &[], &options, &key(1));
    let heard = p.hear(1);
    let has = |kind| find_option(&heard[0].options, kind).is_some();
    assert_eq!((has(4), has(8)), (true, true));
}

/// Nobody signs ICMP errors: unless the application says otherwise, those that could end a connection are ignored.
#[test]
fn icmp_errors_are_ignored_unless_they_are_accepted() {
    for accepts_icmp in [false, true] {
        let mut p = Peer::new(&[key(1)]);
        let listener = p.s.world.sides[1].app.listener.expect("it listens");
        let wishes = AuthenticationWishes { accepts_icmp, ..AuthenticationWishes::default() };
        p.s.world.sides[1].page(listener).set_authentication_wishes(&wishes);
        p.connect();
        p.send(1);
        let capture = p.s.world.capture.as_ref().unwrap();
        let (_, _, quote) = capture.iter().rev().find(|(_, side, _)| *side == 1).unwrap().clone();
        p.s.world.at(1).deliver_error(&quote.bytes[..28], Quote::new(3, 3, 0));
        let applied = accepts_icmp as u64;
        assert_eq!(p.counters(["icmp_applied", "icmp_ignored"]), [applied, 1 - applied]);
        // Unreachable hosts may be reached again.
        p.s.world.at(1).deliver_error(&quote.bytes[..28], Quote::new(3, 1, 0));
        assert_eq!(p.counters(["icmp_applied"]), [applied + 1]);
    }
}

/// A SYN-ACK of which nothing is kept is signed, too, and so must be its acknowledgment.
#[test]
fn cookies_are_signed() {
    let mut p = Peer::new(&[key(1), key(2)]);
    let port = p.s.source_port;
    for other in 0..128 {
        p.s.source_port = 20_000 + other;
        let seq = p.s.seq;
        p.say(SYN, &[]);
        p.s.seq = seq;
    }
    p.s.hear();
    p.s.source_port = port;
    p.isns.0 = p.s.seq;
    p.asks = 2;
    let [before] = p.counters(["syn_cookies_sent"]);
    p.say(SYN, &[]);
    let heard = p.hear(2);
    assert_eq!(p.counters(["syn_cookies_sent"]), [before + 1]);
    p.isns.1 = heard[0].seq;
    p.s.ack = heard[0].seq.wrapping_add(1);
    p.s.say(ACK, &[]);
    p.say_as(ACK, &[], &[], &key(2));
    assert_eq!(p.counters(["syn_cookies_received", "drop_unsigned", "drop_no_socket"]), [0, 1, 1]);
    p.say(ACK, &[]);
    assert_eq!(p.counters(["syn_cookies_received"]), [1]);
    p.send(2);
}

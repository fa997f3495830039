//! TCP Fast Open as a client against a script: what its SYNs carry, and what comes with the answers.

use crate::app::{App, Plan};
use crate::script::*;
use eft_base::SocketId;
use eft_channel::socket::{SocketInfo, SocketPage};
use eft_harness::Quote;
use std::time::Duration;

const SERVER: u16 = 5555;
const FAST_OPEN: u8 = 34;
const EXPERIMENTAL: u8 = 254;
const MAGIC: [u8; 2] = [0xf9, 0x89];
const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Bytes that each connection has to send.
const DATA: u64 = 3000;
/// The script's initial sequence number.
const ISS: u32 = 900;

struct Client {
    s: Script,
    /// The SYN that was heard last, and the port that it came from.
    syn: Heard,
    port: u16,
}

impl Client {
    fn new() -> Client {
        let mut s = Script::new(quiet_plan());
        s.world.at(1).configure("fastopen", "client");
        s.world.sides[1].app.early_from = Some(6001);
        Client { syn: begin(&mut s), s, port: 6001 }
    }

    fn connect(&mut self) {
        self.syn = begin(&mut self.s);
        self.port += 1;
    }

    /// The next connection has a cookie.
    fn prepared() -> Client {
        let mut c = Client::new();
        c.answer(0, &option(&COOKIE), &[]);
        c.connect();
        assert_eq!((cookie_of(&c.syn), c.syn.len), (Some(COOKIE.to_vec()), 1420));
        c
    }

    fn say(&mut self, (seq, ack): (u32, u32), flags: u8, options: &[u8], payload: &[u8]) -> Vec<Heard> {
        let (from, to) = ((self.s.source, SERVER), (self.s.world.sides[1].address, self.port));
        let packet = segment(from, to, (seq, ack), flags, 60_000, options, payload);
        self.s.world.deliver(1, &packet);
        self.s.world.turn(1);
        self.s.hear()
    }

    /// Answers the SYN, and acknowledges so many bytes of its data.
    fn answer(&mut self, data: u32, options: &[u8], payload: &[u8]) -> Vec<Heard> {
        self.answer_as(SYN | ACK, data, options, payload)
    }

    fn answer_as(&mut self, flags: u8, data: u32, options: &[u8], payload: &[u8]) -> Vec<Heard> {
        let ack = self.acknowledges(data);
        self.say((ISS, ack), flags, options, payload)
    }

    fn acknowledges(&self, data: u32) -> u32 {
        self.syn.seq.wrapping_add(1 + data)
    }

    /// What the application expects to read first.
    fn bytes(&self, len: u64) -> Vec<u8> {
        let salt = eft_harness::salt(SERVER, self.port);
        (0..len).map(|i| eft_harness::byte_at(salt, i)).collect()
    }

    fn socket(&self) -> SocketId {
        self.s.world.sides[1].app.streams.last().expect("it connects").socket
    }

    fn page(&self) -> SocketPage {
        self.s.world.sides[1].page(self.socket())
    }

    fn info(&self) -> SocketInfo {
        self.page().info()
    }
}

fn begin(s: &mut Script) -> Heard {
    App::connect(&mut s.world, 1, SERVER, Plan { send: DATA, ..quiet_plan() });
    let heard = s.hear().pop().expect("a SYN");
    assert_eq!(heard.flags, SYN);
    heard
}

/// An MSS of 1460, and the option.
fn option(cookie: &[u8]) -> Vec<u8> {
    let mut options = vec![2, 4, 5, 180, FAST_OPEN, 2 + cookie.len() as u8];
    options.extend(cookie);
    options.resize(options.len().next_multiple_of(4), 1);
    options
}

fn cookie_of(heard: &Heard) -> Option<Vec<u8>> {
    find_option(&heard.options, FAST_OPEN).map(<[u8]>::to_vec)
}

fn experimental(heard: &Heard) -> Option<Vec<u8>> {
    find_option(&heard.options, EXPERIMENTAL)?.strip_prefix(&MAGIC).map(<[u8]>::to_vec)
}

const MSS: [u8; 4] = [2, 4, 5, 180];

/// Some servers know the option of before the RFC alone.
#[test]
fn a_server_that_gives_no_cookie_is_asked_in_the_experimental_option_once() {
    let mut c = Client::new();
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push((cookie_of(&c.syn).is_some(), experimental(&c.syn).is_some()));
        c.answer(0, &MSS, &[]);
        c.connect();
    }
    assert_eq!(asked, [(true, false), (false, true), (true, false), (true, false)]);
    let mut c = Client::new();
    c.answer(0, &MSS, &[]);
    c.connect();
    let mut options = MSS.to_vec();
    options.extend([EXPERIMENTAL, 12, MAGIC[0], MAGIC[1]]);
    options.extend(COOKIE);
    c.answer(0, &options, &[]);
    c.connect();
    assert_eq!((experimental(&c.syn), c.syn.len), (Some(COOKIE.to_vec()), 1420));
    // It is told in the other option: that is used from now on.
    c.answer(1420, &option(&COOKIE[..4]), &[]);
    c.connect();
    assert_eq!((cookie_of(&c.syn), experimental(&c.syn)), (Some(COOKIE[..4].to_vec()), None));
}

#[test]
fn without_cookies_data_go_with_the_first_syn_and_no_option_does() {
    let mut c = Client::new();
    c.s.world.at(1).configure("fastopen", "client,client-no-cookie");
    c.connect();
    assert_eq!((cookie_of(&c.syn), c.syn.len), (None, 1420));
    // The MSS is learned, a cookie that nobody asked for is not.
    let mut options = option(&COOKIE);
    options[2..4].copy_from_slice(&940u16.to_be_bytes());
    c.answer(1420, &options, &[]);
    c.connect();
    assert_eq!((cookie_of(&c.syn), c.syn.len), (None, 900));
    c.s.world.at(1).configure("fastopen", "client");
    c.connect();
    assert_eq!((cookie_of(&c.syn), c.syn.len), (Some(Vec::new()), 0));
}

#[test]
fn what_was_learned_can_be_forgotten() {
    let mut c = Client::prepared();
    c.s.world.at(1).configure("forget-servers", "");
    c.connect();
    assert_eq!(cookie_of(&c.syn), Some(Vec::new()));
}

/// RFC 9293 §3.10.7.3: text and FIN of a SYN-ACK are processed.
#[test]
fn data_that_come_with_the_answer_are_taken_at_once() {
    let mut c = Client::prepared();
    let data = c.bytes(700);
    let heard = c.answer(1420, &MSS, &data);
    assert!(heard.iter().all(|h| h.ack == ISS + 701), "{heard:?}");
    assert_eq!(c.s.world.sides[1].app.streams.last().unwrap().received, 700);
    let mut c = Client::prepared();
    let data = c.bytes(700);
    let heard = c.answer_as(SYN | FIN | ACK, 1420, &MSS, &data);
    assert_eq!(heard.last().unwrap().ack, ISS + 702);
    assert_eq!((c.info().tcp_state, c.s.world.sides[1].app.streams.last().unwrap().received), (8, 700));
}

/// The answer to a SYN that another host, or another time, sent.
#[test]
fn an_answer_that_echoes_no_timestamp_of_ours_is_reset() {
    let mut c = Client::new();
    c.s.wait(Duration::from_millis(30));
    let ours = tsval(&c.syn.options).expect("it offers timestamps");
    for echo in [ours.wrapping_add(9999), ours.wrapping_add(100)] {
        let mut options = MSS.to_vec();
        options.extend(timestamps(77, echo));
        let heard = c.answer(0, &options, &[]);
        assert_eq!(heard.iter().map(|h| (h.flags, h.seq)).collect::<Vec<_>>(), [(RST, c.acknowledges(0))]);
        assert_eq!(c.info().tcp_state, 2, "it still waits");
    }
    let mut options = MSS.to_vec();
    options.extend(timestamps(77, ours));
    assert!(c.answer(0, &options, &[]).iter().all(|h| h.flags & RST == 0));
    assert_eq!(c.info().tcp_state, 1);
}

/// Both ends began early: neither takes the other's data, and the connection is one.
#[test]
fn a_simultaneous_open_is_an_ordinary_one() {
    let mut c = Client::prepared();
    let mut options = option(&COOKIE);
    options.extend([4, 2, 1, 1]);
    let data = c.bytes(500);
    let heard = c.say((ISS, 0), SYN, &options, &data);
    assert_eq!(heard.iter().map(|h| (h.flags, h.ack, h.len)).collect::<Vec<_>>(), [(SYN | ACK, ISS + 1, 0)]);
    assert_eq!((cookie_of(&heard[0]), experimental(&heard[0])), (None, None));
    let heard = c.answer(1420, &options, &[]);
    // Its SYN is reported as a duplicate (RFC 2883).
    let sack = heard.iter().find_map(|h| find_option(&h.options, 5)).expect("a SACK option");
    let edge = |at: usize| u32::from_be_bytes(sack[at..at + 4].try_into().unwrap());
    assert_eq!((edge(0), edge(4)), (ISS, ISS + 1));
    assert_eq!(c.info().tcp_state, 1);
}

/// RFC 1191: the SYN was too large with its data.
#[test]
fn a_syn_that_is_too_large_for_the_path_goes_again_without_data_at_once() {
    let mut c = Client::prepared();
    let quote =
        c.s.world.capture.as_ref().unwrap().iter().rev().find(|(_, side, _)| *side == 1).unwrap().2.clone();
    c.s.world.at(1).deliver_error(&quote.bytes[..28], Quote::new(3, 4, 840));
    c.s.world.turn(1);
    let heard = c.s.hear();
    assert_eq!(heard.iter().map(|h| (h.flags, h.seq, h.len)).collect::<Vec<_>>(), [(SYN, c.syn.seq, 0)]);
    assert_eq!(
        (cookie_of(&heard[0]), find_option(&heard[0].options, 2)),
        (None, Some(&800u16.to_be_bytes()[..]))
    );
    let heard = c.answer(0, &MSS, &[]);
    assert_eq!(heard.iter().map(|h| h.len).sum::<usize>() as u64, DATA);
}

/// Who waits for the handshake has data to acknowledge it with, and the peer's answer is acknowledged with what follows.
#[test]
fn an_acknowledgement_waits_if_the_handshake_s_went_with_data() {
    let mut c = Client::prepared();
    let heard = c.answer(1420, &MSS, &[]);
    assert_eq!(heard.iter().map(|h| h.len).sum::<usize>() as u64, DATA - 1420);
    let ack = c.acknowledges(DATA as u32);
    let data = c.bytes(500);
    assert_eq!(c.say((ISS + 1, ack), ACK, &[], &data).len(), 0);
    let heard = c.s.wait(Duration::from_millis(45));
    assert_eq!(heard.iter().map(|h| h.ack).collect::<Vec<_>>(), [ISS + 501]);
}

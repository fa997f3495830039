//! TCP Fast Open as a server: whose keys make cookies, which option carries them, and where none are needed.

use crate::app::App;
use crate::fast_open::*;
use crate::script::*;
use eft_channel::socket::Opt;
use eft_harness::Quote;

const KEY: &str = "a0bf63f7-ed803d81-cd641d30-cebc4a90";
const KEY_BYTES: &[u8; 16] = b"\xf7\x63\xbf\xa0\x81\x3d\x80\xed\x30\x1d\x64\xcd\x90\x4a\xbc\xce";
/// Kind of the experimental option, and what names Fast Open in it.
const EXPERIMENTAL: u8 = 254;
const MAGIC: [u8; 2] = [0xf9, 0x89];

fn with_experimental(cookie: &[u8]) -> Vec<u8> {
    let mut options = vec![2, 4, 5, 120, EXPERIMENTAL, 4 + cookie.len() as u8];
    options.extend(MAGIC);
    options.extend(cookie);
    options.resize(options.len().next_multiple_of(4), 1);
    options
}

fn experimental_cookie(heard: &Heard) -> Option<Vec<u8>> {
    let data = find_option(&heard.options, EXPERIMENTAL)?.strip_prefix(&MAGIC)?;
    Some(data.to_vec())
}

fn listener(s: &Script) -> eft_channel::socket::SocketPage {
    s.world.sides[1].page(s.world.sides[1].app.listener.expect("it listens"))
}

/// Several stacks with one key, and a listener that has it of its own, give and take the same cookies (RFC 7413 §6.3.4).
#[test]
fn stacks_with_the_same_key_agree() {
    let mut of_stack = serving(10);
    of_stack.world.at(1).configure("fastopen-key", KEY);
    let cookie_of_stack = cookie(&mut of_stack);
    let mut of_listener = serving(10);
    listener(&of_listener).set_cookie_keys(KEY_BYTES);
    assert!(is_early(&mut of_listener, &cookie_of_stack));
    assert_eq!(cookie(&mut of_listener), cookie_of_stack);
    // A crash changes neither.
    for s in [&mut of_stack, &mut of_listener] {
        s.world.crash(1);
        s.hear();
        assert!(is_early(s, &cookie_of_stack));
    }
    let mut other = serving(10);
    assert!(!is_early(&mut other, &cookie_of_stack));
}

/// A client's next connection may be another instance's.
#[test]
fn instances_with_the_same_secret_agree() {
    const SECRET: &str = "5ca1ab1e5ca1ab1e0123456789abcdef";
    let instance = |secret: &'static str| {
        let mut s = serving(10);
        s.world.at(1).configure("fastopen-secret", secret);
        s
    };
    let (mut one, mut other) = (instance(SECRET), instance(SECRET));
    let told = cookie(&mut one);
    assert!(is_early(&mut other, &told));
    other.world.crash(1);
    other.hear();
    assert!(is_early(&mut other, &told), "its successor is told it, too");
    for stranger in ["5ca1ab1e5ca1ab1e0123456789abcdee", "5ca1ab1e", "no secret", ""] {
        assert!(!is_early(&mut instance(stranger), &told), "{stranger}");
    }
    // A key that somebody chose comes first.
    one.world.at(1).configure("fastopen-key", KEY);
    assert_ne!(cookie(&mut one), told);
}

#[test]
fn keys_change_while_cookies_of_the_old_one_are_good() {
    let mut s = serving(10);
    s.world.at(1).configure("fastopen-key", KEY);
    let old = cookie(&mut s);
    s.world.at(1).configure("fastopen-key", "1-2-3-4,a0bf63f7-ed803d81-cd641d30-cebc4a90");
    let heard = syn(&mut s, 700, &with(&old));
    assert_eq!(heard.ack, 1_000_701);
    let new = cookie_of(&heard).expect("the new one");
    assert_ne!(new, old);
    s.world.at(1).configure("fastopen-key", "1-2-3-4");
    assert!(!is_early(&mut s, &old));
    assert!(is_early(&mut s, &new));
}

/// An older client asks, and shows its cookie, in the experimental option (RFC 6994).
#[test]
fn the_answer_comes_in_the_option_of_the_question() {
    let mut s = serving(10);
    let heard = syn(&mut s, 0, &with_experimental(&[]));
    assert_eq!(cookie_of(&heard), None);
    let cookie = experimental_cookie(&heard).expect("a cookie");
    assert_eq!(cookie.len(), 8);
    s.say(ACK, &[]);
    let heard = syn(&mut s, 700, &with_experimental(&cookie));
    assert_eq!((heard.ack, experimental_cookie(&heard)), (1_000_701, None));
    s.say(ACK, &[]);
    let heard = syn(&mut s, 700, &with_experimental(&[9; 8]));
    assert_eq!((heard.ack, experimental_cookie(&heard)), (1_000_001, Some(cookie.clone())));
    s.say(ACK, &[]);
    assert!(is_early(&mut s, &cookie), "it is the same in both");
}

#[test]
fn data_need_no_cookie_where_the_stack_or_the_listener_says_so() {
    let mut s = serving(10);
    s.world.at(1).configure("fastopen", "server,server-no-cookie");
    let plain = [2, 4, 5, 120];
    assert_eq!(syn(&mut s, 700, &plain).ack, 1_000_701);
    assert_eq!(received(&s), 700);
    let mut s = serving(10);
    assert_eq!(syn(&mut s, 700, &plain).ack, 1_000_001);
    listener(&s).set_option(Opt::FastOpenNoCookie, 1);
    let heard = syn(&mut s, 700, &plain);
    assert_eq!((heard.ack, cookie_of(&heard)), (1_000_701, None));
    assert_eq!(syn(&mut s, 700, &with(&[9; 8])).ack, 1_000_701, "whatever it shows");
    let before = s.counter("fast_opened");
    syn(&mut s, 0, &plain);
    assert_eq!(s.counter("fast_opened"), before, "without data or option it is an ordinary handshake");
}

/// As on Linux. What came with the SYN can still be read.
#[test]
fn an_unreachable_peer_ends_what_nobody_has_accepted_yet() {
    for idle in [true, false] {
        let mut s = serving(10);
        s.world.sides[1].app.idle = idle;
        let cookie = cookie(&mut s);
        assert!(is_early(&mut s, &cookie));
        let own = (s.world.sides[1].address, PORT);
        let quote =
            segment(own, (s.source, s.source_port), (s.ack.wrapping_sub(1), 0), SYN | ACK, 0, &[], &[]);
        s.world.at(1).deliver_error(&quote.bytes[..28], Quote::new(3, 1, 0));
        s.world.turn(1);
        s.hear();
        s.say(ACK, &[]);
        let reset = s.hear().iter().any(|h| h.flags & RST != 0);
        assert_eq!(reset, idle, "its acknowledgement is answered with a reset");
    }
}

#[test]
fn every_listener_has_it_if_the_stack_says_so() {
    let mut s = serving(0);
    assert_eq!(cookie_of(&syn(&mut s, 0, &with(&[]))), None);
    s.say(ACK, &[]);
    s.world.at(1).configure("fastopen", "server,all-listeners");
    let cookie = cookie(&mut s);
    // As many as its backlog.
    let early = (0..20).filter(|_| is_early(&mut s, &cookie)).count();
    assert_eq!(early, 16);
}

/// The answer to a SYN with a cookie may be scaled and large; its window is that of the SYN-ACK until the client was heard again.
#[test]
fn no_more_than_64_kib_are_offered_before_the_handshake_is_done() {
    let mut s = serving(10);
    let cookie = cookie(&mut s);
    let mut options = with(&cookie);
    options.extend([1, 3, 3, 7]);
    syn(&mut s, 1000, &options);
    let socket = s.world.sides[1].app.streams.last().expect("accepted").socket;
    s.world.sides[1].app.streams.last_mut().unwrap().plan.send = 3000;
    App::progress(&mut s.world, 1, socket);
    // The ring has 1 MiB: a shift of 4.
    let windows: Vec<u32> = s.hear().iter().filter(|h| h.len > 0).map(|h| (h.window as u32) << 4).collect();
    assert!(!windows.is_empty() && windows.iter().all(|w| *w == 65536), "{windows:?}");
    s.ack = s.ack.wrapping_add(3000);
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, 1000, 1000));
    assert!((s.hear()[0].window as u32) << 4 > 1_000_000);
}

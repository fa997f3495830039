//! TCP_DEFER_ACCEPT: connections that are accepted when their first data have come, as on Linux.

use crate::script::*;
use eft_channel::socket::Opt;
use std::time::Duration;

const S: Duration = Duration::from_secs(1);

/// A client whose acknowledgment of the SYN-ACK has come; the listener waits for data for so many time-outs.
fn acknowledged(timeouts: u32) -> Script {
    let mut s = Script::new(quiet_plan());
    let listener = s.world.sides[1].app.listener.expect("it listens");
    s.world.sides[1].page(listener).set_option(Opt::DeferAccept, timeouts);
    s.say(SYN, &[]);
    let syn_ack = s.hear().pop().expect("a SYN-ACK");
    s.ack = syn_ack.seq.wrapping_add(1);
    s.say(ACK, &[]);
    s
}

fn accepted(s: &Script) -> usize {
    s.world.sides[1].app.streams.len()
}

#[test]
fn a_connection_is_accepted_with_its_first_data() {
    for dies in [false, true] {
        let mut s = acknowledged(3);
        assert_eq!((accepted(&s), s.counter("deferred_accepts")), (0, 1));
        // Meanwhile the SYN-ACK is not sent again.
        assert!(s.wait(S / 2).is_empty());
        if dies {
            s.world.crash(1);
            s.wait(S / 10);
            s.say(ACK, &[]);
            assert_eq!(accepted(&s), 0, "the next life does not wait");
        }
        let (port, bytes) = (s.source_port, 10);
        s.say(ACK, &stream_bytes(port, 0, bytes));
        assert_eq!((accepted(&s), s.world.sides[1].app.streams[0].received), (1, bytes as u64));
    }
}

#[test]
fn who_sends_nothing_is_accepted_when_the_time_is_over() {
    // Three time-outs: 1, 2 and 4 seconds. With the last but one the SYN-ACK is sent again.
    let mut s = acknowledged(3);
    assert!(s.wait(S * 2).is_empty());
    let again: Vec<u8> = s.wait(S * 6).iter().map(|h| h.flags).collect();
    assert_eq!(again, [SYN | ACK], "as a last chance");
    assert_eq!(accepted(&s), 0);
    s.say(ACK, &[]);
    assert_eq!(accepted(&s), 1);
    // Without deferral at once; and who finishes is not waited for.
    assert_eq!(accepted(&acknowledged(0)), 1);
    let mut s = acknowledged(3);
    s.say(ACK | FIN, &[]);
    assert_eq!(accepted(&s), 1);
}

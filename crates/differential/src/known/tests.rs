use super::*;
use crate::generate::plain;
use crate::program::{Complaint, FIN, Kind, Place, RST, Segment, Sent};

fn difference(name: &str, kernel: &str, eft: &str) -> Difference {
    Difference { step: 0, name: name.into(), kernel: kernel.into(), eft: eft.into() }
}

fn after(call: Call) -> Program {
    Program { v6: false, steps: vec![Step::Call(0, call)] }
}

fn low_water() -> Call {
    Call::Set { level: libc::SOL_SOCKET, option: libc::SO_RCVLOWAT, value: 200 }
}

#[test]
fn only_what_is_listed_is_known() {
    let low = after(low_water());
    let name = Some("low-water readiness");
    assert_eq!(known(&low, &difference("slot 0 ready", "OUT", "IN OUT")), name);
    assert_eq!(known(&low, &difference("slot 0 ready", "OUT", "IN")), None);
    assert_eq!(known(&low, &difference("slot 0 unread", "OUT", "IN OUT")), None);
    assert_eq!(known(&after(Call::Close), &difference("slot 0 ready", "OUT", "IN OUT")), None);
}

#[test]
fn an_error_that_reads_as_input_is_known_of_datagram_sockets_alone() {
    let opened = |kind| after(Call::Socket { kind, nonblocking: true });
    let error = difference("slot 0 ready", "OUT ERR", "IN OUT");
    assert_eq!(known(&opened(Kind::Datagram), &error), Some("error of a datagram socket"));
    assert_eq!(known(&opened(Kind::Stream), &error), None);
    assert_eq!(known(&opened(Kind::Datagram), &difference("slot 0 ready", "OUT ERR", "OUT")), None);
}

#[test]
fn what_a_failed_connect_leaves_is_known_after_a_reset_alone() {
    let connect = Step::Call(0, Call::Connect { port: 0 });
    let mut segment = Segment { flags: 0, ..plain(0) };
    let unsent = Difference { step: 1, ..difference("slot 0 unsent", "3", "0") };
    let mut after = |flags| {
        segment.flags = flags;
        let answer = Step::Peer(Sent::Segment(segment));
        known(&Program { v6: false, steps: vec![connect.clone(), answer] }, &unsent)
    };
    assert_eq!((after(RST), after(0)), (Some("remains of a failed connect"), None));
}

#[test]
fn text_in_place_of_a_fin_is_known_if_it_is_there() {
    let end = Segment { from: 500, flags: FIN, ..plain(0) };
    let unread = Difference { step: 1, ..difference("slot 0 unread", "501", "500") };
    let after = |from, len| {
        let later = Segment { from, len, ..plain(0) };
        let steps = [end, later].map(|s| Step::Peer(Sent::Segment(s))).to_vec();
        known(&Program { v6: false, steps }, &unread)
    };
    let name = Some("text in place of a FIN");
    assert_eq!([after(500, 1), after(400, 200), after(400, 100), after(501, 5)], [name, name, None, None]);
}

#[test]
fn a_reset_is_known_if_it_has_the_number_of_a_fin() {
    let closed = Difference { step: 1, ..difference("slot 0 state", "CLOSED", "CLOSE-WAIT") };
    let after = |flags, from| {
        let steps = [Segment { flags, ..plain(0) }, Segment { from, flags: RST, ..plain(0) }];
        known(&Program { v6: false, steps: steps.map(|s| Step::Peer(Sent::Segment(s))).to_vec() }, &closed)
    };
    assert_eq!(
        [after(FIN, 0), after(FIN, 1), after(0, 0)],
        [Some("reset with the number of a FIN"), None, None]
    );
}

#[test]
fn what_a_call_changed_lasts_until_the_end_and_does_not_begin_before_it() {
    let program = Program { v6: false, steps: vec![Step::Settle, Step::Call(0, low_water()), Step::Settle] };
    let at = |step| Difference { step, ..difference("slot 0 ready", "OUT", "IN OUT") };
    assert_eq!([0, 1, 2].map(|step| known(&program, &at(step)).is_some()), [false, true, true]);
}

#[test]
fn what_was_mended_is_not_known_any_more() {
    let bind = after(Call::Bind { place: Place::Own, port: 0 });
    assert_eq!(known(&bind, &difference("slot 0 ready", "OUT HUP", "OUT")), None);
    let shutdown = after(Call::Shutdown { how: libc::SHUT_WR });
    assert_eq!(known(&shutdown, &difference("slot 0 unsent", "1", "0")), None);
    // An ICMP error that ended an attempt to connect stays in the error queue when a send has told it.
    let refusal = Step::Peer(Sent::Complaint { connection: 0, what: Complaint::PortUnreachable });
    let send = Step::Call(0, Call::Send { len: 1, flags: 0 });
    let told = Program { v6: false, steps: vec![refusal, send] };
    let ready =
        Difference { step: 1, ..difference("slot 0 ready", "IN OUT RDHUP ERR HUP", "IN OUT RDHUP HUP") };
    assert_eq!(known(&told, &ready), None);
}

#[test]
fn the_document_lists_each_known_difference() {
    let document = include_str!("../../../../docs/differential.md");
    KNOWN.iter().for_each(|(name, _)| assert!(document.contains(&format!("**{name}.**")), "{name}"));
}

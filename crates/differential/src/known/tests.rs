use super::*;
use crate::program::{Kind, Place};

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
}

#[test]
fn the_document_lists_each_known_difference() {
    let document = include_str!("../../../../docs/differential.md");
    KNOWN.iter().for_each(|(name, _)| assert!(document.contains(&format!("**{name}.**")), "{name}"));
}

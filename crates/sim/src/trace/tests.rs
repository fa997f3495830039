use super::*;

const WHOLE: &str = "eft-trace 1\n# two clients\n0 7 open\n10 7 100 5000\n12 3 open\n15 7 120 1\n20 3 80 70000\n30 7 close\n40 end\n";

#[test]
fn a_trace_is_read_and_written_again() {
    let trace = Trace::parse(WHOLE).unwrap();
    assert_eq!(trace.length_us(), 40);
    let ask = Deed::Ask(Exchange { request_bytes: 80, answer_bytes: 70_000 });
    assert_eq!(trace.steps()[4], Step { at_us: 20, connection: 3, deed: ask });
    assert_eq!(trace.to_string(), WHOLE.replace("# two clients\n", ""));
    let tally =
        Tally { opens: 2, closes: 1, open_at_once: 2, requests: 3, request_bytes: 300, answer_bytes: 75_001 };
    assert_eq!(trace.tally(), tally);
}

#[test]
fn a_trace_that_is_wrong_gets_one_error_with_its_line() {
    let of = |text: &str| Trace::parse(text).unwrap_err().to_string();
    let after = |lines: &str| of(&format!("eft-trace 1\n0 1 open\n{lines}"));
    assert_eq!(of(""), "line 1: a trace begins with the line `eft-trace 1`");
    assert!(of("eft-trace 2\n0 end\n").starts_with("line 1: "));
    for (lines, why) in [
        ("5 1 10\n", "a line is `TIME"),
        ("5 1 10 10 10\n", "a line is `TIME"),
        ("\n", "a time is a number of microseconds"),
        ("5  1 10 10\n", "a line is `TIME"),
        ("+5 1 10 10\n", "a time is a number of microseconds"),
        ("-5 1 10 10\n", "a time is a number of microseconds"),
        ("3600000001 1 10 10\n", "a time is a number of microseconds"),
        ("5 4294967296 open\n", "a connection is a number"),
        ("5 1 0 10\n", "a request is a number of bytes, 1 to 262144"),
        ("5 1 262145 10\n", "a request is a number of bytes"),
        ("5 1 10 0\n", "an answer is a number of bytes, 1 to 100000000"),
        ("5 1 open\n", "connection 1 is open already"),
        ("5 2 10 10\n", "connection 2 is not open"),
        ("5 2 close\n", "connection 2 is not open"),
        ("0 end\n", "the trace ends at time 0"),
        ("5 end\n", "nothing is asked in the whole trace"),
    ] {
        let told = after(lines);
        assert!(told.starts_with("line 3: ") && told.contains(why), "{lines:?}: {told}");
    }
    assert_eq!(after("5 1 10 10\n4 1 10 10\n"), "line 4: the time is before the line above");
    assert_eq!(after("5 1 10 10\n"), "line 3: the trace ends without `TIME end`: it was cut short");
    assert_eq!(after("5 1 10 10\n6 end\n7 end\n"), "line 5: something follows the end");
    let many: String = (0..=OPEN_MAX).map(|number| format!("0 {number} open\n")).collect();
    let told = of(&format!("eft-trace 1\n{many}"));
    assert_eq!(told, "line 258: more than 256 connections are open at once");
}

/// A capture as `eft capture` writes them, of frames with their times in microseconds.
fn capture(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length, &body[..], &length].concat()
    };
    let mut bytes =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[255; 8]].concat());
    let options = [9u8, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0][..], &options].concat()));
    for (at_us, frame) in frames {
        let at = at_us * 1000;
        let length = (frame.len() as u32).to_le_bytes();
        let head = [[0; 4], ((at >> 32) as u32).to_le_bytes(), (at as u32).to_le_bytes(), length, length];
        bytes.extend(block(6, &[&head.concat()[..], frame].concat()));
    }
    bytes
}

/// A segment between client 10.0.0.1 and server 10.0.0.2.
fn frame(to_server: bool, port: u16, sequence: u32, flags: u8, payload: usize) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let ([from, to], [source, target]) =
        if to_server { ([client, server], [port, 80]) } else { ([server, client], [80, port]) };
    let length = (40 + payload as u16).to_be_bytes();
    let mut frame =
        [&[0u8; 12][..], &[8, 0, 0x45, 0], &length, &[0, 0, 0, 0, 64, 6, 0, 0], &from, &to].concat();
    frame.extend([source.to_be_bytes(), target.to_be_bytes()].concat());
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    frame.resize(frame.len() + payload, 0);
    frame
}

const SYN: u8 = 2;
const FIN: u8 = 17;
const SYN_ACK: u8 = 18;
const ACK: u8 = 16;

#[test]
fn a_capture_becomes_a_trace() {
    let seen = capture(&[
        (90, frame(true, 999, 7, ACK, 10)),
        (100, frame(true, 1000, u32::MAX, SYN, 0)),
        (101, frame(false, 1000, 500, SYN_ACK, 0)),
        (110, frame(true, 1000, 0, ACK, 60)),
        (111, frame(true, 1000, 60, ACK, 40)),
        (115, frame(true, 1000, 60, ACK, 40)),
        (120, frame(false, 1000, 501, ACK, 1000)),
        (125, frame(false, 1000, 1501, ACK, 500)),
        (126, frame(false, 1000, 1001, ACK, 500)),
        (130, frame(true, 1000, 100, ACK, 30)),
        (140, frame(false, 1000, 2001, ACK, 7)),
        (150, frame(true, 1000, 130, FIN, 0)),
        (160, frame(false, 1000, 2008, FIN, 0)),
    ]);
    let converted = convert(&seen).unwrap();
    let told = "eft-trace 1\n0 0 open\n10 0 100 1500\n30 0 30 7\n50 0 close\n60 end\n";
    assert_eq!(converted.trace.to_string(), told, "sent again counts once, out of order once, too");
    assert_eq!((converted.strange_segments, converted.left_out), (1, 0));
}

#[test]
fn a_request_without_an_answer_is_left_out_and_counted() {
    let asks =
        [(0, frame(true, 5, 0, SYN, 0)), (1, frame(true, 5, 1, ACK, 10)), (2, frame(false, 5, 9, ACK, 3))];
    let unanswered = [(3, frame(true, 6, 0, SYN, 0)), (4, frame(true, 6, 1, ACK, 10))];
    let converted = convert(&capture(&[&asks[..], &unanswered].concat())).unwrap();
    assert_eq!(converted.trace.to_string(), "eft-trace 1\n0 0 open\n1 0 10 3\n3 1 open\n4 end\n");
    assert_eq!(converted.left_out, 1);
}

#[test]
fn what_is_no_capture_gets_one_error_and_no_byte_makes_it_panic() {
    let whole = capture(&[
        (0, frame(true, 5, 0, SYN, 0)),
        (1, frame(true, 5, 1, ACK, 10)),
        (2, frame(false, 5, 9, ACK, 3)),
    ]);
    assert!(convert(&whole).is_ok());
    assert_eq!(convert(b"a text"), Err(CaptureError::NoCapture));
    assert_eq!(convert(&capture(&[])), Err(CaptureError::Nothing));
    for length in 0..whole.len() {
        assert!(convert(&whole[..length]).is_err(), "cut at {length}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut broken = whole.clone();
            broken[at] ^= 1 << bit;
            let _ = convert(&broken);
        }
    }
}

#[test]
fn the_committed_traces_are_as_the_documentation_says() {
    let of = |text: &str| {
        let trace = Trace::parse(text).unwrap();
        let Tally { requests, opens, .. } = trace.tally();
        (requests, opens, trace.length_us() / 10_000)
    };
    assert_eq!(of(include_str!("../../traces/nginx.trace")), (1837, 68, 693));
    assert_eq!(of(include_str!("../../traces/redis.trace")), (4801, 81, 67));
}

//! Servers are functions of their inputs.

use eft_base::Endpoint;
use eft_messages::ComponentId;
use eft_record::file;
use eft_record::life::Life;
use eft_record::recording::{Access, Call, End, Input, RecordedOutput, Recording, Written};
use eft_record::replay::{Difference, Failure};
use eft_sim::simulation::{Settings, address};
use eft_sim::{Conditions, Datagrams, Faults, Simulation};
use std::time::Duration;

const RECORDED: [ComponentId; 4] = [ComponentId::IP, ComponentId::FILTER, ComponentId::TCP, ComponentId::UDP];

/// Streams both ways and datagrams over a wire that loses, repeats and reorders, while servers die; recorded.
fn recorded(seed: u64) -> Simulation {
    let settings = Settings {
        conditions: Conditions {
            loss: 0.01,
            duplicate: 0.01,
            jitter: Duration::from_micros(300),
            rate: 100_000_000,
            cut: true,
            ..Conditions::default()
        },
        record: true,
        ..Settings::default()
    };
    let mut s = Simulation::new(seed, settings);
    s.serve(100_000, 200_000, 0);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    s.faults = Faults {
        peers: RECORDED.into_iter().chain([ComponentId::nic(0)]).collect(),
        crash: 0.0005,
        downtime: Duration::from_millis(2),
        one_at_a_time: false,
        ..Faults::default()
    };
    let to = Some(Endpoint::new(address(1).address, 53));
    s.applications[0].exchange(Datagrams { port: 0, to, count: 200, len_max: 4000, ..Datagrams::default() });
    s.stream(100_000, 200_000, 0);
    s.run(Duration::from_secs(600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s.run_for(Duration::from_millis(50));
    s
}

fn lives(s: &Simulation, peer: ComponentId) -> impl Iterator<Item = &Life> {
    s.stacks.iter().flat_map(|k| &k.lives).filter(move |l| l.head.engine.peer() == peer)
}

#[test]
fn servers_answer_the_same_when_asked_again() {
    let mut seen = RECORDED.map(|_| (0, 0));
    let mut retransmitted = 0;
    for seed in 0..4 {
        let s = recorded(seed);
        for (n, peer) in RECORDED.into_iter().enumerate() {
            for life in lives(&s, peer) {
                let recording = life.recording.borrow();
                if let Err(failure) = life.again(&recording) {
                    panic!("seed {seed}, {peer}: {failure}");
                }
                seen[n].0 += 1;
                seen[n].1 += recording.segments().1;
            }
        }
        retransmitted += s.total(ComponentId::TCP, "retransmitted_segments");
    }
    assert!(seen.iter().all(|(lives, _)| *lives > 8), "nobody died: {seen:?}");
    assert!(seen[2].1 > 4 * 300_000 && seen[3].1 > 4 * 200_000, "too little payload: {seen:?}");
    assert!(retransmitted > 0, "nothing was lost");
}

/// The first life of a server, and how its replay fares with a change.
struct Original<'a> {
    life: &'a Life,
    recording: Recording,
}

impl Original<'_> {
    fn changed(&self, change: impl FnOnce(&mut Recording)) -> Result<(), Failure> {
        let mut recording = self.recording.clone();
        change(&mut recording);
        self.life.again(&recording)
    }

    fn call(&self, is_it: impl FnMut(&Call) -> bool) -> usize {
        self.recording.calls.iter().position(is_it).expect("there is such a call")
    }
}

/// A recording that says much of `peer`, or the first with a call that is meant.
fn original(s: &Simulation, peer: ComponentId) -> Original<'_> {
    let life = lives(s, peer).max_by_key(|l| l.recording.borrow().calls.len());
    checked(life.expect("it was recorded"))
}

fn original_with(s: &Simulation, peer: ComponentId, is_it: impl Fn(&Call) -> bool) -> Original<'_> {
    let has_it = |l: &&Life| l.recording.borrow().calls.iter().any(&is_it);
    checked(lives(s, peer).find(has_it).expect("there is such a call"))
}

/// One that lives again as it was.
fn checked(life: &Life) -> Original<'_> {
    let recording = life.recording.borrow().clone();
    let original = Original { life, recording };
    assert_eq!(original.changed(|_| {}), Ok(()));
    original
}

fn call_of(failure: Result<(), Failure>) -> usize {
    match failure {
        Err(Failure::Differs { call, .. }) => call,
        other => panic!("it passes for the same: {other:?}"),
    }
}

/// The oracle sees what it must: another request, another answer.
#[test]
fn a_changed_message_is_noticed() {
    let s = recorded(1);
    for peer in RECORDED {
        let o = original(&s, peer);
        let asked = o.call(|c| matches!(c.input, Input::Message(..)) && !c.outputs.is_empty());
        let flipped = o.changed(|r| {
            if let Input::Message(_, line) = &mut r.calls[asked].input {
                line[0] ^= 1 << 8;
            }
        });
        assert!(flipped.is_err(), "{peer}: another request id");
        assert_eq!(call_of(o.changed(|r| r.calls[asked].outputs.clear())), asked, "{peer}");
        let more = o.changed(|r| r.calls[asked].outputs.push(RecordedOutput::Effect("Dance".into())));
        assert_eq!(call_of(more), asked, "{peer}");
    }
}

/// A bit of a packet that ip forwards.
#[test]
fn a_changed_packet_is_noticed() {
    let s = recorded(1);
    let o = original(&s, ComponentId::IP);
    let sent = o.call(|c| {
        c.memory.len() > 1 && c.outputs.iter().any(|o| matches!(o, RecordedOutput::Message { .. }))
    });
    assert!(o.changed(|r| r.calls[sent].memory[0].1[34] ^= 1).is_err());
}

fn has_payload(out: &RecordedOutput) -> bool {
    matches!(out, RecordedOutput::Message { payload: (len, _), .. } if *len > 0)
}

#[test]
fn a_changed_bit_of_a_segment_is_noticed() {
    let s = recorded(1);
    for peer in [ComponentId::TCP, ComponentId::UDP] {
        let o = original_with(&s, peer, |c| c.outputs.iter().any(has_payload));
        let sent = o.call(|c| c.outputs.iter().any(has_payload));
        let number = o.recording.calls[sent].outputs.iter().position(has_payload).expect("found above");
        let RecordedOutput::Message { shown, .. } = &o.recording.calls[sent].outputs[number] else {
            unreachable!()
        };
        for bit in 0..shown.len() * 8 {
            let flipped = o.changed(|r| {
                r.calls.truncate(sent + 1);
                if let RecordedOutput::Message { shown, .. } = &mut r.calls[sent].outputs[number] {
                    shown[bit / 8] ^= 1 << (bit % 8);
                }
            });
            let Err(Failure::Differs { call, difference }) = flipped else {
                panic!("{peer}, bit {bit}: it passes for the same");
            };
            let Difference::Output { number: at, recorded, replayed } = *difference else {
                panic!("{peer}, bit {bit}: {difference:?}");
            };
            assert_eq!((call, at), (sent, number));
            assert_ne!(recorded, replayed);
        }
        let payload = o.changed(|r| {
            let of_it = r.calls[sent].memory.last_mut().expect("payload");
            of_it.1[0] ^= 1;
        });
        assert_eq!(call_of(payload), sent, "{peer}: a bit that the program wrote");
    }
}

/// What it read in a program's page, and what it wrote there: a word, and received bytes.
#[test]
fn a_changed_word_of_a_page_is_noticed() {
    type IsIt = fn(&Access) -> bool;
    let word: IsIt = |a| matches!(a, Access::Wrote { what: Written::Bytes(_), .. });
    let bytes: IsIt = |a| matches!(a, Access::Wrote { what: Written::Digest { .. }, .. });
    // A position: another value of a flag may mean the same.
    let read: IsIt = |a| matches!(a, Access::Read { bytes, .. } if bytes.len() == 8 && bytes[0] != 0);
    let s = recorded(1);
    for peer in [ComponentId::TCP, ComponentId::UDP] {
        for (what, is_it) in [("word", word), ("bytes", bytes), ("read", read)] {
            let o = original_with(&s, peer, |c| c.accesses.iter().any(is_it));
            let at = o.call(|c| c.accesses.iter().any(is_it));
            let flipped = o.changed(|r| match r.calls[at].accesses.iter_mut().find(|a| is_it(a)) {
                Some(Access::Wrote { what: Written::Bytes(bytes), .. } | Access::Read { bytes, .. }) => {
                    bytes.iter_mut().for_each(|b| *b ^= 0xff)
                }
                Some(Access::Wrote { what: Written::Digest { digest, .. }, .. }) => *digest ^= 1,
                None => unreachable!(),
            });
            // A read value may matter only later.
            assert!(call_of(flipped) >= at, "{peer}: {what}");
            assert_eq!(call_of(o.changed(|r| drop(r.calls[at].accesses.pop()))), at, "{peer}: one less");
            let again = o.changed(|r| {
                let one = r.calls[at].accesses[0].clone();
                r.calls[at].accesses.push(one);
            });
            assert_eq!(call_of(again), at, "{peer}: one more");
        }
    }
}

/// tcp's randomness and its secret are its inputs, too.
#[test]
fn another_secret_gives_other_sequence_numbers() {
    let s = recorded(1);
    let life = s.stacks[0].lives.iter().find(|l| l.head.engine.peer() == ComponentId::TCP).expect("recorded");
    let mut head = life.head.clone();
    let eft_record::makes::Engine::Tcp { seed, .. } = &mut head.engine else { unreachable!() };
    *seed += 1;
    let other = Life { head, recording: life.recording.clone() };
    let recording = life.recording.borrow();
    assert_eq!(life.again(&recording), Ok(()));
    let failure = other.again(&recording).expect_err("another secret");
    let text = failure.to_string();
    assert!(text.contains("recorded: ") && text.contains("replayed: "), "{text}");
}

/// A recording as a file.
fn written(life: &Life, bytes_max: usize) -> Vec<u8> {
    file::to_bytes(life, bytes_max).expect("memory")
}

#[test]
fn a_file_is_the_same_life() {
    let s = recorded(2);
    for peer in RECORDED {
        let life = original(&s, peer).life;
        let back = file::from_bytes(&written(life, usize::MAX)).expect("whole");
        let recording = back.recording.borrow();
        assert_eq!(recording.end, life.recording.borrow().end);
        assert_eq!(recording.calls.len(), life.recording.borrow().calls.len());
        assert_eq!(back.again(&recording), Ok(()), "{peer}");
    }
}

#[test]
fn a_file_is_bounded_and_says_so() {
    let s = recorded(2);
    let life = original(&s, ComponentId::TCP).life;
    let bytes = written(life, 100_000);
    assert!((100_000..200_000).contains(&bytes.len()), "{}", bytes.len());
    let back = file::from_bytes(&bytes).expect("whole");
    let recording = back.recording.borrow();
    assert_eq!(recording.end, End::Full(100_000));
    assert_eq!(back.again(&recording), Ok(()));
}

#[test]
fn a_broken_file_is_refused_in_one_line() {
    let s = recorded(2);
    let whole = written(original(&s, ComponentId::TCP).life, 50_000);
    let refused = |bytes: &[u8], says: &str| {
        let error = file::from_bytes(bytes)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_else(|| panic!("{says}: it passes"));
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    };
    refused(b"", "not a recording");
    refused(b"pcap", "not a recording");
    refused(b"eft recording 2\nfoo", "format \"2\"");
    refused(b"eft recording ", "format \"\"");
    refused(&whole[..20], "cut short");
    // Any bit after the first line.
    for at in (16..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        match file::from_bytes(&damaged) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("damaged") || error.contains("cut short"), "{error}");
            }
            // A length that became too large: the rest of the file is missing.
            Ok(life) => assert_eq!(life.recording.borrow().end, End::CutShort, "bit {at}"),
        }
    }
    let cut = file::from_bytes(&whole[..whole.len() - 3]).expect("its whole frames");
    assert_eq!(cut.recording.borrow().end, End::CutShort);
}

#[test]
fn the_same_seed_is_the_same_world() {
    let (a, b) = (recorded(3), recorded(3));
    assert_eq!((a.now, a.steps), (b.now, b.steps));
    for (a, b) in a.stacks.iter().zip(&b.stacks) {
        assert_eq!(a.lives.len(), b.lives.len());
        for (a, b) in a.lives.iter().zip(&b.lives) {
            assert!(a.recording.borrow().outputs().eq(b.recording.borrow().outputs()));
        }
    }
    assert_ne!(a.steps, recorded(4).steps);
}

use super::*;

#[test]
fn events_are_read_by_their_names() {
    let profile =
        "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nfn=(1)\n3 4\ntotals: 1000 200 100 1 20 3 4 50 6\n";
    assert_eq!(
        Events::parse(profile),
        Some(Events { instructions: 1000, first_misses: 24, last_misses: 60 })
    );
    let short = "events: Ir\ntotals: 7\n";
    assert_eq!(Events::parse(short), Some(Events { instructions: 7, ..Events::default() }));
    assert_eq!(Events::parse("totals: 7"), None);
}

/// Calls whose number alone matters: each third one brings a message.
fn recording(calls: usize) -> Recording {
    use eft_base::{Instant, Random};
    use eft_messages::Encoded;
    use eft_record::recording::{Call, Input};
    let call = |number: usize| Call {
        now: Instant(number as u64),
        random: Random::new(1),
        rooms: Vec::new(),
        memory: Vec::new(),
        input: match number % 3 {
            0 => Input::Message(ComponentId::IP, Encoded::default()),
            _ => Input::Commit,
        },
        accesses: Vec::new(),
        outputs: Vec::new(),
    };
    Recording { calls: (0..calls).map(call).collect(), ..Recording::default() }
}

#[test]
fn each_call_is_made_once_and_counts_in_one_stretch() {
    for calls in [1, 59, 60, 61, 1000] {
        let recording = recording(calls);
        let mut made = 0;
        let counted = count(&recording, kinds::of(ComponentId::TCP), |conductor| {
            for number in 0..calls {
                conductor(number, &mut || made += 1);
            }
            Ok::<(), ()>(())
        })
        .unwrap();
        let messages = calls.div_ceil(3) as u64;
        assert_eq!((made, counted.messages), (calls, messages));
        // No message of an edge: each is one of the kind of others.
        assert_eq!(counted.stretches.iter().flatten().sum::<u64>(), messages);
        assert!((1..=STRETCHES).contains(&counted.stretches.len()), "{}", counted.stretches.len());
        assert_eq!(counted.ns.len(), counted.stretches.len());
    }
}

#[test]
fn a_replay_that_fails_says_so() {
    let failed = count(&recording(3), kinds::of(ComponentId::IP), |_| Err("differs"));
    assert_eq!(failed, Err("differs"));
}

//! Servers are functions of their inputs.

use eft_messages::Peer;
use eft_sim::replay::{Call, Input, Let, Recording};
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

/// A transfer over a bad wire while servers die, recorded.
fn recorded(seed: u64) -> Simulation {
    let settings = Settings {
        conditions: Conditions {
            loss: 0.01,
            duplicate: 0.01,
            jitter: Duration::from_micros(100),
            rate: 100_000_000,
            cut: true,
            ..Conditions::default()
        },
        record: true,
        ..Settings::default()
    };
    let mut s = Simulation::new(seed, settings);
    s.serve(100_000, 200_000, 0);
    s.faults = Faults {
        peers: vec![Peer::Ip, Peer::Filter, Peer::Nic(0), Peer::Tcp],
        crash: 0.0005,
        downtime: Duration::from_millis(2),
        one_at_a_time: false,
    };
    s.stream(100_000, 200_000, 0);
    s.run(Duration::from_secs(600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s
}

#[test]
fn ip_and_the_filter_answer_the_same_when_asked_again() {
    let mut lives = 0;
    for seed in 0..4 {
        let s = recorded(seed);
        for life in s.stacks.iter().flat_map(|k| &k.lives) {
            let recording = life.recording.borrow();
            assert!(recording.outputs().count() > 0, "seed {seed}");
            if let Err(d) = life.again(&recording) {
                panic!("seed {seed}: {} differs at call {}: {d:?}", life.head.peer, d.call);
            }
            lives += 1;
        }
    }
    assert!(lives > 16, "only {lives} lives: nobody died");
}

/// The oracle sees what it must: another request, another answer, another byte of a packet.
#[test]
fn a_changed_recording_is_noticed() {
    let s = recorded(1);
    for peer in [Peer::Ip, Peer::Filter] {
        let mut lives = s.stacks[0].lives.iter().filter(|l| l.head.peer == peer);
        let life = lives.next().expect("it was recorded");
        let original = life.recording.borrow();
        let changed = |change: &dyn Fn(&mut Recording)| {
            let mut recording = original.clone();
            change(&mut recording);
            life.again(&recording).is_err()
        };
        assert!(!changed(&|_| {}));
        let answered = |c: &Call| matches!(c.input, Input::Message(..)) && !c.outputs.is_empty();
        let message = original.calls.iter().position(answered).expect("there is one");
        let flipped = changed(&|r| {
            if let Input::Message(_, line) = &mut r.calls[message].input {
                line[0] ^= 1 << 8;
            }
        });
        assert!(flipped, "{peer}: another request id");
        assert!(changed(&|r| r.calls[message].outputs.clear()), "{peer}: another answer");
    }
    // A byte of a packet that ip forwards.
    let life = s.stacks[0].lives.iter().find(|l| l.head.peer == Peer::Ip).expect("recorded");
    let mut recording = life.recording.borrow().clone();
    let call = recording
        .calls
        .iter_mut()
        .find(|c| c.memory.len() > 1 && c.outputs.iter().any(|o| matches!(o, Let::Message(..))));
    let (_, descriptor) = &mut call.expect("it sent something").memory[0];
    descriptor[34] ^= 1;
    assert!(life.again(&recording).is_err());
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

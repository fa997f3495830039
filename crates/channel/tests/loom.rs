//! Model-checks the production sources: `RUSTFLAGS="--cfg loom" cargo test -p eft-channel --test loom --release`.
#![cfg(loom)]

use eft_channel::notify::{Doorbell, Mode, Ringer, StateWord, Wake};
use eft_channel::queue::{Line, Position, queue};
use eft_channel::shared::Shared;
use eft_channel::token::ReadToken;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

#[test]
fn queue_delivers_in_order_and_never_overwrites() {
    loom::model(|| {
        let lines = Shared::heap_slice((0..2).map(|_| Line::empty()).collect());
        let (mut p, mut c) = queue(lines, Shared::heap(Position::zero()));
        let producer = thread::spawn(move || {
            let mut pushed = 0;
            for i in 1..=3u64 {
                if p.push(&[i; 7]).is_ok() {
                    pushed = i;
                } else {
                    break;
                }
            }
            pushed
        });
        let mut next = 1;
        for _ in 0..3 {
            if let Some(m) = c.pop() {
                assert_eq!(m, [next; 7]);
                next += 1;
            }
        }
        let pushed = producer.join().unwrap();
        while let Some(m) = c.pop() {
            assert_eq!(m, [next; 7]);
            next += 1;
        }
        assert_eq!(next - 1, pushed);
    });
}

/// A sleeper that announced itself either sees the message in its last look or is rung.
#[test]
fn no_wake_is_lost() {
    for mode in [Mode::Futex, Mode::Monitoring, Mode::Descriptor] {
        loom::model(move || {
            let lines = Shared::heap_slice((0..2).map(|_| Line::empty()).collect());
            let (mut p, mut c) = queue(lines, Shared::heap(Position::zero()));
            let state = Arc::new(StateWord::new());
            let bell = Arc::new(Doorbell::new());
            let (state2, bell2) = (state.clone(), bell.clone());
            let descriptor = Arc::new(AtomicBool::new(false));
            let descriptor2 = descriptor.clone();
            let sender = thread::spawn(move || {
                p.push(&[1; 7]).unwrap();
                if Ringer::default().ring(&bell2, &state2) == Wake::Descriptor {
                    descriptor2.store(true, Ordering::SeqCst);
                }
            });
            let before = bell.value();
            state.announce(mode);
            let seen = c.pop().is_some();
            sender.join().unwrap();
            let rung = bell.value() != before || descriptor.load(Ordering::SeqCst);
            assert!(seen || rung, "slept through a message");
            state.awake();
        });
    }
}

/// The mode of waiting may change at any point without losing a wake.
#[test]
fn a_change_of_mode_loses_no_wake() {
    loom::model(|| {
        let lines = Shared::heap_slice((0..2).map(|_| Line::empty()).collect());
        let (mut p, mut c) = queue(lines, Shared::heap(Position::zero()));
        let state = Arc::new(StateWord::new());
        let bell = Arc::new(Doorbell::new());
        let (state2, bell2) = (state.clone(), bell.clone());
        let sender = thread::spawn(move || {
            p.push(&[1; 7]).unwrap();
            Ringer::default().ring(&bell2, &state2);
        });
        let mut before = bell.value();
        state.announce(Mode::Monitoring);
        let mut seen = c.pop().is_some();
        if !seen && bell.value() == before {
            state.awake();
            before = bell.value();
            state.announce(Mode::Futex);
            seen = c.pop().is_some();
        } else {
            seen = true;
        }
        sender.join().unwrap();
        assert!(seen || bell.value() != before);
    });
}

/// The number of messages in the descriptor equals the token, and news leave the token set.
#[test]
fn token_counts_exactly() {
    loom::model(|| {
        let token = Arc::new(ReadToken::new());
        let available = Arc::new(AtomicU32::new(0));
        let messages = Arc::new(AtomicUsize::new(8));
        let (t, a, m) = (token.clone(), available.clone(), messages.clone());
        let server = thread::spawn(move || {
            for _ in 0..2 {
                let end = a.fetch_add(1, Ordering::Release) + 1;
                if t.post(end as u64) {
                    m.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let mut taken = 0;
        for _ in 0..2 {
            taken = available.load(Ordering::Acquire);
            token.note_taken(taken as u64);
            if token.retire(|| available.load(Ordering::Acquire) != taken) {
                messages.fetch_sub(1, Ordering::SeqCst);
            }
        }
        server.join().unwrap();
        let count = messages.load(Ordering::SeqCst) - 8;
        assert_eq!(count, token.is_posted() as usize);
        if available.load(Ordering::SeqCst) != taken {
            assert!(token.is_posted(), "news without readiness");
        } else {
            assert!(!token.is_posted(), "readiness without news");
        }
    });
}

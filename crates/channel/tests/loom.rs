//! Model-checks the production sources: `RUSTFLAGS="--cfg loom" cargo test -p eft-channel --test loom --release`.
#![cfg(loom)]

#[path = "loom/lookers.rs"]
mod lookers;
#[path = "loom/sleepers.rs"]
mod sleepers;

use eft_base::Instant;
use eft_channel::notify::{Doorbell, Mode, Ringer, StateWord, Wake};
use eft_channel::phases::{Phase, Phases};
use eft_channel::queue::{Line, Position, queue};
use eft_channel::shared::Shared;
use eft_channel::token::{ReadToken, WritePlug};
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
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

/// A sleeper that announced itself either sees the message in its last check or is rung.
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

/// Receiver of two messages that changes between all ways of waiting, one after the other. The sender's calls are
/// kept: `FUTEX_WAKE` shows as a changed bell, a write to the eventfd as a flag.
struct Receiver {
    queue: eft_channel::Consumer,
    state: Arc<StateWord>,
    bell: Arc<Doorbell>,
    descriptor: Arc<AtomicBool>,
    taken: u64,
}

impl Receiver {
    /// Takes what is there, announces how it sleeps, and checks once more. A sender after that must ring. Returns the
    /// bell's value on which it would sleep, or `None` if it saw something in its last check.
    fn prepare(&mut self, mode: Mode) -> Option<u32> {
        let before = self.bell.value();
        self.state.announce(mode);
        match self.queue.pop() {
            Some(_) => {
                self.taken += 1;
                self.state.awake();
                None
            }
            None => Some(before),
        }
    }

    /// Whether this sleep was ended, in the way that the mode requires.
    fn is_woken(&self, mode: Mode, slept_on: u32) -> bool {
        match mode {
            Mode::Descriptor => self.descriptor.load(Ordering::SeqCst),
            _ => self.bell.value() != slept_on,
        }
    }
}

/// Moved from one core to another, a component goes from one way of waiting to another while its neighbour sends. For every
/// pair of ways, and wherever the change falls between the sender's steps: no message lies unseen while its receiver sleeps
/// and was not rung.
#[test]
fn a_move_between_ways_of_waiting_loses_no_wake() {
    let ways = [Mode::Monitoring, Mode::Futex, Mode::Descriptor];
    for (first, second) in ways.into_iter().flat_map(|a| ways.into_iter().map(move |b| (a, b))) {
        loom::model(move || {
            let lines = Shared::heap_slice((0..2).map(|_| Line::empty()).collect());
            let (mut p, queue) = queue(lines, Shared::heap(Position::zero()));
            let (state, bell) = (Arc::new(StateWord::new()), Arc::new(Doorbell::new()));
            let descriptor = Arc::new(AtomicBool::new(false));
            let (state2, bell2, descriptor2) = (state.clone(), bell.clone(), descriptor.clone());
            let sender = thread::spawn(move || {
                // One ringer for both messages: it must not take a ring of an earlier sleep for one of this.
                let mut ringer = Ringer::default();
                for i in 1..=2 {
                    p.push(&[i; 7]).unwrap();
                    if ringer.ring(&bell2, &state2) == Wake::Descriptor {
                        descriptor2.store(true, Ordering::SeqCst);
                    }
                }
            });
            let mut receiver = Receiver { queue, state, bell, descriptor, taken: 0 };
            // The move comes while it sleeps in the first way: it wakes, and sleeps in the second.
            if receiver.prepare(first).is_some() {
                receiver.state.awake();
                receiver.descriptor.store(false, Ordering::SeqCst);
            }
            let slept_on = receiver.prepare(second);
            sender.join().unwrap();
            if let Some(slept_on) = slept_on
                && receiver.queue.has_message()
            {
                assert!(
                    receiver.is_woken(second, slept_on),
                    "{first:?} to {second:?}: slept through a message"
                );
            }
            while receiver.queue.pop().is_some() {
                receiver.taken += 1;
            }
            assert_eq!(receiver.taken, 2);
        });
    }
}

/// The scheduler's mode word (dedicated or shared) is a hint: it may change at any point, and the receiver reads it before
/// each sleep. The sender never reads it.
#[test]
fn the_schedulers_mode_word_may_change_at_any_point() {
    loom::model(|| {
        let lines = Shared::heap_slice((0..2).map(|_| Line::empty()).collect());
        let (mut p, queue) = queue(lines, Shared::heap(Position::zero()));
        let (state, bell) = (Arc::new(StateWord::new()), Arc::new(Doorbell::new()));
        let dedicated = Arc::new(AtomicBool::new(true));
        let (state2, bell2, dedicated2) = (state.clone(), bell.clone(), dedicated.clone());
        let sender = thread::spawn(move || {
            p.push(&[1; 7]).unwrap();
            Ringer::default().ring(&bell2, &state2);
        });
        let scheduler = thread::spawn(move || dedicated2.store(false, Ordering::Relaxed));
        let descriptor = Arc::new(AtomicBool::new(false));
        let mut receiver = Receiver { queue, state, bell, descriptor, taken: 0 };
        let mode = |on: bool| if on { Mode::Monitoring } else { Mode::Futex };
        let mut slept_on = receiver.prepare(mode(dedicated.load(Ordering::Relaxed)));
        if slept_on.is_some() {
            receiver.state.awake();
            slept_on = receiver.prepare(mode(dedicated.load(Ordering::Relaxed)));
        }
        sender.join().unwrap();
        scheduler.join().unwrap();
        let rung = slept_on.is_none_or(|value| receiver.bell.value() != value);
        assert!(receiver.taken == 1 || rung, "slept through a message");
    });
}

/// A token, the available input, the messages in the descriptor (8 more than there are), and a server that gets input
/// twice; with `edges`, for an edge-triggered set.
fn two_inputs(edges: bool) -> (Arc<ReadToken>, Arc<AtomicU32>, Arc<AtomicUsize>, thread::JoinHandle<()>) {
    let token = Arc::new(ReadToken::new());
    let available = Arc::new(AtomicU32::new(0));
    let messages = Arc::new(AtomicUsize::new(8));
    let (t, a, m) = (token.clone(), available.clone(), messages.clone());
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let end = a.fetch_add(1, Ordering::Release) + 1;
            if t.post(end as u64) || edges && t.post_edge() {
                m.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    (token, available, messages, server)
}

/// The number of messages in the descriptor equals the token, and untaken input leaves the token set.
#[test]
fn token_counts_exactly() {
    loom::model(|| {
        let (token, available, messages, server) = two_inputs(false);
        let mut taken = 0;
        for _ in 0..2 {
            taken = available.load(Ordering::Acquire);
            token.note_taken(taken as u64);
            let retired = token.retire(|| available.load(Ordering::Acquire) != taken);
            messages.fetch_sub(retired as usize, Ordering::SeqCst);
        }
        server.join().unwrap();
        let count = messages.load(Ordering::SeqCst) - 8;
        assert_eq!(count, token.is_posted() as usize);
        if available.load(Ordering::SeqCst) != taken {
            assert!(token.is_posted(), "input without readiness");
        } else {
            assert!(!token.is_posted(), "readiness without input");
        }
    });
}

/// As above, where new input is also reported before older input was taken (edge-triggered epoll).
#[test]
fn edges_count_exactly() {
    loom::model(|| {
        let (token, available, messages, server) = two_inputs(true);
        messages.fetch_sub(token.retire_edges() as usize, Ordering::SeqCst);
        let taken = available.load(Ordering::Acquire);
        token.note_taken(taken as u64);
        let retired = token.retire(|| available.load(Ordering::Acquire) != taken);
        messages.fetch_sub(retired as usize, Ordering::SeqCst);
        server.join().unwrap();
        let left = token.retire(|| false) as usize;
        assert_eq!(messages.load(Ordering::SeqCst) - 8, left);
        assert_eq!(left > 0, available.load(Ordering::SeqCst) != taken, "readiness differs from input");
    });
}

/// A program that finds no room, plugs, and wakes the server; and a server that dies after each of the steps in which it
/// takes the plug out. Its successor leaves no plug without its word set, and the last check leaves none at all. While no
/// server dies, the program's descriptor also becomes writable *after* each time that the program gave up: an
/// edge-triggered set reports nothing else.
#[test]
fn a_plug_outlives_no_server() {
    for steps in 0..=3 {
        loom::model(move || {
            let word = Arc::new(WritePlug::new());
            let (plugs, edges) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (w, p, e) = (word.clone(), plugs.clone(), edges.clone());
            let program = thread::spawn(move || {
                for _ in 0..2 {
                    // A second plug finds no room.
                    if !w.is_set() && p.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                        w.set();
                    }
                }
                e.load(Ordering::SeqCst)
            });
            let take_out = || edges.fetch_add(plugs.swap(0, Ordering::SeqCst), Ordering::SeqCst);
            // The first server does `steps` of its steps.
            let took = steps > 0 && word.take();
            if took && steps > 1 {
                take_out();
            }
            if took && steps > 2 {
                word.taken();
            }
            // Its successor.
            if word.is_half_taken() {
                take_out();
                word.taken();
            }
            let gave_up = program.join().unwrap();
            assert!(plugs.load(Ordering::SeqCst) == 0 || word.is_set(), "a plug without its word set");
            // It was woken after the plug was put in.
            if word.take() {
                take_out();
                word.taken();
            }
            assert_eq!(plugs.load(Ordering::SeqCst), 0);
            assert!(!word.is_set());
            let died = took && steps < 3;
            assert!(died || edges.load(Ordering::SeqCst) > gave_up, "no edge after it gave up");
        });
    }
}

/// An owner that sleeps, works and sleeps again, beside a reader that samples twice: no sample is torn (its parts add up to
/// the time that it covers), and no time is less in the second sample than in the first.
#[test]
fn accounts_are_whole_and_go_only_forward() {
    let mut model = loom::model::Builder::new();
    // Each has fourteen words: every order in which the two interrupt each other up to this many times.
    model.preemption_bound = Some(3);
    model.check(|| {
        let clock = Arc::new(AtomicU64::new(1));
        let read = |clock: &AtomicU64| Instant(clock.fetch_add(1, Ordering::Relaxed));
        let phases = Arc::new(Phases::default());
        phases.open(Instant(0));
        phases.enter(Phase::Sleeping, Instant(0));
        let (c, p) = (clock.clone(), phases.clone());
        let owner = thread::spawn(move || {
            for next in [Phase::Busy, Phase::Sleeping] {
                p.leave(next);
                let now = read(&c);
                p.enter(next, now);
            }
        });
        let mut last = (Instant(0), [0; 4]);
        for _ in 0..2 {
            let now = read(&clock);
            let Some((until, times)) = phases.read(now) else { continue };
            assert_eq!(times.iter().sum::<u64>(), until.0, "torn");
            assert!(until >= last.0);
            let back = Phase::ALL.into_iter().find(|p| times[*p as usize] < last.1[*p as usize]);
            assert_eq!(back, None, "went back: {times:?} after {:?}", last.1);
            last = (until, times);
        }
        owner.join().unwrap();
    });
}

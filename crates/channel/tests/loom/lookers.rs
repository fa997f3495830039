use eft_channel::lookers::{Looker, Told};
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

/// A looker, the input of two sockets, and how many tokens lie in the kernel; and a server that gets input for both.
type Looking = (Arc<Looker>, Arc<[AtomicU32; 2]>, Arc<AtomicUsize>, thread::JoinHandle<()>);

fn looking(sockets: u32) -> Looking {
    let looker = Arc::new(Looker::new());
    let input = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let tokens = Arc::new(AtomicUsize::new(0));
    assert!(looker.claim(7));
    let (l, i, t) = (looker.clone(), input.clone(), tokens.clone());
    let server = thread::spawn(move || {
        for slot in 0..sockets {
            i[slot as usize].store(1, Ordering::Release);
            match l.tell(slot) {
                Told::Marked => {}
                Told::Asleep(sleep) => {
                    t.fetch_add(1, Ordering::SeqCst);
                    l.rang(sleep);
                }
                Told::Absent => drop(t.fetch_add(1, Ordering::SeqCst)),
            }
        }
    });
    (looker, input, tokens, server)
}

fn take_all(looker: &Looker, input: &[AtomicU32; 2]) {
    looker.take(|mark| input[mark].store(0, Ordering::Relaxed));
}

/// A program that looks at the marks, announces itself and sleeps: no input lies there while it sleeps and no token wakes it.
/// It wakes once, by a token or by itself, takes what is marked, and sleeps again.
#[test]
fn nobody_sleeps_beside_marks() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let (looker, input, tokens, server) = looking(2);
        let mut woken = 0;
        for _ in 0..2 {
            if !looker.announce() {
                looker.awake();
                take_all(&looker, &input);
                continue;
            }
            // The kernel wakes it if there is a token that it has not taken.
            if tokens.load(Ordering::SeqCst) == woken {
                break;
            }
            woken = tokens.load(Ordering::SeqCst);
            looker.awake();
            take_all(&looker, &input);
        }
        // Wherever it stopped looking, it has announced itself, or does so now.
        let sleeps = looker.announce();
        server.join().unwrap();
        let untaken = input.iter().any(|input| input.load(Ordering::SeqCst) == 1);
        let wakes = tokens.load(Ordering::SeqCst) != woken;
        assert!(!sleeps || !untaken || wakes, "sleeps beside input");
        assert!(tokens.load(Ordering::SeqCst) <= 2);
    });
}

/// Somebody else waits for the descriptor: the looker leaves, and input has its token or is seen after that.
#[test]
fn input_is_seen_or_has_its_token_when_a_looker_leaves() {
    loom::model(|| {
        let (looker, input, tokens, server) = looking(1);
        looker.leave();
        let seen = input[0].load(Ordering::Acquire) == 1;
        server.join().unwrap();
        assert!(seen || tokens.load(Ordering::SeqCst) == 1, "waits for a token beside input");
    });
}

/// While one thread sleeps, another takes the token that was to wake it, with its socket's input. The sleeper's next
/// input has a token, or the other thread asks for one.
#[test]
fn a_ring_that_another_thread_takes_is_repeated() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let (looker, input, tokens, server) = looking(2);
        let sleeps = looker.announce();
        // The other thread, which reads from the first socket.
        let took = tokens.load(Ordering::SeqCst) > 0;
        let mut asks = false;
        if took {
            input[0].store(0, Ordering::Relaxed);
            tokens.fetch_sub(1, Ordering::SeqCst);
            asks = looker.took_ring();
        }
        server.join().unwrap();
        let untaken = input[1].load(Ordering::SeqCst) == 1;
        assert!(!sleeps || !untaken || asks || tokens.load(Ordering::SeqCst) > 0, "sleeps beside input");
    });
}

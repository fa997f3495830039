use super::*;
use std::fs::File;
use std::io::{Read, Write};

/// Forks a process that makes a call, in which it dies. Returns the signal of its death, and what it wrote before.
fn dies(call: fn(), last: fn(Death, &mut File)) -> (i32, String) {
    let (from, to) = rustix::pipe::pipe().unwrap();
    // SAFETY: the child allocates nothing that a lock of another thread could forbid, and ends below.
    match unsafe { libc::fork() } {
        0 => {
            let mut to = File::from(to);
            prepare().unwrap();
            during(&mut |death| last(death, &mut to), &mut || call());
            // SAFETY: the call has returned, which a test notices by this status.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(to);
            let mut said = String::new();
            File::from(from).read_to_string(&mut said).unwrap();
            let mut status = 0;
            // SAFETY: plain call with a valid out pointer.
            unsafe { libc::waitpid(child, &mut status, 0) };
            (if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 }, said)
        }
    }
}

/// What the handler writes.
fn tell(death: Death, to: &mut File) {
    let word: &[u8] = match death {
        Death::Hang => b"hang",
        Death::Signal(libc::SIGSEGV) => b"segv",
        Death::Signal(libc::SIGABRT) => b"abort",
        Death::Signal(libc::SIGILL) => b"ill",
        Death::Signal(libc::SIGFPE) => b"fpe",
        Death::Signal(libc::SIGBUS) => b"bus",
        Death::Signal(_) => b"another",
    };
    to.write_all(word).unwrap();
}

fn send(signal: i32) {
    // SAFETY: a signal to this thread.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

fn write_nowhere() {
    // SAFETY: none: it is to fault.
    unsafe { std::ptr::dangling_mut::<u64>().write_volatile(1) };
}

#[test]
fn who_dies_of_a_fault_says_so_before_and_dies_of_it() {
    assert_eq!(dies(write_nowhere, tell), (libc::SIGSEGV, "segv".into()));
    assert_eq!(dies(|| std::process::abort(), tell), (libc::SIGABRT, "abort".into()));
    let sent: [(fn(), i32, &str); 4] = [
        (|| send(libc::SIGSEGV), libc::SIGSEGV, "segv"),
        (|| send(libc::SIGILL), libc::SIGILL, "ill"),
        (|| send(libc::SIGFPE), libc::SIGFPE, "fpe"),
        (|| send(libc::SIGBUS), libc::SIGBUS, "bus"),
    ];
    for (call, signal, said) in sent {
        assert_eq!(dies(call, tell), (signal, said.into()));
    }
}

/// The stack that has no room is not the one on which the handler runs.
#[test]
fn who_has_no_stack_left_says_so() {
    fn deeper(n: u64) -> u64 {
        let room = std::hint::black_box([n; 512]);
        if n == u64::MAX { 0 } else { deeper(n + 1) + room[n as usize % 512] }
    }
    let (signal, said) = dies(|| _ = std::hint::black_box(deeper(0)), tell);
    assert_eq!((signal, &*said), (libc::SIGSEGV, "segv"));
}

#[test]
fn who_hangs_says_so_when_it_is_asked_and_ends_as_if_it_were_killed() {
    let hangs = || {
        ask_after(Duration::from_secs(1)).unwrap();
        loop {
            std::hint::black_box(clock::now());
        }
    };
    assert_eq!(dies(hangs, tell), (libc::SIGKILL, "hang".into()));
}

/// What is done at a death faults itself.
#[test]
fn a_fault_while_dying_ends_the_process_by_the_first_signal() {
    let faults = |death, to: &mut File| {
        tell(death, to);
        write_nowhere();
    };
    assert_eq!(dies(|| std::process::abort(), faults), (libc::SIGABRT, "abort".into()));
    assert_eq!(dies(|| send(libc::SIGBUS), faults), (libc::SIGBUS, "bus".into()));
    assert_eq!(dies(|| send(HANGS), faults), (libc::SIGKILL, "hang".into()));
}

#[test]
fn between_two_calls_nothing_is_said() {
    assert_eq!(dies(|| (), tell), (0, String::new()), "a call that returns");
    let after_another = || {
        during(&mut |_| unreachable!(), &mut || ());
        write_nowhere();
    };
    assert_eq!(dies(after_another, tell), (libc::SIGSEGV, String::new()));
}

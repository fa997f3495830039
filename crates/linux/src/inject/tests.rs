use super::*;
use eft_arena::docket;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

#[test]
fn kinds_have_names_of_their_own() {
    for (name, kind, _) in KINDS {
        assert_eq!((Kind::parse(name), kind.name()), (Ok(*kind), *name));
    }
    assert!(Kind::parse("flip").unwrap_err().to_string().contains("flip-code, flip-stack"));
}

/// A shell that computes forever.
fn busy() -> Child {
    Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()
}

/// One that has come to the sleep for which it was started, which takes some time beside busy programs.
fn asleep(seconds: &str) -> Child {
    let child = Command::new("sleep").arg(seconds).spawn().unwrap();
    let call = format!("/proc/{}/syscall", child.id());
    let sleeps = |call: &str| {
        let number = call.split(' ').next().and_then(|number| number.parse().ok());
        [libc::SYS_clock_nanosleep, libc::SYS_nanosleep].into_iter().any(|sleep| number == Some(sleep))
    };
    while !sleeps(&std::fs::read_to_string(&call).expect("it has ended")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn a_process_dies_as_it_was_told() {
    for (kind, signal) in [
        (Kind::Kill, libc::SIGKILL),
        (Kind::Segv, libc::SIGSEGV),
        (Kind::Abort, libc::SIGABRT),
        (Kind::Null, libc::SIGSEGV),
    ] {
        let mut child = busy();
        std::thread::sleep(Duration::from_millis(20));
        let said = inject(child.id(), kind, &mut Random::new(7)).unwrap().what;
        assert_eq!(child.wait().unwrap().signal(), Some(signal), "{kind:?}: {said}");
    }
}

#[test]
fn a_program_in_rust_dies_of_a_sigsegv_from_outside_too() {
    let exe = std::env::current_exe().unwrap();
    let test = ["--ignored", "--exact", "inject::tests::sleeps"];
    let mut child = Command::new(exe).args(test).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    inject(child.id(), Kind::Segv, &mut Random::new(7)).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGSEGV));
}

#[test]
#[ignore = "started by another test"]
fn sleeps() {
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn one_that_sleeps_breaks_where_it_sleeps_and_not_otherwise() {
    let mut child = asleep("1");
    let said = inject(child.id(), Kind::FlipStack, &mut Random::new(7)).unwrap().what;
    assert!(said.ends_with(" 0 instructions on"), "{said}");
    // The flipped bit may kill it; the tracing must not.
    assert_ne!(child.wait().unwrap().signal(), Some(libc::SIGTRAP));
}

/// So that the same bit can be changed in another process, whose files lie elsewhere.
#[test]
fn broken_code_is_named_by_its_file() {
    let mut child = asleep("1");
    let said = inject(child.id(), Kind::FlipCode, &mut Random::new(7)).unwrap().what;
    let place = said.strip_prefix("bit ").and_then(|rest| rest.split(' ').nth(4)).unwrap();
    let (file, offset) = place.split_once("+0x").unwrap();
    assert!(file.starts_with("libc"), "{said}");
    assert!(u64::from_str_radix(offset.trim_end_matches(','), 16).is_ok(), "{said}");
    child.wait().unwrap();
}

#[test]
fn nobody_is_held_back_for_long() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(20));
    let mut tracee = Tracee::seize(child.id()).unwrap();
    let done = tracee.step(u64::MAX, PATIENCE, Duration::from_millis(50)).unwrap();
    assert!(done < u64::MAX);
    drop(tracee);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_that_sends_fails_once_and_nothing_else_does() {
    // It ends by the first write that fails, and would by a sleep that did.
    let program = "while sleep 0.01; do printf x || exit 3; done; exit 4";
    let mut child =
        Command::new("sh").args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let said = inject(child.id(), Kind::Enomem, &mut Random::new(7)).unwrap().what;
    assert_eq!(said, "write on descriptor 1");
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn one_that_sends_nothing_is_released_while_it_sleeps() {
    let mut child = asleep("4");
    assert!(inject(child.id(), Kind::Enomem, &mut Random::new(7)).is_err());
    assert!(child.wait().unwrap().success(), "it is stopped");
}

#[test]
fn what_is_not_there_is_one_line() {
    let mut child = busy();
    std::thread::sleep(Duration::from_millis(20));
    let refusal = inject(child.id(), Kind::FlipArena, &mut Random::new(7)).err().unwrap();
    assert_eq!(refusal, Error::Missing("it has written no durable state".into()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(inject(child.id(), Kind::Abort, &mut Random::new(7)).is_err(), "it has ended");
}

/// A process that works now and then, and says so in the memory in which a server names the input that runs.
fn named_now_and_then() -> i32 {
    let memory = crate::memory::create("eft-arena-test", 1 << 16).unwrap();
    let arena = crate::memory::map(&memory, true).unwrap();
    arena.write(0, &[1]).unwrap();
    // SAFETY: the child computes, and makes no call.
    match unsafe { libc::fork() } {
        0 => {
            let running = arena.atomic_u64(docket::RUNNING_AT).unwrap();
            let work = |turns| (0..turns).for_each(|n| _ = std::hint::black_box(n));
            loop {
                running.store(7, Ordering::Relaxed);
                work(2_000);
                running.store(0, Ordering::Relaxed);
                work(2_000_000);
            }
        }
        child => child,
    }
}

/// At a random instruction, one of a thousand would.
#[test]
#[cfg(target_arch = "x86_64")]
fn most_failures_come_while_an_input_runs() {
    let in_input = (0..12).filter(|seed| {
        let child = named_now_and_then();
        let strike = inject(child as u32, Kind::Failure, &mut Random::new(*seed)).unwrap();
        let mut status = 0;
        // SAFETY: plain call with a valid out pointer.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV, "seed {seed}: {}", strike.what);
        strike.durable.as_deref().is_some_and(docket::has_running)
    });
    let in_input = in_input.count();
    assert!((6..12).contains(&in_input), "{in_input} of 12");
}

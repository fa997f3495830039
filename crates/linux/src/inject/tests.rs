use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

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
    let mut child = Command::new(exe).args(test).stdout(std::process::Stdio::null()).spawn().unwrap();
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
    let mut child = Command::new("sleep").arg("1").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let said = inject(child.id(), Kind::FlipStack, &mut Random::new(7)).unwrap().what;
    assert!(said.ends_with(" 0 instructions on"), "{said}");
    // The flipped bit may kill it; the tracing must not.
    assert_ne!(child.wait().unwrap().signal(), Some(libc::SIGTRAP));
}

/// So that the same bit can be changed in another process, whose files lie elsewhere.
#[test]
fn broken_code_is_named_by_its_file() {
    let mut child = Command::new("sleep").arg("1").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(20));
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
fn one_that_sends_nothing_is_released_while_it_sleeps() {
    let mut child = Command::new("sleep").arg("4").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(20));
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

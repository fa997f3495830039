use super::*;
use crate::futex::WaitSet;
use crate::memory;
use eft_channel::status::STATUS_LEN;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A thread's line with these flags, threads and exit code.
fn line(flags: u64, threads: u64, code: u64) -> String {
    let mut fields = vec!["0".to_string(); 50];
    (fields[9 - 3], fields[20 - 3], fields[52 - 3]) =
        (flags.to_string(), threads.to_string(), code.to_string());
    format!("7 (a) name) {}\n", fields.join(" "))
}

#[test]
fn a_process_is_ending_when_its_only_thread_exits() {
    assert_eq!(ending_by(&line(0x400004, 1, 9)).unwrap(), "signal 9");
    assert_eq!(ending_by(&line(0x4, 1, 0x8b)).unwrap(), "signal 11");
    assert_eq!(ending_by(&line(0x4, 1, 101 << 8)).unwrap(), "exit status 101");
    assert_eq!(ending_by(&line(0x400000, 1, 9)), None, "it runs");
    assert_eq!(ending_by(&line(0x4, 2, 9)), None, "another thread runs");
    assert_eq!(ending_by("7 (name) Z 1 2"), None);
}

#[test]
fn a_running_process_is_not_ending_and_a_zombie_has_ended() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let witness = Witness::of(child.id()).unwrap();
    assert_eq!(witness.ending(), None);
    child.kill().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let how = loop {
        if let Some(how) = witness.ending() {
            break how;
        }
        assert!(Instant::now() < until);
    };
    assert_eq!(how, "signal 9");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(witness.ending(), None, "it is gone");
}

#[test]
fn the_kernel_tells_the_death_of_a_thread_that_holds_a_page() {
    let fd = memory::create("life", STATUS_LEN).unwrap();
    let (ours, theirs) = (
        Status::new(memory::map(&fd, false).unwrap()).unwrap(),
        Status::new(memory::map(&fd, true).unwrap()).unwrap(),
    );
    let word = ours.life_word();
    assert!(!is_held(word.load(Ordering::Acquire)));
    // Only this test of the process holds a page: a process has one list.
    std::thread::spawn(move || {
        prepare().unwrap();
        hold(&theirs);
        assert!(is_held(theirs.life_word().load(Ordering::Acquire)));
    });
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let value = word.load(Ordering::Acquire);
        if value & libc::FUTEX_OWNER_DIED != 0 {
            break;
        }
        assert!(Instant::now() < until);
        let mut set = WaitSet::default();
        set.add(&word, value);
        assert!(set.wait(Some(eft_host::clock::now() + Duration::from_millis(100))));
    }
}

#[test]
fn a_sleeper_is_woken_on_another_cpu_than_that_of_its_waker() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_raw(child.id() as i32);
    let before = sched_getaffinity(pid).unwrap();
    wake_elsewhere(child.id());
    let after = sched_getaffinity(pid).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // On a machine with one CPU nothing changes.
    assert_eq!(after.count(), (before.count() - 1).max(1));
}

#[test]
fn a_process_that_stepped_aside_can_be_called_back() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    // SAFETY: a plain number.
    let policy = || unsafe { libc::sched_getscheduler(child.id() as i32) };
    step_aside(child.id());
    let aside = policy();
    step_forward(child.id());
    let forward = policy();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(aside, libc::SCHED_IDLE);
    // By one that may give others any priority.
    if rustix::process::geteuid().is_root() {
        assert_eq!(forward, libc::SCHED_OTHER);
    }
}

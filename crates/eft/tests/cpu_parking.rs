//! Parking with company: tasks that bind themselves to a parked CPU, and a running stack with components on it.

mod live;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::{Live, out};

fn bind(tid: i32, cpus: &[usize]) -> bool {
    // SAFETY: the set is initialised and lives through the call, which only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu, &mut set));
        libc::sched_setaffinity(tid, size_of_val(&set), &set) == 0
    }
}

fn may_run_on_1(tid: i32) -> bool {
    // SAFETY: the kernel writes into the set, which lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(tid, size_of_val(&set), &mut set) == 0 && libc::CPU_ISSET(1, &set)
    }
}

/// A figure, not an assertion: machines are shared.
#[test]
fn a_task_that_binds_itself_to_a_parked_cpu_is_swept() {
    let Some(live) = Live::new() else { return };
    let me = std::process::id().to_string();
    out(&live.eft(&["park", "1", "--back-end", "affinity", "--scope", &me, "--observe", "1"]));
    let mut late: Vec<u128> = Vec::new();
    for _ in 0..40 {
        let swept = std::thread::spawn(|| {
            let begin = Instant::now();
            assert!(bind(0, &[1]));
            while may_run_on_1(0) {
                assert!(begin.elapsed() < Duration::from_secs(20), "it is never swept");
                std::thread::sleep(Duration::from_micros(200));
            }
            begin.elapsed().as_micros()
        });
        late.push(swept.join().unwrap());
        std::thread::sleep(Duration::from_millis(3));
    }
    late.sort_unstable();
    println!(
        "swept after {} us (median), {} us (90%), {} us (longest); promised 10000",
        late[20], late[35], late[39]
    );
    out(&live.eft(&["unpark", "1"]));
}

struct Stack(Child);

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that was not reaped yet.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// Children of a process, as the kernel lists them.
fn children(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn components_of_a_running_stack_move_with_a_park_and_may_return() {
    let Some(live) = Live::new() else { return };
    let number = std::process::id() % 100_000;
    let mut stack = Command::new(env!("CARGO_BIN_EXE_eft"))
        .args(["up", "--name", &format!("park{number}"), "--device", &format!("tap:eftk{number}")])
        .args(["--address", "10.78.9.2/24", "--host-address", "10.78.9.1/24"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(stack.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let stack = Stack(stack);
    assert_eq!(line.trim(), "ready");
    let components = children(stack.0.id());
    assert!(components.len() > 2, "{components:?}");
    components.iter().for_each(|pid| assert!(bind(*pid, &[1])));
    out(&live.eft(&["park", "1", "--scope", &stack.0.id().to_string(), "--observe", "1"]));
    assert!(components.iter().all(|pid| !may_run_on_1(*pid)), "a component stayed on the parked CPU");
    let pinged = Command::new("ping").args(["-c", "1", "-W", "5", "10.78.9.2"]).output();
    if let Ok(pinged) = pinged {
        assert!(pinged.status.success(), "the stack does not answer while its CPU is parked");
    }
    out(&live.eft(&["unpark", "1"]));
    assert!(components.iter().all(|pid| may_run_on_1(*pid)), "a component does not get its mask back");
}

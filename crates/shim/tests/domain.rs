//! Tests of a whole domain: names and interfaces, the loopback, programs into which the shim cannot
//! be loaded, other domains, the end of the stack.

mod compile;
mod support;

use compile::{EFT, check, check_closed, compiled, compiled_with, run_on};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use support::Fake;

fn stack_case(case: &str) {
    let fake = Fake::start();
    let domain = fake.domain();
    let what = format!("stack {case}");
    check(&what, &run_on(&domain, "stack", &[case, EFT]));
    check_closed(&what, &fake);
}

macro_rules! cases {
    ($($case:ident)*) => {$(
        #[test]
        fn $case() {
            stack_case(stringify!($case));
        }
    )*};
}

cases! { names interfaces loopback fast_open fast_open_later silent standard confined }

#[test]
fn crowded() {
    // SAFETY: plain call.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: needs root");
        return;
    }
    stack_case("crowded");
}

/// Two domains on one stack reach each other like two machines.
#[test]
fn domains_meet_only_over_the_network() {
    let fake = Fake::start();
    let (one, other) = (fake.domain(), fake.domain());
    let socket = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("over.{}", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let path = socket.to_str().expect("a plain path");
    let mut stranger = std::process::Command::new("timeout");
    stranger.arg("60").arg(compiled("stack")).args(["unix_listener", EFT, path]);
    let mut stranger = stranger.stdout(Stdio::piped()).spawn().expect("program runs");
    await_ready(&mut stranger);
    let output = run_on(&one, "stack", &["hand_over", EFT, path]);
    check("hand_over", &output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot be handed"), "{said}");
    check("unix_listener", &stranger.wait_with_output().expect("program ends"));
    check("connect_only", &run_on(&other, "stack", &["connect_only", EFT]));
    check_closed("domains", &fake);
}

/// sockets dies while it handles a request: the request is repeated.
#[test]
fn requests_survive_sockets() {
    let fake = Fake::start();
    let domain = fake.domain();
    fake.forget_next_request();
    check("connect_only", &run_on(&domain, "stack", &["connect_only", EFT]));
    check_closed("reborn", &fake);
}

fn await_ready(child: &mut std::process::Child) {
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
}

fn refused(program: &str, start: &str) {
    let fake = Fake::start();
    let domain = fake.domain();
    let output = run_on(&domain, "stack", &[start, EFT, program]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(program) && said.contains("not started"), "{program}: {said}");
    let result = String::from_utf8_lossy(&output.stdout);
    assert!(result.contains("Operation not permitted"), "{program}: {result}");
}

/// The library of the tests lies alone: `eft enter`, which would give such programs a proxy, is not beside it.
#[test]
fn programs_that_the_shim_cannot_enter_are_not_started() {
    let fixed = compiled_with("nothing", &["-static"]);
    refused(fixed.to_str().expect("a plain path"), "start");
    // For a script its interpreter counts.
    let script = fixed.with_file_name("script");
    std::fs::write(&script, format!("#!{}\n", fixed.display())).expect("target directory");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("own file");
    refused(script.to_str().expect("a plain path"), "start");
    // Allowed if asked for.
    let fake = Fake::start();
    let domain = fake.domain();
    let mut command = domain.command(compiled("stack"));
    command.args(["start", EFT]).arg(&fixed).env("EFT_UNSHIMMED", "allow");
    check("allowed", &command.output().expect("program runs"));
}

#[test]
fn privileged_programs_are_not_started() {
    // A program that root runs keeps its privileges, so the test runs it as another user.
    // SAFETY: plain call.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: needs root");
        return;
    }
    let directory = std::env::temp_dir().join(format!("eft-shim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("temporary directory");
    let program = directory.join("setuid");
    std::fs::copy(compiled("nothing"), &program).expect("copy");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("own file");
    refused(program.to_str().expect("a plain path"), "start_as_nobody");
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn without_a_stack_nothing_starts() {
    let fake = Fake::start();
    let domain = fake.domain();
    for (fd, expected) in [(None, "without a stack"), (Some("987"), "was closed")] {
        let mut command = domain.command(compiled("nothing"));
        match fd {
            None => command.env_remove("EFT_DOMAIN_FD"),
            Some(fd) => command.env("EFT_DOMAIN_FD", fd),
        };
        let output = command.output().expect("program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(127), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    drop(fake);
    let output = domain.command(compiled("nothing")).output().expect("program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(127), "{said}");
    assert!(said.contains("the stack is gone"), "{said}");
}

#[test]
fn the_end_of_the_stack_fails_connections_and_lets_servers_sleep() {
    let fake = Fake::start();
    let domain = fake.domain();
    let mut command = domain.command("timeout");
    command.arg("60").arg(compiled("stack")).args(["orphaned", EFT]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("program runs");
    await_ready(&mut child);
    drop(fake);
    check("orphaned", &child.wait_with_output().expect("program ends"));
}

#[test]
fn programs_that_read_resolv_conf_see_the_stacks_name_server() {
    let fake = Fake::start();
    let domain = fake.domain();
    let read = |command: &[&str]| {
        let done = domain.command(command[0]).args(&command[1..]).output().expect("it runs");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    // By open, by fopen, by number, and by a descendant.
    const OPEN: &str = "import ctypes, os; libc = ctypes.CDLL(None); name = b'/etc/resolv.conf'\n\
        print(os.read(libc.syscall(257, -100, name, 0), 99)); libc.fopen.restype = ctypes.c_void_p\n\
        line = ctypes.create_string_buffer(99); print(libc.fgets(line, 99, ctypes.c_void_p(libc.fopen(name, b'r'))) and line.value)";
    let number = if cfg!(target_arch = "x86_64") { 257 } else { 56 };
    let by_number = OPEN.replace("257", &number.to_string());
    for command in [&["cat", "/etc/resolv.conf"][..], &["sh", "-c", "cat /etc/resolv.conf"]] {
        let seen = read(command);
        assert!(seen.starts_with("nameserver 10.78.0.53\n"), "{command:?}: {seen}");
    }
    let seen = read(&["python3", "-c", &by_number]);
    assert_eq!(seen.matches("nameserver 10.78.0.53").count(), 2, "{seen}");
    assert!(read(&["cat", "/etc/nsswitch.conf"]).lines().any(|line| line == "hosts: files dns"));
    // Not for writing, and no other file.
    assert!(!read(&["sh", "-c", "exec 3<>/etc/resolv.conf; cat <&3"]).contains("10.78.0.53"));
    assert_eq!(read(&["cat", "/etc/hostname"]), std::fs::read_to_string("/etc/hostname").unwrap_or_default());
}

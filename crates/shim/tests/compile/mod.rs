//! Compiles the test programs, and runs them with a limit.
#![allow(dead_code)]

use crate::support::{Domain, Fake};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A test for each case of each program: `run(program, case)`.
#[allow(unused_macros)]
macro_rules! cases {
    ($run:ident; $($program:ident: $($case:ident)*;)*) => { cases! { @each $run $($program: [$($case)*])* } };
    (@each $run:ident $($program:ident: $cases:tt)*) => { $(cases! { @program $run $program $cases })* };
    (@program $run:ident $program:ident [$($case:ident)*]) => {
        mod $program {
            $(
                #[test]
                fn $case() {
                    super::$run(stringify!($program), stringify!($case));
                }
            )*
        }
    };
}

/// The address of the fake stack.
pub const EFT: &str = "10.78.0.2";
/// A case that takes this many seconds hangs.
const PATIENCE: &str = "60";

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles a program once, with more flags if asked; tests run in parallel.
pub fn compiled_with(name: &str, flags: &[&str]) -> PathBuf {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = directory.join(format!("{name}{}", flags.concat()));
    let from = source(&format!("{name}.c"));
    let time = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).ok();
    if time(&program) < time(&from).max(time(&source("check.h"))).max(time(&source("past.h"))) {
        // Another test program may be compiling the same.
        let mine = directory.join(format!("{name}.{}", std::process::id()));
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-D_FORTIFY_SOURCE=2", "-pthread", "-o"])
            .arg(&mine)
            .arg(&from)
            .args(flags)
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{} does not compile", from.display());
        std::fs::rename(&mine, &program).expect("target directory");
    }
    program
}

pub fn compiled(name: &str) -> PathBuf {
    compiled_with(name, &[])
}

/// As [`compiled`], but its calls are instructions of its own.
pub fn compiled_past_libc(name: &str) -> PathBuf {
    compiled_with(name, &["-DPAST_LIBC"])
}

/// Runs a program on the domain's stack, within the limit.
pub fn run_on(domain: &Domain, program: &str, arguments: &[&str]) -> Output {
    limited(domain.command("timeout"), compiled(program), arguments)
}

/// Runs a program on the kernel, within the limit.
pub fn run_on_kernel(program: &str, arguments: &[&str]) -> Output {
    limited(Command::new("timeout"), compiled(program), arguments)
}

/// Runs what `timeout` starts within the limit.
pub fn limited(mut timeout: Command, program: PathBuf, arguments: &[&str]) -> Output {
    timeout.args(["-k", "5", PATIENCE]).arg(program).args(arguments).output().expect("timeout runs")
}

pub fn check(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Everything that the programs opened is closed again.
pub fn check_closed(what: &str, fake: &Fake) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let open = fake.network().open_sockets();
        if open == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {open} sockets are left open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! The C programs of `programs/`, each case on the kernel and on eft.

mod support;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Duration;
use support::Fake;

const KERNEL: &str = "127.0.0.1";
const EFT: &str = "10.78.0.2";
/// A case that takes this long hangs.
const PATIENCE_SECONDS: u32 = 60;

/// Compiles a program once; tests run in parallel.
fn compiled(name: &str) -> PathBuf {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = directory.join(name);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let newest = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).ok();
    let header = source.with_file_name("check.h");
    if newest(&program) < newest(&source).max(newest(&header)) {
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-D_FORTIFY_SOURCE=2", "-pthread", "-o"])
            .arg(&program)
            .arg(&source)
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{} does not compile", source.display());
    }
    program
}

/// Runs a command under `timeout`, so that a hanging case fails instead of hanging the test.
fn run(command: Command) -> Output {
    let mut limited = Command::new("timeout");
    limited.args(["-k", "5", &PATIENCE_SECONDS.to_string()]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.output().expect("timeout runs")
}

fn check(what: &str, output: Output) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn on_kernel(program: &str, case: &str) {
    let mut command = Command::new(compiled(program));
    command.args([case, KERNEL]);
    check(&format!("{program} {case} on the kernel"), run(command));
}

fn on_eft(program: &str, case: &str) {
    let fake = Fake::start();
    let family = fake.family();
    let mut command = family.command("timeout");
    command.args(["-k", "5", &PATIENCE_SECONDS.to_string()]).arg(compiled(program)).args([case, EFT]);
    let output = command.output().expect("timeout runs");
    check(&format!("{program} {case} on eft"), output);
    // Everything that the programs opened is closed again.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while fake.network().open_sockets() > 0 {
        assert!(
            std::time::Instant::now() < deadline,
            "{program} {case}: {} sockets are left open",
            fake.network().open_sockets()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

macro_rules! cases {
    ($($program:ident: $($case:ident)*;)*) => {$(
        mod $program {
            $(
                #[test]
                fn $case() {
                    super::on_kernel(stringify!($program), stringify!($case));
                    super::on_eft(stringify!($program), stringify!($case));
                }
            )*
        }
    )*};
}

cases! {
    stream: large full flags ended reset timeouts interrupted names queues refused connecting
        options six;
    events: level edge edge_out oneshot nested early selecting exclusive shared_set own_signal;
    datagrams: echo messages refused many_waiters;
    processes: dups forks execs scrubbed spawns closes_all passing stdio files handlers threads
        killed by_number;
}

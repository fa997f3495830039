//! Programs that make their system calls by instructions of their own, each case on the kernel and on eft.
//!
//! The cases of the other programs hold for them, too.

#[macro_use]
mod compile;
mod support;

use compile::{EFT, check, check_closed, compiled_past_libc, compiled_with, limited};
use std::process::Command;
use support::Fake;

const KERNEL: &str = "127.0.0.1";

fn on_both(program: &str, case: &str) {
    let compiled = compiled_past_libc(program);
    let output = limited(Command::new("timeout"), compiled.clone(), &[case, KERNEL]);
    check(&format!("{program} {case} past libc on the kernel"), &output);
    let fake = Fake::start();
    let domain = fake.domain();
    let what = format!("{program} {case} past libc on eft");
    check(&what, &limited(domain.command("timeout"), compiled, &[case, EFT]));
    check_closed(&what, &fake);
}

// Where the kernel cannot hand the calls over, they are not seen.
#[cfg(target_arch = "x86_64")]
cases! { on_both;
    past: others threads children cloned masks sigsys handlers alternates interrupted refused;
    stream: large full flags ended reset timeouts interrupted names queues refused connecting
        options six vectors shut_read automatic exhausted bad_options last_number bad_addresses
        lingering splicing dissolved;
    events: level edge edge_unread edge_unread_datagram edge_unread_listener edge_out oneshot
        nested early selecting exclusive shared_set own_signal listener;
    looks: rests edges changes kernels seen others threads stolen forked sets;
    datagrams: echo messages refused many_waiters more broadcast groups mtu;
    shadows: beside together peeked either_first connected_peer loopback_peer waits domain handed six listener_of_both
        held refused;
    processes: dups forks execs spawns passing taken handlers threads killed;
}

#[cfg(target_arch = "x86_64")]
#[test]
fn in_a_library_that_is_opened_late() {
    // Beside the program, and named as it is.
    let library = compiled_with("other", &["-shared", "-fPIC"]);
    let beside = compiled_past_libc("past").with_extension("so");
    let _ = std::fs::remove_file(&beside);
    std::fs::hard_link(library, beside).expect("target directory");
    on_both("past", "library");
}

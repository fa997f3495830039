//! The C programs of `programs/`, each case on the kernel, over both IP versions, and on eft.

#[macro_use]
mod compile;
mod support;

use compile::{EFT, check, check_closed, compiled, limited, run_on_kernel};
use support::Fake;

const KERNEL: [&str; 2] = ["127.0.0.1", "::1"];

fn on_kernel(program: &str, case: &str) {
    for address in KERNEL {
        let output = run_on_kernel(program, &[case, address]);
        check(&format!("{program} {case} on the kernel, at {address}"), &output);
    }
}

fn on_both(program: &str, case: &str) {
    on_kernel(program, case);
    on_eft(program, case);
}

fn on_eft(program: &str, case: &str) {
    // Told of input by marks, and by tokens alone.
    let ways: &[&str] = if matches!(program, "events" | "looks") { &["1", "0"] } else { &["1"] };
    for look in ways {
        let fake = Fake::start();
        let domain = fake.domain();
        let what = format!("{program} {case} on eft, EFT_LOOK={look}");
        let mut timeout = domain.command("timeout");
        timeout.env("EFT_LOOK", look);
        check(&what, &limited(timeout, compiled(program), &[case, EFT]));
        check_closed(&what, &fake);
    }
}

cases! { on_both;
    stream: large full flags ended reset timeouts interrupted names queues refused connecting
        options six left vectors unspecified closed_listener
        shut_read automatic exhausted bad_options last_number bad_addresses lingering splicing dissolved;
    events: level edge edge_unread edge_unread_datagram edge_unread_listener edge_out oneshot nested early selecting exclusive exclusive_left shared_set own_signal
        own_signal_from_the_start listener;
    looks: rests order edges changes kernels seen others threads stolen forked sets;
    hangups: reset reset_unread finished by_oneself refused held waiting queue by_number shut_datagrams;
    datagrams: echo messages refused many_waiters more broadcast groups mtu errors errors_and_data error_behind_data
        error_behind_data_in_a_set;
    urgent: taken left_out waits_for_all alone in_line inherited two messages selected behind in_a_set behind_in_a_set much spliced owned asynchronous;
    waits: rest in_a_set child beside together many cancelled restarted jumps limited ended;
    shadows: beside together peeked either_first connected_peer loopback_peer waits domain handed six held refused listener_of_both crowded left;
    processes: dups forks execs scrubbed spawns closes_all passing taken stdio files handlers threads
        killed by_number standard sandboxed;
}

use super::*;

const PARALLEL: Program = Program {
    ipc: 1000,
    memory: 300,
    ipc_wander: 0,
    serial: 100,
    chunk_ms: 100,
    run_ms: 0,
    sleep_ms: 0,
    arrive_ms: 0,
};

/// Works off everything, one millisecond of each vCPU at a time.
fn finish(mut running: Running) -> (u64, Vec<u64>) {
    for now in 1..1_000_000 {
        running.wake(now);
        for vcpu in 0..running.todo_ns.len() {
            if running.has_work(vcpu) {
                running.work(vcpu, 1_000_000, now);
            }
        }
        if let Some(at) = running.finished_at {
            return (at, running.done_ns);
        }
    }
    panic!("never finished");
}

#[test]
fn a_barrier_waits_for_the_slowest_and_one_thread_does_the_serial_part() {
    let running = Running::start(PARALLEL, 4, 3, 2375, 1);
    let chunks = running.chunks_left;
    let (at, done) = finish(running);
    assert_eq!(done[1], chunks * 100_000_000);
    assert_eq!(done[0], chunks * 140_000_000, "10% of 400 ms are serial");
    assert!(at.abs_diff(chunks * 140) <= 2 * chunks, "{at}");
}

#[test]
fn open_arrivals_are_made_up_for_and_closed_ones_are_not() {
    // The core is unavailable for the second half of each 40 ms.
    let served = |program: Program| {
        let mut running = Running::start(program, 1, 3, 2375, 1);
        for now in 1..20_000 {
            running.wake(now);
            if now % 40 < 20 && running.has_work(0) {
                running.work(0, 1_000_000, now);
            }
        }
        running.done_ns[0] / 1_000_000
    };
    let closed = Program { serial: 0, chunk_ms: 0, run_ms: 2, sleep_ms: 8, ..PARALLEL };
    let open = Program { arrive_ms: 10, ..closed };
    assert!(served(open) > 3600, "a fifth of 20 s: {}", served(open));
    assert!(served(closed) < 3000, "{}", served(closed));
    let too_much = Program { arrive_ms: 2, ..closed };
    assert!(served(too_much) <= 10_000, "no more than the core does");
}

#[test]
fn a_pool_is_shared_and_ends() {
    let pool = Program { run_ms: 10, sleep_ms: 2, ..PARALLEL };
    let (_, done) = finish(Running::start(pool, 4, 3, 2375, 1));
    assert!(done.iter().all(|ns| *ns > 0));
}

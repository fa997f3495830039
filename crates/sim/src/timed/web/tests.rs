use super::*;
use crate::batch::servers::Server;
use crate::hardware::Work;
use crate::web::Group;
use crate::web::calibrated::Stack;
use crate::web::run::tests::{FULL, of, setting};
use eft_messages::ComponentId;

const SHORT: Span = Span { warm_up_ms: 5, measured_ms: 20 };

fn run(web: &Web, mhz: [u64; 4], seed: u64) -> Outcome {
    run_for(web, &setting(mhz), seed, SHORT)
}

/// Everything until this time.
fn ran(web: &Web, until_ms: u64) -> World<'_> {
    let mut world = world(web, &setting(FULL), 1);
    advance(&mut world, until_ms * PS_PER_MS);
    world
}

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    for stack in [Stack::Newtos, Stack::Eft] {
        let web = of(stack, 8, 100_000);
        assert_eq!(run(&web, FULL, 1), run(&web, FULL, 1));
        assert_ne!(run(&web, FULL, 1), run(&web, FULL, 2));
    }
}

#[test]
fn answers_connections_and_bytes_are_those_that_the_program_gave() {
    for (stack, file) in
        [(Stack::Newtos, 10), (Stack::Eft, 10), (Stack::Newtos, 100_000), (Stack::Eft, 1_000_000)]
    {
        let web = of(stack, 4, file);
        let world = ran(&web, 40);
        let (clients, program) = (&world.rest.load.clients, &world.rest.load.program);
        assert_eq!(clients.failures, 0, "{stack:?} {file}");
        assert!(clients.answers > 4, "{stack:?} {file}: {} answers", clients.answers);
        // Each client has one connection, and one answer of it at most is on its way.
        let near = |more: u64, less: u64| (less..=less + 4).contains(&more);
        assert!(near(program.requests, clients.answers));
        assert!(near(program.accepted, program.closed), "{} {}", program.accepted, program.closed);
        assert!(near(program.closed, clients.connections));
        assert!(near(clients.connections * web.groups[0].requests + clients.asked(), clients.answers));
        let on_the_way = program.written_bytes - clients.bytes[0];
        assert!(on_the_way <= 4 * web.groups[0].answer_bytes, "{on_the_way}");
        let unread = clients.bytes[0] - clients.answers * web.groups[0].answer_bytes;
        assert!(unread < 4 * web.groups[0].answer_bytes, "{unread}");
        let stack = &world.rest.servers.stack;
        for counter in ["retransmitted_segments", "duplicate_segments", "resets_sent", "drop_no_socket"] {
            assert_eq!(stack.counter(ComponentId::TCP, counter), 0, "{counter}");
        }
    }
}

/// Small, larger and endless files at once.
fn mixed() -> Web {
    let group = |clients, requests, answer_bytes| Group { clients, requests, answer_bytes };
    let mut web = of(Stack::Eft, 8, 0);
    web.groups = vec![group(4, 10, 300), group(3, 2, 50_000), group(1, 1000, 10_000_000)];
    web
}

#[test]
fn clients_of_a_mix_are_answered_as_their_group_asks() {
    let web = mixed();
    let groups: Vec<usize> = (0..9).map(|client| web.group_of(client)).collect();
    assert_eq!(groups, [0, 0, 0, 0, 1, 1, 1, 2, 2]);
    let world = ran(&web, 60);
    let (clients, program) = (&world.rest.load.clients, &world.rest.load.program);
    assert_eq!(clients.failures, 0);
    assert!(clients.bytes.iter().all(|bytes| *bytes > 50_000), "{:?}", clients.bytes);
    let counted: u64 = clients.bytes.iter().zip(&web.groups).map(|(b, group)| b / group.answer_bytes).sum();
    assert!(clients.answers.abs_diff(counted) <= 3, "{} {counted}", clients.answers);
    // No client of the last group has asked often enough to close.
    let closed = clients.bytes[0] / 300 / 10 + clients.bytes[1] / 50_000 / 2;
    assert!(clients.connections.abs_diff(closed) <= 8, "{} {closed}", clients.connections);
    assert!(program.written_bytes >= clients.bytes.iter().sum());
}

#[test]
fn the_tiers_agree_on_what_each_group_of_a_mix_gets() {
    let web = crate::timed::check::web_as_engines(&mixed());
    let span = Span { warm_up_ms: 20, measured_ms: 200 };
    for mhz in [FULL, [2267, 800, 400, 400]] {
        let engines = run_for(&web, &setting(mhz), 1, span);
        let batches = crate::web::run::run_for(&web, &setting(mhz), 1, span);
        let is_near = |one: u64, other: u64, percent: u64| one.abs_diff(other) * 100 <= one * percent;
        assert!(is_near(engines.stack.kbps, batches.stack.kbps, 5), "{mhz:?}: {engines:?} {batches:?}");
        // What small files get beside an endless one, they get between its segments: the second tier is less exact about that.
        for (one, other) in engines.groups.iter().zip(&batches.groups) {
            assert!(is_near(one.kbps, other.kbps, 25), "{mhz:?}: {engines:?} {batches:?}");
        }
    }
}

#[test]
fn connections_really_open_and_close_and_the_clients_remember_their_ends() {
    let web = of(Stack::Eft, 8, 10);
    let world = ran(&web, 60);
    let tcp = |name| world.rest.servers.stack.counter(ComponentId::TCP, name);
    let program = &world.rest.load.program;
    // One more has shown the way.
    assert_eq!(tcp("accepted_connections"), program.accepted + 1);
    assert!(program.closed > 8, "{}", program.closed);
    assert!(tcp("closed_connections").abs_diff(program.closed) <= 8);
    assert!(
        tcp("blocks") < 32,
        "a connection whose client has closed first leaves nothing behind: {}",
        tcp("blocks")
    );
}

#[test]
fn the_slowest_program_is_the_bottleneck_and_what_is_dear_is_felt() {
    let web = of(Stack::Newtos, 32, 10);
    let run_long = |mhz| run_for(&web, &setting(mhz), 1, Span { warm_up_ms: 20, measured_ms: 150 });
    let slow = run_long([200, 2267, 2267, 2267]);
    assert!(slow.stack.busy_ppm[Server::Front as usize] > 990_000, "{slow:?}");
    let faster = run_long([400, 2267, 2267, 2267]);
    let ratio = faster.answers_milli as f64 / slow.answers_milli as f64;
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    let mut dear = web.clone();
    dear.handshake.cycles *= 200;
    let dear = run(&dear, FULL, 1);
    assert!(dear.answers_milli * 10 < run(&web, FULL, 1).answers_milli * 9, "handshakes are charged");
}

#[test]
fn more_clients_bring_more_until_something_is_always_busy() {
    let rate = |clients| run(&of(Stack::Newtos, clients, 10), FULL, 1);
    let (one, four, many) = (rate(1), rate(4), rate(128));
    assert!(four.answers_milli > 3 * one.answers_milli, "{one:?} {four:?}");
    assert!(many.stack.busy_ppm.iter().any(|busy| *busy > 950_000), "{many:?}");
}

#[test]
fn tcp_pays_for_the_ends_of_a_connection_that_come_and_for_the_close() {
    let span = Span { warm_up_ms: 5, measured_ms: 200 };
    let cycles = 100_000;
    let tcp_ns_of_connection = |handshake: u64| {
        let mut web = of(Stack::Newtos, 1, 10);
        web.handshake = Work::cycles(handshake);
        let outcome = run_for(&web, &setting(FULL), 1, span);
        outcome.stack.busy_ppm[Server::Tcp as usize] * span.measured_ms / outcome.connections
    };
    let more_ns = tcp_ns_of_connection(cycles) - tcp_ns_of_connection(0);
    let of_one = cycles * 1_000_000 / 2_267_000;
    // A SYN, a FIN, and a page that closes.
    assert!((28..32).contains(&(more_ns * 10 / of_one)), "{more_ns} of {of_one} ns");
}

/// Where tcp is the bottleneck, its queue to ip is always full. Nobody loses anything, so windows are open and files as large as that
/// would go as a whole before anybody else's turn came.
#[test]
fn small_answers_do_not_wait_for_whole_files_of_others() {
    let group = |clients, requests, answer_bytes| Group { clients, requests, answer_bytes };
    let mut web = of(Stack::Eft, 16, 0);
    web.groups = vec![group(8, 100, 8_000), group(8, 100, 4_000_000)];
    let mut web = crate::timed::check::web_as_engines(&web);
    web.stack.segment_bytes = web.stack.maximum_segment;
    let world = ran(&web, 400);
    let clients = &world.rest.load.clients;
    let small = clients.bytes[0] / 8_000;
    assert!(clients.bytes[1] > 100_000_000, "{:?}", clients.bytes);
    // Of all clients' segments that go in turn these have 6 of an answer, and there are some 400 in a millisecond.
    assert!(small > 8 * 400 / 10, "an answer every {} ms for each of 8 clients", 8 * 400 / small.max(1));
}

use eft_base::ports::connection_owner;

use super::*;
use crate::timed::scaling::load::REQUEST_BYTES;

const SPAN: Span = Span { warm_up_ms: 1, measured_ms: 5 };
/// Gb/s that no stack here comes near to, in Mb/s, and the driver's frames.
const LINK: (u64, usize) = (400_000, 1024);

fn experiment() -> Experiment {
    Experiment::new(&Calibration::e5520().unwrap(), LINK, SPAN).unwrap()
}

fn run(instances: usize, load: Load, has_offload: bool) -> Outcome {
    experiment().run(Point { instances, load, has_offload }, 1)
}

fn ratio(outcome: &Outcome, one: &Outcome) -> f64 {
    outcome.kbps as f64 / one.kbps as f64
}

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    for load in [Load::Out, Load::In, Load::Requests] {
        let point = Point { instances: 4, load, has_offload: false };
        let of = |seed| experiment().run(point, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

#[test]
fn where_tcp_is_the_bottleneck_two_and_four_carry_more_by_as_much() {
    let one = run(1, Load::In, true);
    assert_eq!(one.bottlenecks(), ["tcp"], "{one:?}");
    for instances in [2, 4] {
        let more = run(instances, Load::In, true);
        assert_eq!(more.bottlenecks(), ["tcp"], "{more:?}");
        let (ratio, due) = (ratio(&more, &one), instances as f64);
        assert!((due * 0.85..due * 1.1).contains(&ratio), "{instances}: {ratio}");
    }
}

#[test]
fn the_growth_ends_where_ip_is_always_busy() {
    let (one, two, four) =
        (run(1, Load::Requests, true), run(2, Load::Requests, true), run(4, Load::Requests, true));
    assert_eq!((one.bottlenecks(), two.bottlenecks()), (vec!["tcp"], vec!["tcp"]), "{one:?} {two:?}");
    assert!((1.8..2.1).contains(&ratio(&two, &one)), "{one:?} {two:?}");
    assert_eq!(four.bottlenecks(), ["ip"], "{four:?}");
    // An ip that is always busy saves sleeps and wakes.
    let share = one.ip_ppm as f64 / 1e6;
    assert!((2.2..1.25 / share).contains(&ratio(&four, &one)), "ip alone could do {}: {four:?}", 1.0 / share);
    assert!(four.answers > 200_000, "{four:?}");
}

#[test]
fn connections_of_one_port_are_where_their_peers_say() {
    for load in [Load::Out, Load::Requests] {
        let point = Point { instances: 8, load, has_offload: true };
        let outcome = experiment().run(point, 1);
        let simulation = experiment().connected(&experiment().profile(point), point, 1);
        let mut due = vec![0; 8];
        for socket in open(&simulation, SERVER) {
            let page = simulation.stacks[SERVER].domain.socket(socket.slot).unwrap();
            let (local, remote) = (page.local(), page.remote());
            assert_eq!(local.port, PORT);
            due[usize::from(connection_owner(PORT, (remote.address.into(), remote.port), 8))] += 1;
        }
        assert_eq!(outcome.connections, due);
        let fair = load.connections() as u64 / 8;
        assert!(due.iter().all(|count| count.abs_diff(fair) <= fair / 2), "{due:?}");
        assert!(outcome.tcp_ppm.iter().all(|ppm| *ppm > 0));
    }
}

#[test]
fn each_answer_is_to_a_request_and_nothing_is_lost() {
    let experiment = experiment();
    let point = Point { instances: 2, load: Load::Requests, has_offload: true };
    let profile = experiment.profile(point);
    let mut world = experiment.world(&profile, point, 1);
    let end = advance(&mut world, point, 20 * PS_PER_MS);
    let asked = world.rest.load.programs.read_bytes / REQUEST_BYTES;
    let open = profile.streams as u64;
    assert!(end.answers > 10 * open, "{}", end.answers);
    assert!((end.answers..=end.answers + open).contains(&asked), "{asked} {}", end.answers);
    assert_eq!(sent_again(&world), 0);
}

#[test]
fn what_is_dear_is_felt() {
    let point = |load| Point { instances: 1, load, has_offload: false };
    let base = experiment();
    let mut dear_data = base.clone();
    dear_data.segments.data.cycles *= 10;
    let mut dear_answers = base.clone();
    dear_answers.segments.empty.cycles *= 1000;
    for (dear, load) in [(&dear_data, Load::In), (&dear_answers, Load::In), (&dear_data, Load::Requests)] {
        let (dear, usual) = (dear.run(point(load), 1), base.run(point(load), 1));
        assert!(dear.kbps * 10 < usual.kbps * 8, "{dear:?} {usual:?}");
    }
    let out = |experiment: &Experiment| experiment.run(point(Load::Out), 1).kbps;
    assert_eq!(out(&dear_data), out(&base), "nothing comes in but acknowledgements");
}

#[test]
fn a_link_that_is_too_slow_is_named() {
    let slow = Experiment::new(&Calibration::e5520().unwrap(), (2_000, LINK.1), SPAN).unwrap();
    for (load, has_offload) in [(Load::Out, false), (Load::Out, true), (Load::In, true)] {
        let outcome = slow.run(Point { instances: 2, load, has_offload }, 1);
        assert_eq!(outcome.bottlenecks(), ["link"], "{outcome:?}");
        assert!((1_700_000..2_000_000).contains(&outcome.kbps), "{outcome:?}");
    }
}

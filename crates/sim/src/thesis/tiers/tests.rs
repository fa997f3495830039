use super::*;
use crate::batch::run::{Outcome, Span};
use crate::batch::servers::Server;
use crate::timed::check::{self, Point, point_of};
use crate::timed::run;

/// A seed whose point has several servers on tcp's core.
const ON_ONE_CORE: u64 = 2;

const SHORT: Span = Span { warm_up_ms: 2, measured_ms: 5 };

/// The first point on this machine, as the engines run it.
fn first_on(machine: &str, system: &str) -> (Case, Outcome) {
    let calibration = Calibration::e5520().unwrap();
    let case = (0..).map(|seed| case(&calibration, system, seed).unwrap()).find(|c| c.machine == machine);
    let case = case.unwrap();
    let outcome = run(&case.profile, &case.setting, 1, SHORT);
    (case, outcome)
}

fn filter(outcome: &Outcome) -> (u64, u64) {
    let filter = Server::Filter as usize;
    (outcome.messages_per_ms[filter], outcome.busy_ppm[filter])
}

#[test]
fn the_real_ip_asks_the_real_filter_about_each_packet_unless_it_grants() {
    let (_, newtos) = first_on("xeon", "newtos");
    let packets =
        newtos.kbps / 8 / newtos.bytes_per_segment + newtos.kbps / 8 / newtos.bytes_per_acknowledgement;
    let (questions, busy) = filter(&newtos);
    assert!(questions.abs_diff(packets) * 10 < packets && busy > 0, "{questions} of {packets}: {newtos:?}");
    let (_, eft) = first_on("xeon", "eft");
    assert!(eft.kbps > 1_000_000 && filter(&eft) == (0, 0), "{eft:?}");
    let (_, opteron) = first_on("opteron", "newtos");
    assert!(opteron.kbps > 100_000 && filter(&opteron) == (0, 0), "{opteron:?}");
}

#[test]
fn questions_and_verdicts_are_charged_to_those_who_take_them() {
    let (mut case, before) = first_on("xeon", "newtos");
    let dear = case.profile.filter.as_mut().unwrap();
    dear.question.cycles *= 20;
    let after = run(&case.profile, &case.setting, 1, SHORT);
    assert!(after.kbps * 2 < before.kbps && filter(&after).1 > 990_000, "{before:?} {after:?}");
    let (mut case, _) = first_on("xeon", "newtos");
    case.profile.filter.as_mut().unwrap().verdict.cycles *= 20;
    let after = run(&case.profile, &case.setting, 1, SHORT);
    assert!(after.kbps * 2 < before.kbps && after.busy_ppm[Server::Ip as usize] > 990_000, "{after:?}");
}

#[test]
fn points_are_of_both_machines_and_some_have_threads() {
    let calibration = Calibration::e5520().unwrap();
    let all: Vec<Case> = (0..40).map(|seed| case(&calibration, "newtos", seed).unwrap()).collect();
    let count = |of: &dyn Fn(&Case) -> bool| all.iter().filter(|case| of(case)).count();
    let on_xeon = count(&|case| case.machine == "xeon" && case.profile.questions().is_some());
    let on_opteron = count(&|case| case.machine == "opteron" && case.profile.filter.is_none());
    assert_eq!(on_xeon + on_opteron, 40);
    assert!(on_xeon.abs_diff(on_opteron) < 20);
    let on_threads = count(&|case| case.setting.seats.iter().any(|seat| seat.thread > 0));
    assert!((1..on_xeon / 2).contains(&on_threads));
    let on_shared_cores = count(&|case| case.setting.shares_cores());
    assert!((1..on_opteron / 2).contains(&on_shared_cores));
}

#[test]
fn the_tiers_agree_on_both_machines() {
    let calibration = Calibration::e5520().unwrap();
    let span = Span { warm_up_ms: 20, measured_ms: 80 };
    let point = |seed| point_of(case(&calibration, "newtos", seed).unwrap(), seed, span);
    let mut all: Vec<Point> = [1, 5, 8].map(point).into();
    // Servers of one core change every 30 ms or so.
    all.push(check::point(case(&calibration, "newtos", ON_ONE_CORE).unwrap(), ON_ONE_CORE));
    assert!(all[3].setting.shares_cores());
    assert!(["xeon", "opteron"].iter().all(|machine| all.iter().any(|point| point.machine == *machine)));
    assert!(all.iter().all(Point::agrees), "{all:?}");
}

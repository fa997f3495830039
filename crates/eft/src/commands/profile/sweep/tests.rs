use super::*;
use eft_machine::CpuId;
use eft_machine::Share;

fn point(throughput: f64, reported: Option<f64>, size: f64) -> Point {
    let seen =
        Seen { throughput: Throughput(throughput), mix: Mix { size, ..Mix::default() }, ..Seen::default() };
    let plan = Plan { speeds: [(CpuId(0), Share(throughput / 100.0))].into(), ..Plan::default() };
    Point { plan, seen, reported: Reported { throughput: reported.map(Throughput), latency: None } }
}

#[test]
fn a_burst_in_one_round_does_not_decide() {
    let first = [point(40.0, Some(4.0), 0.1), point(60.0, Some(6.0), 0.1)];
    let mut points = Vec::new();
    for factor in [1.0, 0.1, 1.1] {
        points.extend(first.iter().cloned().map(|mut point| {
            point.seen.throughput *= factor;
            point.reported.throughput = point.reported.throughput.map(|reported| reported * factor);
            point
        }));
    }
    let merged = medians(&points);
    let of = |of: fn(&Point) -> f64| merged.iter().map(of).collect::<Vec<_>>();
    assert_eq!(of(|p| p.seen.throughput.0), [40.0, 60.0]);
    assert_eq!(of(|p| p.reported.throughput.unwrap().0), [4.0, 6.0]);
    points[0].reported.throughput = None;
    assert_eq!(medians(&points)[0].reported.throughput, None);
}

#[test]
fn what_the_load_tells_decides_in_units_of_what_was_delivered() {
    let recorded = |points: &[Point]| {
        let mut profiles = Profiles::default();
        record(&mut profiles, "a", points);
        let load = profiles.loads[0].clone();
        (load.mix.size, load.outcomes.iter().map(|o| o.throughput.0).collect::<Vec<_>>())
    };
    assert_eq!(recorded(&[point(40.0, None, 0.2), point(60.0, None, 0.4)]).1, [40.0, 60.0]);
    let (size, reported) = recorded(&[point(40.0, Some(7.0), 0.2), point(60.0, Some(3.0), 0.4)]);
    assert_eq!(reported, [70.0, 30.0]);
    assert!((size - 0.3).abs() < 1e-9);
    // If one configuration reports no throughput, those of the others cannot be used.
    assert_eq!(recorded(&[point(40.0, Some(7.0), 0.2), point(60.0, None, 0.4)]).1, [40.0, 60.0]);
}

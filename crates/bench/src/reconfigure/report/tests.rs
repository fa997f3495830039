use super::*;

fn measured(way: Way, threads: usize) -> Row {
    let mut row = Row::new(threads, way, Which::One);
    row.leave.call_us.push(100.0);
    row.back.call_us.push(50.0);
    row
}

#[test]
fn an_aim_that_the_time_did_not_suffice_for_is_named() {
    let ways = [Way::Native, Way::Expedited, Way::Park];
    let all: Vec<Row> = ways.iter().flat_map(|way| [measured(*way, 0), measured(*way, 200)]).collect();
    assert_eq!(unmeasured(&all, &ways, &[0, 200]), Vec::<String>::new());
    // The second load never began.
    let missing = unmeasured(&all[..], &ways, &[0, 200, 1000]);
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(missing.iter().all(|aim| aim.ends_with("1000 threads")), "{missing:?}");
    // Without a baseline there is no ratio, and a round that only took CPUs away does not count.
    let mut rows = vec![measured(Way::Park, 200), Row::new(200, Way::Native, Which::One)];
    rows[1].leave.call_us.push(9.0);
    let missing = unmeasured(&rows, &[Way::Native, Way::Park], &[200]);
    assert_eq!(missing, ["native hotplug beside park, leave, 200 threads"]);
}

#[test]
fn ways_without_a_baseline_and_loads_without_an_aim_miss_none() {
    assert_eq!(unmeasured(&[], &[Way::Park], &[200]), Vec::<String>::new());
    assert_eq!(unmeasured(&[], &[Way::Native, Way::ParkLazy], &[200]), Vec::<String>::new());
    assert_eq!(unmeasured(&[], &[Way::Native, Way::Park], &[50]), Vec::<String>::new());
}

use super::*;
use crate::sensors::tasks;

#[test]
fn a_core_of_emulated_speed_is_occupied_while_it_is_taken_away() {
    let tree = Tree::live();
    let me = tasks::myself(&tree);
    let mut sensor = Sensor::new(&tree, me.tid, me, None);
    let seen = |sensor: &Sensor| (nanos(sensor.ran), nanos(sensor.waited));
    sensor.add_times(RunTimes::from_nanos(1_000, 500));
    assert_eq!(seen(&sensor), (1_000, 500));
    sensor.stretch = Ppm::ALL * 4;
    sensor.add_times(RunTimes::from_nanos(2_000, 4_000));
    assert_eq!(seen(&sensor), (5_000, 1_000), "3000 of 3500 ns were the core's own pauses");
}

#[test]
fn run_time_is_read_and_an_ended_thread_is_noticed() {
    assert_eq!(parse(b"64323853 122368241 28\n"), Some(RunTimes::from_nanos(64323853, 122368241)));
    for bad in
        [&b""[..], b"12", b"12 ", b" 12 7", b"12 x 1", b"-1 5 6", b"12 99999999999999999999 1", b"\xff 1 1"]
    {
        assert_eq!(parse(bad), None, "{bad:?}");
    }
    let tree = Tree::live();
    let me = tasks::myself(&tree);
    let mut sensor = Sensor::new(&tree, me.tid, me, None);
    sensor.sample();
    assert!(!sensor.has_ended);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    let mut sensor = Sensor::new(&tree, pid, TaskId { tid: pid, started: 0 }, None);
    child.wait().unwrap();
    sensor.sample();
    assert!(sensor.has_ended);
}

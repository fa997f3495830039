use super::*;

fn names() -> Vec<String> {
    ["sockets", "tcp", "udp", "ip", "filter", "nic0"].map(String::from).to_vec()
}

#[test]
fn every_seating_is_there_once() {
    let all = seatings(&names(), &[CpuId(0), CpuId(1)]);
    assert_eq!(all.len(), 32);
    for (i, plan) in all.iter().enumerate() {
        assert_eq!(plan.seats.len(), 6);
        assert_eq!(plan.seats["udp"].cpu, plan.seats["ip"].cpu);
        assert!(all[..i].iter().all(|other| !other.is_same(plan)));
    }
    assert!(all[0].is_consolidated() && all[0].given_back.contains(CpuId(1)));
}

#[test]
fn every_speed_of_every_used_cpu_is_tried() {
    let all = seatings(&names(), &[CpuId(0), CpuId(1)]);
    let levels = [0.25, 0.5, 1.0].map(Share);
    assert_eq!(at_speeds(&all[0], &levels).len(), 3);
    let spread = all.iter().find(|plan| !plan.is_consolidated()).unwrap();
    assert_eq!(at_speeds(spread, &levels).len(), 9);
}

#[test]
fn trivial_ways_use_one_cpu_or_all() {
    let all = trivial(&names(), &[CpuId(0), CpuId(1)]);
    let used: Vec<usize> = all.iter().map(|(_, plan)| plan.used().len()).collect();
    assert_eq!(used, [1, 1, 2]);
}

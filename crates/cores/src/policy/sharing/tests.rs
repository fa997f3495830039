use super::*;
use crate::plan::Seat;
use eft_machine::CpuId;

fn plan(seats: &[(&str, u32)]) -> Plan {
    let seat = |cpu: u32| Seat { cpu: CpuId(cpu), dedicated: false };
    Plan { seats: seats.iter().map(|(name, cpu)| ((*name).into(), seat(*cpu))).collect(), ..Plan::default() }
}

fn work(of: &[(&str, f64)]) -> Demand {
    of.iter().map(|(name, work)| ((*name).into(), *work)).collect()
}

#[test]
fn who_joins_others_takes_the_least_work_per_byte_that_was_seen_of_it_beside_them() {
    let (together, apart) = (plan(&[("tcp", 1), ("ip", 1)]), plan(&[("tcp", 1), ("ip", 2)]));
    let mut sharing = Sharing::default();
    sharing.note(&together, &work(&[("tcp", 0.5), ("ip", 0.5)]), Throughput(1000.0));
    sharing.note(&together, &work(&[("tcp", 0.6), ("ip", 0.4)]), Throughput(2000.0));
    let seen = work(&[("tcp", 0.4), ("ip", 0.9)]);
    let beside = sharing.work(Throughput(3000.0));
    let carried = carried_over(&seen, &beside, &apart, &together);
    assert!((carried["tcp"] - 0.9).abs() < 1e-9, "0.6 at two thirds of the throughput: {carried:?}");
    assert_eq!(carried["ip"], 0.9, "no less than seen");
    assert_eq!(carried_over(&seen, &beside, &apart, &apart), seen);
    assert_eq!(carried_over(&seen, &beside, &together, &together), seen, "seen so already");
    sharing.forget();
    assert_eq!(carried_over(&seen, &sharing.work(Throughput(3000.0)), &apart, &together), seen);
}

#[test]
fn what_was_seen_at_the_fastest_clock_counts() {
    let mut sharing = Sharing::default();
    let mut at = |speed: f64, tcp: f64| {
        let mut plan = plan(&[("tcp", 1), ("ip", 1)]);
        plan.speeds.insert(CpuId(1), Share(speed));
        sharing.note(&plan, &work(&[("tcp", tcp), ("ip", 0.1)]), Throughput(1000.0));
        sharing.work(Throughput(1000.0))["tcp"]
    };
    assert_eq!(
        [at(0.3, 0.2), at(0.6, 0.4), at(0.3, 0.1), at(0.6, 0.3), at(0.6, 0.5)],
        [0.2, 0.4, 0.4, 0.3, 0.3]
    );
}

#[test]
fn nothing_is_learnt_of_who_is_alone_beside_idle_ones_or_without_traffic() {
    let together = plan(&[("tcp", 1), ("udp", 1), ("ip", 2)]);
    let mut sharing = Sharing::default();
    sharing.note(&together, &work(&[("tcp", 0.5), ("udp", 0.0), ("ip", 0.5)]), Throughput(1000.0));
    sharing.note(&together, &work(&[("tcp", 0.5), ("udp", 0.5), ("ip", 0.5)]), Throughput::NONE);
    assert!(sharing.work(Throughput(1000.0)).is_empty());
}

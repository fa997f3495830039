//! The ladder on machines of many shapes.

use eft_machine::{Cache, Cpu, CpuId, Frequency, KiloHertz, Machine};

use super::*;
use crate::plan::{Change, changes, check};
use crate::throughput::ByteRate;

pub const STACK: [&str; 6] = ["sockets", "tcp", "udp", "ip", "filter", "nic0"];

fn names() -> Vec<String> {
    STACK.iter().map(|name| String::from(*name)).collect()
}

struct Kind {
    cpus: u32,
    threads: u32,
    packages: u32,
    little: u32,
    boost: bool,
}

const PLAIN: Kind = Kind { cpus: 4, threads: 1, packages: 1, little: 0, boost: false };

fn machine(kind: &Kind, managed: &str) -> Machine {
    let per_package = kind.cpus / kind.packages;
    let cpu = |number: u32| {
        let core = number / kind.threads;
        let package = number / per_package;
        let little = number < kind.little;
        let class = match kind.little {
            0 => CoreClass::Equal,
            _ if little => CoreClass::Little,
            _ => CoreClass::Big,
        };
        Cpu {
            cpu: CpuId(number),
            online: true,
            package: Some(package),
            core: Some(core),
            siblings: (core * kind.threads..(core + 1) * kind.threads).map(CpuId).collect(),
            last_level_cache: Some(Cache {
                level: 3,
                size_kib: None,
                shared: (package * per_package..(package + 1) * per_package).map(CpuId).collect(),
            }),
            class,
            capacity: (kind.little > 0).then_some(if little { 400 } else { 1000 }),
            frequency: Some(Frequency { boost: Some(kind.boost), ..Frequency::default() }),
            ..Cpu::default()
        }
    };
    Machine {
        online: (0..kind.cpus).map(CpuId).collect(),
        managed: managed.parse().unwrap(),
        cpus: (0..kind.cpus).map(cpu).collect(),
        ..Machine::default()
    }
}

fn ladder(kind: &Kind, managed: &str, levels: &[f64], aims: &Aims) -> (Platform, Ladder) {
    let platform = Platform::new(
        machine(kind, managed),
        &names(),
        Some(&levels.iter().copied().map(Share).collect::<Vec<_>>()),
    )
    .unwrap();
    let ladder = Ladder::build(&platform, aims);
    (platform, ladder)
}

#[test]
fn every_rung_passes_the_check_and_does_more_than_the_one_below() {
    for cpus in [1, 2, 4, 8, 16] {
        for threads in [1, 2] {
            for packages in [1, 2] {
                for little in [0, cpus / 2] {
                    for spare in [Spare::GiveBack, Spare::Park] {
                        for levels in [&[][..], &[0.25, 0.5, 0.75]] {
                            // Threads of one core are of one class.
                            if cpus < threads * packages || little % threads != 0 {
                                continue;
                            }
                            let kind = Kind { cpus, threads, packages, little, boost: packages == 2 };
                            let managed = format!("0-{}", cpus - 1);
                            let (platform, ladder) =
                                ladder(&kind, &managed, levels, &Aims { spare, ..Aims::default() });
                            for rung in ladder.rungs() {
                                check(&rung.plan, platform.machine()).unwrap();
                                assert_eq!(rung.plan.seats.len(), STACK.len());
                            }
                            assert!(ladder.rungs().is_sorted_by(|low, high| low.capacity < high.capacity));
                            assert!(ladder.rung(0).plan.is_consolidated());
                            let top = &ladder.rung(ladder.top()).plan;
                            assert!(
                                cpus == 1 || !top.is_consolidated(),
                                "{cpus} {threads} {packages} {little}: {top}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_order_is_the_thesis_s() {
    let kind = Kind { cpus: 8, little: 4, ..PLAIN };
    let (_, ladder) = ladder(&kind, "0-7", &[0.5], &Aims::default());
    let names: Vec<&str> = ladder.rungs().iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(names[..3], ["1 little core at 0.50", "1 little core at 1.00", "2 little cores at 1.00"]);
    let first_big = names.iter().position(|name| name.contains("big")).unwrap();
    assert!(names[..first_big].iter().all(|name| name.contains("little")), "{names:?}");
    assert!(names.last().unwrap().contains("big cores"), "{names:?}");
}

#[test]
fn without_speeds_the_rungs_differ_by_placement() {
    let (_, ladder) = ladder(&PLAIN, "1-3", &[], &Aims::default());
    let rungs = ladder.rungs();
    assert_eq!(rungs.len(), 3);
    assert!(rungs.windows(2).all(|pair| !pair[0].plan.same_seats(&pair[1].plan)));
}

#[test]
fn without_a_managed_cpu_the_stack_shares_the_base_cpu() {
    let (platform, ladder) = ladder(&PLAIN, "", &[0.5], &Aims::default());
    assert_eq!(ladder.rungs().len(), 1);
    check(&ladder.rung(0).plan, platform.machine()).unwrap();
    assert_eq!(ladder.rung(0).plan.used().to_string(), "0");
}

#[test]
fn own_cores_come_before_hardware_threads() {
    let kind = Kind { cpus: 4, threads: 2, ..PLAIN };
    let (platform, ladder) = ladder(&kind, "0-3", &[], &Aims::default());
    let first_spread = ladder.rungs().iter().find(|rung| !rung.plan.is_consolidated()).unwrap();
    assert!(
        first_spread.plan.used().iter().all(|cpu| platform.is_first_thread(cpu)),
        "{}",
        first_spread.plan
    );
    let top = &ladder.rung(ladder.top()).plan;
    assert!(top.used().len() > 2, "{top}");
    let tcp = top.seats["tcp"].cpu;
    let sibling = platform.siblings(tcp).minus(&CpuSet::one(tcp)).first().unwrap();
    let busiest_neighbour = top.on(sibling).map(usual_demand).fold(0.0, f64::max);
    assert!(busiest_neighbour < usual_demand("ip"), "the busiest shares with the least busy: {top}");
}

#[test]
fn those_share_a_core_that_are_busy_at_different_times() {
    let kind = Kind { cpus: 4, threads: 2, ..PLAIN };
    let platform = Platform::new(machine(&kind, "0-3"), &names(), None).unwrap();
    let demand: Demand = [("nic0", 0.2), ("ip", 0.22), ("udp", 0.28), ("tcp", 0.3)]
        .map(|(name, work)| (name.into(), work))
        .into();
    let neighbour = |overlaps: &Overlaps| {
        let plan = placement::spread(&platform, &demand, overlaps, &[CpuId(0), CpuId(2), CpuId(1), CpuId(3)]);
        assert_eq!(plan.used().len(), 4, "{plan}");
        let tcp = plan.seats["tcp"].cpu;
        let sibling = platform.siblings(tcp).minus(&CpuSet::one(tcp)).first().unwrap();
        plan.on(sibling).map(String::from).collect::<Vec<_>>()
    };
    // Before anything was seen, the busiest shares with the least busy.
    assert_eq!(neighbour(&Overlaps::default()), ["nic0"]);
    let (streams, datagrams): (&[_], &[_]) = (
        &[("nic0", 0.5), ("ip", 0.5), ("tcp", 0.9), ("udp", 0.0)],
        &[("nic0", 0.5), ("ip", 0.5), ("tcp", 0.0), ("udp", 0.9)],
    );
    let in_turn = crate::overlap::tests::seen(platform.components(), &[streams, datagrams]);
    assert!(neighbour(&in_turn).contains(&"udp".into()));
    let together = crate::overlap::tests::seen(platform.components(), &[&[("tcp", 0.9), ("nic0", 0.9)]]);
    assert!(!neighbour(&together).contains(&"nic0".into()));
}

#[test]
fn unequal_cores_share_their_threads_by_overlap_too_and_keep_their_class() {
    // Four little CPUs without threads, then two big cores of two.
    let mut machine = machine(&Kind { cpus: 8, little: 4, ..PLAIN }, "4-7,0");
    for cpu in machine.cpus.iter_mut().filter(|cpu| cpu.cpu >= CpuId(4)) {
        cpu.siblings = (cpu.cpu.0 / 2 * 2..cpu.cpu.0 / 2 * 2 + 2).map(CpuId).collect();
    }
    let platform = Platform::new(machine, &names(), None).unwrap();
    let demand: Demand = [("nic0", 0.08), ("ip", 0.2), ("filter", 0.2), ("udp", 0.22), ("tcp", 0.3)]
        .map(|(name, work)| (name.into(), work))
        .into();
    let cpus = [4, 6, 5, 7, 0].map(CpuId);
    let blind = placement::spread(&platform, &demand, &Overlaps::default(), &cpus);
    let shares = |plan: &Plan, one: &str, other: &str| {
        platform.siblings(plan.seats[one].cpu).contains(plan.seats[other].cpu)
    };
    let partner = ["ip", "filter", "udp"].into_iter().find(|name| shares(&blind, "tcp", name)).unwrap();
    // The component that shares a core with tcp works when tcp does.
    let samples: [&[(&str, f64)]; 2] = [&[("tcp", 0.9), (partner, 0.9)], &[("ip", 0.01)]];
    let seen = crate::overlap::tests::seen(platform.components(), &samples);
    let plan = placement::spread(&platform, &demand, &seen, &cpus);
    assert!(!shares(&plan, "tcp", partner), "{blind} became {plan}");
    let on_little = |plan: &Plan| plan.on(CpuId(0)).map(String::from).collect::<Vec<_>>();
    assert_eq!(on_little(&plan), on_little(&blind));
}

#[test]
fn what_receives_much_is_near_its_applications_and_what_sends_leaves_them_boost() {
    let kind = Kind { cpus: 8, packages: 2, boost: true, ..PLAIN };
    let mut platform = Platform::new(machine(&kind, "2-7"), &names(), None).unwrap();
    platform.applications = "0-1".parse().unwrap();
    let traffic = |received, sent| crate::indicators::Indicators {
        received: ByteRate(received),
        sent: ByteRate(sent),
        ..Default::default()
    };
    let package = |indicators| {
        let nearness = Nearness::of(&platform, &indicators);
        let ladder = Ladder::build(&platform, &Aims { nearness, ..Aims::default() });
        platform.package(ladder.rung(0).plan.used().first().unwrap())
    };
    assert_eq!(package(traffic(1e9, 1e6)), 0);
    assert_eq!(package(traffic(1e6, 1e9)), 1);
}

#[test]
fn where_boost_exists_idle_neighbours_are_a_rung() {
    let kind = Kind { boost: true, ..PLAIN };
    let aims = Aims::default();
    let (_, with) = ladder(&kind, "1-3", &[0.5], &aims);
    let (_, without) = ladder(&PLAIN, "1-3", &[0.5], &aims);
    let idle =
        |ladder: &Ladder| ladder.rungs().iter().filter(|rung| rung.name.contains("neighbours")).count();
    assert!(idle(&with) > 0);
    assert_eq!(idle(&without), 0);
    let rung = with.rungs().iter().find(|rung| rung.name.contains("neighbours")).unwrap();
    assert!(!rung.plan.parked.is_empty() && !rung.plan.parked.contains(CpuId(0)));
}

#[test]
fn a_frequency_domain_has_one_speed() {
    let mut machine = machine(&PLAIN, "0-3");
    for cpu in &mut machine.cpus {
        let domain = if cpu.cpu < CpuId(2) { "0-1" } else { "2-3" };
        cpu.frequency = Some(Frequency {
            available: alloc::vec![KiloHertz(1_000_000), KiloHertz(2_000_000)],
            domain: domain.parse().unwrap(),
            ..Frequency::default()
        });
    }
    let platform = Platform::new(machine, &names(), None).unwrap();
    let mut plan = Ladder::build(&platform, &Aims::default()).rung(9).plan.clone();
    plan.speeds.insert(CpuId(2), Share(0.5));
    plan.speeds.insert(CpuId(3), Share::ALL);
    placement::complete(&platform, &mut plan, Spare::GiveBack);
    assert_eq!(plan.speed(CpuId(2)), plan.speed(CpuId(3)), "{plan}");
}

#[test]
fn unneeded_cpus_are_parked_or_given_back_as_configured() {
    let plan = |spare| ladder(&PLAIN, "0-3", &[], &Aims { spare, ..Aims::default() }).1.rung(0).plan.clone();
    assert_eq!(plan(Spare::GiveBack).given_back.len(), 3);
    let parked = plan(Spare::Park);
    assert_eq!(parked.parked.len() + parked.given_back.len(), 3);
    assert!(parked.parked.len() >= 2 && !parked.parked.contains(CpuId(0)), "{parked}");
    assert!(changes(&Plan::default(), &parked).iter().any(|change| matches!(change, Change::Park(_))));
}

#[test]
fn the_split_is_even_and_keeps_neighbours_together() {
    let platform = Platform::new(machine(&PLAIN, "0-3"), &names(), None).unwrap();
    let demand: Demand = [("nic0", 0.3), ("ip", 0.2), ("filter", 0.1), ("tcp", 0.4)]
        .map(|(name, work)| (name.into(), work))
        .into();
    let (groups, busiest) = placement::split(&platform, &demand, &[1.0, 1.0]);
    assert!((busiest - 0.5).abs() < 1e-9);
    assert_eq!(groups[0], ["nic0", "ip"]);
    assert!(groups[1].contains(&"tcp".into()) && groups[1].contains(&"filter".into()));
}

use super::*;
use eft_machine::CpuId;

/// From the kernel's tools/perf/Documentation/intel-hybrid.txt (thread mode example): a program that `taskset` binds to
/// an E core as it starts. perf printed 233,066,666 cycles on P cores, extrapolated from 0.43% of the time, and
/// 604,097,080 on E cores from 99.57%.
#[test]
fn time_on_the_other_type_is_not_extrapolated() {
    let (second, scaled) = (1_000_000_000u64, [(233_066_666u64, 43u64), (604_097_080, 9957)]);
    let raw = |(printed, share): (u64, u64)| printed * share / 10_000;
    let reading = |of: (u64, u64)| parse([2, second, second * of.1 / 10_000, 0, raw(of)]).unwrap();
    let counts = [count(0, reading(scaled[0])), count(1, reading(scaled[1]))];
    // The E core did all but 0.2% of the cycles; the extrapolated figures say 28% on P cores.
    let all: u64 = counts.iter().map(|count| count.cycles).sum();
    assert_eq!(counts[0].cycles * 1000 / all, 1);
    assert!(scaled[0].0 * 1000 / (scaled[0].0 + scaled[1].0) > 270);
}

/// A hybrid machine, system wide (the commit message of Linux 3612ca8e2935): IPC 0.44 on P and 0.52 on E cores.
#[test]
fn each_type_has_its_own_ipc() {
    let of = |instructions, cycles| count(0, parse([2, 1, 1, instructions, cycles]).unwrap());
    let milli = |count: Count| count.instructions * 1000 / count.cycles;
    assert_eq!(milli(of(4_268_965, 9_733_603)), 438);
    assert_eq!(milli(of(9_423_111, 18_205_487)), 517);
    assert_eq!(parse([4, 1, 1, 1, 1]), None, "another set of events");
}

#[test]
fn one_pmu_of_all_cores_counts_for_the_class_where_the_thread_was() {
    let at = |instructions, cycles| Reading { instructions, cycles, ..Reading::default() };
    let mut counts = Vec::new();
    add(&mut counts, (0, false), at(0, 0), at(900, 300));
    add(&mut counts, (1, false), at(900, 300), at(1000, 500));
    add(&mut counts, (0, false), at(1000, 500), at(1300, 600));
    let plain: Vec<(u8, u64, u64)> = counts.iter().map(|c| (c.class, c.instructions, c.cycles)).collect();
    assert_eq!(plain, [(0, 1200, 400), (1, 100, 200)], "not all of it where it is now");
    add(&mut counts, (0, true), at(1300, 600), at(1400, 700));
    assert!(counts[2].sibling_busy && counts[2].cycles == 100 && counts[0].cycles == 400, "{counts:?}");
}

#[test]
fn pmus_are_known_by_their_cpus_on_intel_and_arm() {
    let dir = tempfile::tempdir().unwrap();
    let device = |name: &str, kind: &str, cpus: &str| {
        let at = dir.path().join("sys/bus/event_source/devices").join(name);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("type"), kind).unwrap();
        std::fs::write(at.join("cpus"), cpus).unwrap();
    };
    let class_of = |cpus: &CpuSet| Some(u8::from(!cpus.contains(CpuId(0))));
    device("armv8_cortex_a76", "8", "0-1");
    device("armv8_cortex_a55", "9", "2-5");
    device("uncore_dsu", "11", "0-5");
    let found = pmus(&Tree::at(dir.path()), class_of);
    let plain: Vec<(&str, Option<u32>, u8)> =
        found.iter().map(|p| (p.name.as_str(), p.kind, p.class)).collect();
    assert_eq!(plain, [("armv8_cortex_a55", Some(9), 1), ("armv8_cortex_a76", Some(8), 0)]);
    assert_eq!(pmus(&Tree::at("/nowhere"), class_of)[0].kind, None);
}

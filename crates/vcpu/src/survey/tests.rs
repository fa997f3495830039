use super::*;
use core::time::Duration;
use eft_machine::{Cache, CpuId, Frequency, KiloHertz, Share, SpeedSet};

fn cpu(number: u32, class: CoreClass, khz: u64, siblings: &str, cache: &str) -> Cpu {
    Cpu {
        cpu: CpuId(number),
        online: true,
        class,
        siblings: siblings.parse().unwrap(),
        frequency: Some(Frequency { max: Some(KiloHertz(khz)), ..Frequency::default() }),
        last_level_cache: Some(Cache { level: 3, size_kib: None, shared: cache.parse().unwrap() }),
        ..Cpu::default()
    }
}

#[test]
fn p_and_e_cores_are_two_classes_with_threads() {
    let mut cpus: Vec<Cpu> =
        (0..4).map(|i| cpu(i, CoreClass::Big, 5_000_000, if i < 2 { "0-1" } else { "2-3" }, "0-7")).collect();
    cpus.extend((4..8).map(|i| cpu(i, CoreClass::Little, 4_000_000, &format!("{i}"), "0-7")));
    let (host, sets) = survey(&cpus, &"0-7".parse().unwrap()).unwrap();
    assert_eq!(sets.iter().map(CpuSet::to_string).collect::<Vec<_>>(), ["0-3", "4-7", "0-3"]);
    assert_eq!((host.groups[0].cores, host.groups[0].threads, host.groups[1].cores), (2, 4, 4));
    assert_eq!((host.classes[1].speed, host.classes[1].ipc), (Ppm(800_000), Ppm(650_000)));
    let (second, group) = (&host.classes[2], host.groups[2]);
    assert_eq!((second.name.as_str(), second.sibling_of), ("fast with busy sibling", Some(0)));
    assert_eq!((group.cores, host.core_class_of(2), host.slowest_cores()), (2, 0, 1));
    assert_eq!(host.distance(0, 2), 0);
}

#[test]
fn equal_cores_with_threads_are_one_class() {
    let cpus: Vec<Cpu> =
        (0..4).map(|i| cpu(i, CoreClass::Equal, 1, if i < 2 { "0-1" } else { "2-3" }, "0-3")).collect();
    let (host, _) = survey(&cpus, &"0-3".parse().unwrap()).unwrap();
    assert_eq!((host.classes.len(), host.groups.len(), host.is_asymmetric()), (1, 1, false));
}

#[test]
fn clusters_of_e_cores_and_nodes_are_told_apart() {
    // Two nodes of two P cores, whose clusters are their own, and eight E cores in two clusters.
    let of_node = |node: u32| {
        (0..10).map(move |i| {
            let (number, first) = (node * 10 + i, node * 10);
            let kind = if i < 2 { CoreClass::Big } else { CoreClass::Little };
            Cpu {
                cluster: Some(first + if i < 2 { i } else { 2 + (i - 2) / 4 * 4 }),
                numa_node: Some(node),
                package: Some(node),
                ..cpu(number, kind, 4_000_000, &number.to_string(), &format!("{first}-{}", first + 9))
            }
        })
    };
    let cpus: Vec<Cpu> = of_node(0).chain(of_node(1)).collect();
    let (host, sets) = survey(&cpus, &"0-19".parse().unwrap()).unwrap();
    let shown: Vec<String> = sets.iter().map(CpuSet::to_string).collect();
    assert_eq!(shown, ["0-1", "10-11", "2-5", "6-9", "12-15", "16-19"]);
    let distances: Vec<u32> =
        [(2, 2), (2, 3), (0, 2), (0, 1), (2, 4)].map(|(a, b)| host.distance(a, b)).into();
    assert_eq!(distances, [0, 1, 1, 10, 10]);
    assert!(!host.crosses_cache(2, 3) && host.crosses_cache(2, 4));
    assert_eq!(host.move_cost(2, 3, Duration::from_millis(5)), Duration::from_millis(1));
}

#[test]
fn a_core_that_was_slowed_is_a_class_of_its_own() {
    let mut cpus: Vec<Cpu> =
        (0..3).map(|i| cpu(i, CoreClass::Equal, 3_000_000, &format!("{i}"), "0-3")).collect();
    cpus[1].speed_set = Some(SpeedSet { share: Share(0.4), back_end: "emulated".into(), phase: None });
    let (host, sets) = survey(&cpus, &"0-1".parse().unwrap()).unwrap();
    assert_eq!(sets.iter().map(CpuSet::to_string).collect::<Vec<_>>(), ["0", "1"]);
    assert_eq!(host.classes[1].speed, Ppm(400_000));
    assert!(!survey(&cpus, &"0,2".parse().unwrap()).unwrap().0.is_asymmetric());
    assert!(survey(&cpus, &"7".parse().unwrap()).is_err());
}

#[test]
fn caches_divide_a_class() {
    let cpus: Vec<Cpu> = (0..4)
        .map(|i| cpu(i, CoreClass::Equal, 1, &format!("{i}"), if i < 2 { "0-1" } else { "2-3" }))
        .collect();
    let (host, _) = survey(&cpus, &"0-3".parse().unwrap()).unwrap();
    assert_eq!(host.groups.len(), 2);
    assert!(host.crosses_cache(0, 1));
}

//! Tests of the dealing.

use super::*;
use crate::host::tests::host;
use proptest::prelude::*;

const TIE: Ppm = Ppm::from_percent(3);

fn claim(vm: u64, demand: u64, score: u64, slow: u64) -> Claim {
    Claim {
        vm: VmId(vm),
        weight: 256,
        cap: Ppm::MAX,
        allowed: GroupSet::ALL,
        demand: Ppm(demand),
        score,
        speeds: vec![Ppm::ALL, Ppm(slow)],
    }
}

const MAX: Rule = Rule { even: Ppm::NONE, by: By::Vm, tie: TIE };
const FAIR: Rule = Rule { even: Ppm::ALL, by: By::Vm, tie: TIE };

/// For each claim what it gets of each class, as bare numbers.
fn dealt(host: &Host, claims: &[Claim], rule: Rule) -> Vec<Vec<u64>> {
    let bare = |shares: Vec<Ppm>| shares.into_iter().map(|share| share.0).collect();
    deal(host, claims, rule).into_iter().map(bare).collect()
}

fn fast(shares: &[Vec<u64>]) -> Vec<u64> {
    shares.iter().map(|share| share[0]).collect()
}

#[test]
fn the_most_efficient_gets_the_fast_core_or_everybody_an_even_part() {
    let host = host(1, 1, 0.5);
    let claims = [claim(1, PPM, 9, PPM / 2), claim(2, PPM, 5, PPM / 2)];
    assert_eq!(dealt(&host, &claims, MAX), [[PPM, 0], [0, PPM]]);
    assert_eq!(fast(&dealt(&host, &claims, FAIR)), [PPM / 2, PPM / 2]);
    let half = Rule { even: Ppm(PPM / 2), by: By::Vm, tie: TIE };
    assert_eq!(fast(&dealt(&host, &claims, half)), [PPM * 3 / 4, PPM / 4], "Figure 3 of the paper");
}

#[test]
fn a_vm_shares_one_score_and_a_vcpu_has_its_own() {
    let host = host(1, 3, 0.5);
    let claims = [claim(1, PPM, 100, 1), claim(1, PPM, 20, 1), claim(2, PPM, 70, 1), claim(2, PPM, 70, 1)];
    assert_eq!(fast(&dealt(&host, &claims, MAX)), [0, 0, PPM / 2, PPM / 2], "means are 60 and 70");
    assert_eq!(fast(&dealt(&host, &claims, Rule { by: By::Vcpu, ..MAX })), [PPM, 0, 0, 0]);
}

#[test]
fn what_a_guest_leaves_the_next_one_gets() {
    let host = host(1, 1, 0.5);
    let claims = [claim(1, 300_000, 900, PPM / 2), claim(2, PPM, 5, PPM / 2)];
    let shares = dealt(&host, &claims, MAX);
    assert_eq!(shares[0], [300_000, 0]);
    assert_eq!(shares[1], [700_000, 300_000]);
    // Evenly would be half; but 30% is all that it asks for.
    assert_eq!(fast(&dealt(&host, &claims, FAIR)), [300_000, 700_000]);
}

#[test]
fn weights_caps_and_pins_are_kept() {
    let host = host(1, 1, 0.5);
    let mut claims = [claim(1, PPM, 5, PPM / 2), claim(2, PPM, 5, PPM / 2)];
    claims[0].weight = 768;
    assert_eq!(fast(&dealt(&host, &claims, FAIR)), [750_000, 250_000]);
    claims[0] = Claim { cap: Ppm(100_000), ..claim(1, PPM, 9, PPM / 2) };
    assert_eq!(dealt(&host, &claims, MAX)[0], [100_000, 0]);
    claims[0] = Claim { allowed: [1].into_iter().collect(), ..claim(1, PPM, 9, PPM / 2) };
    assert_eq!(dealt(&host, &claims, MAX), [[0, PPM], [PPM, 0]], "pinned to the slow core");
    claims[0] = Claim { allowed: [0].into_iter().collect(), ..claim(1, PPM, 1, PPM / 2) };
    assert_eq!(
        fast(&dealt(&host, &claims, MAX)),
        [PPM, 0],
        "pinned to the fast core: it runs there in any case"
    );
}

#[test]
fn scores_that_hardly_differ_share() {
    let host = host(1, 1, 0.5);
    let claims = |a, b| [claim(1, PPM, a, PPM / 2), claim(2, PPM, b, PPM / 2)];
    assert_eq!(fast(&dealt(&host, &claims(1000, 975), MAX)), [PPM / 2, PPM / 2]);
    assert_eq!(fast(&dealt(&host, &claims(1000, 960), MAX)), [PPM, 0]);
}

#[test]
fn overcommitted_guests_get_their_part_of_all_cores() {
    let host = host(4, 8, 0.421);
    // 24 vCPUs in six VMs on twelve cores: half a core each; the best two VMs live on the fast ones.
    let claims: Vec<Claim> = (0..24).map(|i| claim(i / 4, PPM, 1000 - 100 * (i / 4), 421_000)).collect();
    let shares = dealt(&host, &claims, MAX);
    assert!(shares[..8].iter().all(|share| *share == [500_000, 0]), "{shares:?}");
    assert!(shares[8..].iter().all(|share| share[0] == 0 && share[1].abs_diff(500_000) <= 1), "{shares:?}");
}

#[test]
fn three_classes_are_dealt_from_the_fastest_down() {
    let mut host = host(1, 1, 0.5);
    host.classes.insert(
        1,
        crate::host::Class { name: "middle".into(), speed: Ppm(700_000), ipc: Ppm::ALL, sibling_of: None },
    );
    host.groups[1].class = 2;
    host.groups.push(crate::host::Group { class: 1, cores: 1, threads: 1, cache: 0, cluster: 0, node: 0 });
    let of =
        |vm, score| Claim { speeds: vec![Ppm::ALL, Ppm(700_000), Ppm(500_000)], ..claim(vm, PPM, score, 0) };
    let shares = dealt(&host, &[of(1, 1), of(2, 300), of(3, 20)], MAX);
    assert_eq!(shares, [[0, 0, PPM], [PPM, 0, 0], [0, PPM, 0]]);
}

proptest! {
    #[test]
    fn no_more_is_dealt_than_there_is_and_asked_for(
        wants in proptest::collection::vec((0u64..5, 1u64..=PPM, 0u64..100, 1u64..=PPM, 1u32..1000, 0u8..4), 0..30),
        (fast_cores, slow_cores) in (1u32..5, 1u32..9),
        even in 0u64..=PPM,
        by_vcpu: bool,
    ) {
        let host = host(fast_cores, slow_cores, 0.5);
        let claims: Vec<Claim> = wants.iter().map(|(vm, demand, score, slow, weight, pin)| {
            let allowed = match pin {
                0 => [0].into_iter().collect(),
                1 => [1].into_iter().collect(),
                _ => GroupSet::ALL,
            };
            Claim { weight: *weight, allowed, ..claim(*vm, *demand, *score, *slow) }
        }).collect();
        let by = if by_vcpu { By::Vcpu } else { By::Vm };
        let shares = dealt(&host, &claims, Rule { even: Ppm(even), by, tie: TIE });
        for class in 0..2 {
            prop_assert!(shares.iter().map(|share| share[class]).sum::<u64>() <= host.pool(class).0);
        }
        for (claim, share) in claims.iter().zip(&shares) {
            prop_assert!(share.iter().sum::<u64>() <= PPM);
            prop_assert!((0..2).all(|class| claim.allowed.contains(class) || share[class] == 0));
        }
        // No fast time is left while a claim that may use it lacks some.
        let dealt: u64 = fast(&shares).iter().sum();
        let lacks = claims.iter().zip(&shares).any(|(claim, share)| claim.allowed.contains(0) && share[1] > 0);
        prop_assert!(!lacks || dealt + 40 >= host.pool(0).0, "{dealt} of {}", host.pool(0).0);
    }

    #[test]
    fn even_shares_are_even(limits in proptest::collection::vec(0u64..PPM, 1..20), pool in 0u64..20 * PPM) {
        let shares = evenly(Ppm(pool), &limits.iter().map(|limit| (1, Ppm(*limit))).collect::<Vec<_>>());
        let shares: Vec<u64> = shares.into_iter().map(|share| share.0).collect();
        let level = shares.iter().zip(&limits).filter(|(share, limit)| share < limit).map(|(share, _)| *share).max();
        prop_assert!(shares.iter().sum::<u64>() <= pool);
        if let Some(level) = level {
            prop_assert!(shares.iter().zip(&limits).all(|(share, limit)| share + 1 >= level.min(*limit)));
        }
    }
}

#[test]
fn noise_makes_no_order_unless_it_is_asked_for() {
    let host = host(1, 1, 0.5);
    let claims = [claim(1, PPM, 1000, PPM / 2), claim(2, PPM, 1020, PPM / 2)];
    assert_eq!(fast(&dealt(&host, &claims, MAX)), [PPM / 2; 2]);
    assert_eq!(fast(&dealt(&host, &claims, Rule { tie: Ppm::NONE, ..MAX })), [0, PPM]);
}

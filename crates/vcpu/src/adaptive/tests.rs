use super::*;
use crate::PPM;
use crate::guest::VmId;
use crate::host::GroupSet;
use crate::host::tests::host;
use alloc::vec;
use proptest::prelude::*;

const TIE: Ppm = Ppm::from_percent(3);

fn claim(vm: u64, score: u64, slow: u64) -> Claim {
    Claim {
        vm: VmId(vm),
        weight: 256,
        cap: Ppm::MAX,
        allowed: GroupSet::ALL,
        demand: Ppm::ALL,
        score,
        speeds: vec![Ppm::ALL, Ppm(slow)],
    }
}

#[test]
fn guests_far_apart_need_no_fairness_and_equals_need_it() {
    let host = host(1, 1, 0.5);
    let apart = [claim(1, 20, PPM / 2), claim(2, 10, PPM)];
    assert_eq!(
        even_part(&host, &apart, Ppm(50_000), TIE),
        Ppm::NONE,
        "the second does not profit from the fast core"
    );
    let alike = [claim(1, 20, PPM / 2), claim(2, 19, PPM / 2)];
    assert_eq!(even_part(&host, &alike, Ppm::NONE, TIE), Ppm::ALL);
    // With speeds 2 and 2 the second loses (1 - R) / 3 of what amp-fair gives: 5% at R = 85.
    assert_eq!(even_part(&host, &alike, Ppm(50_000), TIE), Ppm(850_000));
}

proptest! {
    #[test]
    fn the_bound_is_kept(
        wants in proptest::collection::vec((0u64..4, 1u64..1000, 100_000u64..=PPM), 1..16),
        bound in 0u64..300_000,
    ) {
        let host = host(2, 3, 0.4);
        let claims: Vec<Claim> = wants.iter().map(|(vm, score, slow)| claim(*vm, *score, *slow)).collect();
        let (rule, bound) = (|even| Rule { even, by: By::Vm, tie: TIE }, Ppm(bound));
        let part = even_part(&host, &claims, bound, TIE);
        let fair = deal(&host, &claims, rule(Ppm::ALL));
        let lost = slowdowns(&claims, &deal(&host, &claims, rule(part)), &fair);
        prop_assert!(lost.iter().all(|loss| *loss <= bound), "{lost:?} at {part:?}");
    }
}

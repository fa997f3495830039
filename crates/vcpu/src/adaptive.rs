//! `adaptive-fair`: how much of the fast time to deal out evenly, chosen at run time.
//!
//! The paper leaves this as future work. Throughput falls as the even part grows and the largest slowdown against
//! `amp-fair` falls with it, so the least even part that keeps the bound is best. Both are predicted from the speed of
//! each vCPU on each class.

use alloc::vec::Vec;

use crate::PPM;
use crate::deal::{By, Claim, Rule, deal};
use crate::guest::ratio_ppm;
use crate::host::Host;

/// Steps of R that are told apart: one percent.
const STEPS: u64 = 100;

/// How much less each gets done than under `amp-fair`, in parts per million; 0 if it gets more done.
pub fn slowdowns(claims: &[Claim], shares: &[Vec<u64>], fair: &[Vec<u64>]) -> Vec<u64> {
    let loss = |claim: &Claim, share: &[u64], fair: &[u64]| {
        let (now, then) = (claim.work_of(share), claim.work_of(fair));
        ratio_ppm(then.saturating_sub(now), then)
    };
    claims
        .iter()
        .zip(shares.iter().zip(fair))
        .map(|(claim, (share, fair))| loss(claim, share, fair))
        .collect()
}

/// The least even part whose largest slowdown stays within `bound_ppm`. All even always does.
pub fn even_part(host: &Host, claims: &[Claim], bound_ppm: u64, tie_ppm: u32) -> u64 {
    let rule = |step: u64| Rule { even_ppm: step * PPM / STEPS, by: By::Vm, tie_ppm };
    let fair = deal(host, claims, rule(STEPS));
    let keeps = |step: u64| {
        let worst = slowdowns(claims, &deal(host, claims, rule(step)), &fair).into_iter().max();
        worst.unwrap_or(0) <= bound_ppm
    };
    if keeps(0) {
        return 0;
    }
    // `low` breaks the bound, `high` keeps it.
    let (mut low, mut high) = (0, STEPS);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if keeps(middle) { high = middle } else { low = middle }
    }
    high * PPM / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::VmId;
    use crate::host::GroupSet;
    use crate::host::tests::host;
    use alloc::vec;
    use proptest::prelude::*;

    const TIE: u32 = 30_000;

    fn claim(vm: u64, score: u64, slow: u64) -> Claim {
        Claim {
            vm: VmId(vm),
            weight: 256,
            cap_ppm: u64::MAX,
            allowed: GroupSet::ALL,
            demand_ppm: PPM,
            score,
            speed_ppm: vec![PPM, slow],
        }
    }

    #[test]
    fn guests_far_apart_need_no_fairness_and_equals_need_it() {
        let host = host(1, 1, 0.5);
        let apart = [claim(1, 20, PPM / 2), claim(2, 10, PPM)];
        assert_eq!(even_part(&host, &apart, 50_000, TIE), 0, "the second does not profit from the fast core");
        let alike = [claim(1, 20, PPM / 2), claim(2, 19, PPM / 2)];
        assert_eq!(even_part(&host, &alike, 0, TIE), PPM);
        // With speeds 2 and 2 the second loses (1 - R) / 3 of what amp-fair gives: 5% at R = 85.
        assert_eq!(even_part(&host, &alike, 50_000, TIE), 850_000);
    }

    proptest! {
        #[test]
        fn the_bound_is_kept(
            wants in proptest::collection::vec((0u64..4, 1u64..1000, 100_000u64..=PPM), 1..16),
            bound in 0u64..300_000,
        ) {
            let host = host(2, 3, 0.4);
            let claims: Vec<Claim> = wants.iter().map(|(vm, score, slow)| claim(*vm, *score, *slow)).collect();
            let rule = |even_ppm| Rule { even_ppm, by: By::Vm, tie_ppm: TIE };
            let part = even_part(&host, &claims, bound, TIE);
            let fair = deal(&host, &claims, rule(PPM));
            let lost = slowdowns(&claims, &deal(&host, &claims, rule(part)), &fair);
            prop_assert!(lost.iter().all(|loss| *loss <= bound), "{lost:?} at {part}");
        }
    }
}

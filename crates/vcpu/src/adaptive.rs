//! `adaptive-fair`: how much of the fast time to deal out evenly, chosen at run time.
//!
//! The paper leaves this as future work. Throughput falls as the even part grows and the largest slowdown against
//! `amp-fair` falls with it, so the least even part that keeps the bound is best. Both are predicted from the speed of
//! each vCPU on each class.

use alloc::vec::Vec;

use eft_machine::Ppm;

use crate::deal::{By, Claim, Rule, deal};
use crate::host::Host;

/// Steps of R: one percent each.
const STEPS: u8 = 100;

/// How much less work each does than under `amp-fair`; zero if it does more.
pub fn slowdowns(claims: &[Claim], shares: &[Vec<Ppm>], fair: &[Vec<Ppm>]) -> Vec<Ppm> {
    let loss = |claim: &Claim, share: &[Ppm], fair: &[Ppm]| {
        let (now, then) = (claim.work_of(share), claim.work_of(fair));
        Ppm::of(then.saturating_sub(now).0, then.0)
    };
    claims
        .iter()
        .zip(shares.iter().zip(fair))
        .map(|(claim, (share, fair))| loss(claim, share, fair))
        .collect()
}

/// The least even part whose largest slowdown stays within `bound`. Dealing all evenly always does.
pub fn even_part(host: &Host, claims: &[Claim], bound: Ppm, tie: Ppm) -> Ppm {
    let rule = |step: u8| Rule { even: Ppm::from_percent(step), by: By::Vm, tie };
    let fair = deal(host, claims, rule(STEPS));
    let keeps = |step: u8| {
        let worst = slowdowns(claims, &deal(host, claims, rule(step)), &fair).into_iter().max();
        worst.unwrap_or(Ppm::NONE) <= bound
    };
    if keeps(0) {
        return Ppm::NONE;
    }
    // `low` breaks the bound, `high` keeps it.
    let (mut low, mut high) = (0, STEPS);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if keeps(middle) { high = middle } else { low = middle }
    }
    Ppm::from_percent(high)
}

#[cfg(test)]
mod tests {
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
}

use super::*;

/// The ratio of the clocks: no VM gains more from a fast core.
const MOST: f64 = 2.375;

#[test]
fn a_gain_is_somebody_elses_slowdown() {
    // Two VMs of efficiency 2, one core each, one of which is fast: the first has it for 0.75 of the time that both
    // would take, and the other for what is left until the end.
    let equal = Budget { fast: 1.0, first: (2.0, 2.0 / 1.5), others: &[2.0] };
    let done = |slowdown: f64| {
        let end = 1.0 / (1.0 - slowdown);
        end + (end - 0.75)
    };
    assert!((done(equal.least_slowdown()) - 1.5).abs() < 1e-9, "{}", equal.least_slowdown());
    let none = Budget { first: (2.0, 1.0), ..equal };
    assert_eq!(none.least_slowdown(), 0.0, "nobody has gained");
}

/// Table 2 has 0.0% for 1H-1M-1L, where Figure 8's text has freqmine gain 40% at least, and 20% for pmake where that
/// has the fast cores to itself: so a fast core would have to be of no use to canneal.
#[test]
fn the_least_slowdown_of_1h_1m_1l_is_above_table_2() {
    let pmake = 1.334;
    assert!((gain_of(pmake) - 1.2).abs() < 0.001);
    let with = |canneal: f64| {
        Budget { fast: 1.0, first: (MOST, 1.40), others: &[pmake, canneal] }.least_slowdown() * 100.0
    };
    assert!(
        with(1.2) > 2.0 && with(1.1) > 1.4 && with(1.03) > 0.5,
        "{} {} {}",
        with(1.2),
        with(1.1),
        with(1.03)
    );
    // What is printed as 0.0 is below 0.05.
    assert!(with(1.003) > 0.05 && with(1.002) < 0.05);
}

/// The same for 1H-1L, 0.06%, with four fast cores for the six vCPUs of freqmine.
#[test]
fn the_least_slowdown_of_1h_1l_is_above_table_2() {
    let with = |freqmine: f64, canneal: f64| {
        let (fast, share) = (4.0 / 6.0, 1.0 / 3.0);
        let gain = (1.0 + fast * (freqmine - 1.0)) / (1.0 + share * (freqmine - 1.0));
        Budget { fast, first: (freqmine, gain), others: &[canneal] }.least_slowdown() * 100.0
    };
    // 1.75 is the least with which freqmine gains 40% in 1H-1M-1L.
    assert!((gain_of(1.75) - 1.40).abs() < 0.001);
    assert!(with(1.75, 1.2) > 3.5 && with(MOST, 1.2) > 2.5);
    assert!(with(MOST, 1.004) > 0.065 && with(MOST, 1.003) < 0.065);
}

/// A VM that never has a fast core loses what `amp-fair` would have given it: Table 2's rows of single vCPUs say that
/// soplex and GemsFDTD have efficiencies of 1.25 at most, and libquantum 1.48 at least.
#[test]
fn rows_of_single_vcpus_imply_efficiencies() {
    let implied = |slowdown: f64| 3.0 / (1.0 - slowdown / 100.0) - 2.0;
    for (slowdown, efficiency) in [(7.38, 1.239), (10.0, 1.333), (7.75, 1.252), (13.89, 1.484)] {
        assert!((implied(slowdown) - efficiency).abs() < 0.001, "{}", implied(slowdown));
    }
}

use super::*;
use crate::throughput::Throughput;

fn measured(throughput: f64) -> Measured {
    Measured { throughput: Throughput(throughput), power: Watts(10.0), ..Measured::default() }
}

#[test]
fn a_try_counts_only_if_the_base_stays_what_it_was() {
    let plan = Plan { given_back: [3].into_iter().map(CpuId).collect(), ..Plan::default() };
    let mut search = Search {
        base: Plan::default(),
        was: measured(100.0),
        left: Vec::new(),
        again: 0,
        tried: Some((plan.clone(), measured(150.0))),
        results: Vec::new(),
        at_base: true,
        is_final: false,
    };
    // The machine has become faster during the try.
    search.compare(measured(140.0));
    assert!(search.results.is_empty() && search.left.len() == 1, "it is tried again");
    search.tried = Some((search.left.pop().unwrap(), measured(140.0)));
    search.compare(measured(142.0));
    assert!((search.most() - 1.0).abs() < 0.01 && search.results.len() == 1);
    // The search ends even if the machine's speed never settles.
    for turn in 0..10 {
        search.tried = Some((plan.clone(), measured(100.0)));
        search.compare(measured(if turn % 2 == 0 { 100.0 } else { 200.0 }));
    }
    assert!(search.left.len() < AGAIN_MAX as usize && search.results[0].shares.len() == 1);
}

use super::super::operation::{Way, latency};
use super::*;

#[test]
fn steps_add_up_to_the_totals_that_the_paper_gives() {
    for machine in [i5_2500k().unwrap(), exynos_5410().unwrap()] {
        for operation in OPERATIONS {
            let steps = from_totals(&machine, operation, false).unwrap();
            for (way, total) in [(Way::Native, "native_us"), (Way::OneByOne, "bolt_us")] {
                let wanted = machine.get(operation, total).unwrap() * US;
                assert_eq!(latency(&steps, 1, way).switched_ns, wanted, "{operation} {total}");
            }
        }
    }
}

#[test]
fn steps_of_the_trace_are_the_whole_call_but_for_medians() {
    let machine = traced().unwrap();
    for operation in OPERATIONS {
        let total = machine.get(operation, "total_us").unwrap() * US;
        let ours = latency(&from_trace(&machine, operation).unwrap(), 1, Way::Native).done_ns;
        assert!(ours.abs_diff(total) * 100 <= total * 10, "{operation}: {ours} of {total}");
    }
}

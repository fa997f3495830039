use super::*;

const US: u64 = 1000;

fn steps() -> Vec<Step> {
    vec![
        Step::new("starts", 10 * US, Place::Hardware),
        Step::new("prepares", 2 * US, Place::Caller),
        Step::new("is left", 50 * US, Place::Caller).deferred(),
        Step::new("comes up", 4 * US, Place::Target).switching(),
        Step::new("domains", 3 * US, Place::Caller).shared(),
        Step::new("tells", US, Place::Caller),
    ]
}

#[test]
fn one_by_one_is_a_multiple_and_bolt_leaves_out_what_is_deferred() {
    let native = latency(&steps(), 3, Way::Native);
    assert_eq!(native, Latency { switched_ns: (2 * 70 + 66) * US, done_ns: 210 * US });
    assert_eq!(latency(&steps(), 1, Way::OneByOne), Latency { switched_ns: 16 * US, done_ns: 20 * US });
}

#[test]
fn a_set_starts_and_comes_up_side_by_side_prepares_meanwhile_and_shares() {
    // Three prepare in 6 of the 10 us in which processors start; 4 to come up, 3 of domains, 3 of telling.
    let set = latency(&steps(), 3, Way::Set(Gains::ALL));
    assert_eq!(set, Latency { switched_ns: 14 * US, done_ns: 20 * US });
    let slow = Step::new("prepares", 5 * US, Place::Caller);
    let mut others = steps();
    others[1] = slow;
    // The third is prepared after 15 us only.
    assert_eq!(latency(&others, 3, Way::Set(Gains::ALL)).switched_ns, 19 * US);
}

#[test]
fn a_set_without_gains_is_as_slow_as_one_by_one() {
    let none = Gains { concurrency: false, sharing: false };
    let one_by_one = latency(&steps(), 3, Way::OneByOne).done_ns;
    assert_eq!(latency(&steps(), 3, Way::Set(none)).done_ns, one_by_one);
    let shares = Gains { concurrency: false, sharing: true };
    assert_eq!(latency(&steps(), 3, Way::Set(shares)).done_ns, one_by_one - 6 * US);
}

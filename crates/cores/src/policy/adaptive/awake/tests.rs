use super::*;
use crate::platform::Platform;
use crate::policy::Settings;
use alloc::string::String;
use eft_machine::Machine;

const S: u64 = 1_000_000_000;

#[test]
fn traffic_that_does_no_better_awake_is_left_alone_for_longer_each_time() {
    let (mut refused, mix) = (Refused::default(), Mix { size: 0.5, ..Mix::default() });
    let is = |refused: &Refused, at: u64| refused.holds(&mix, Instant(at * S));
    assert!(!is(&refused, 0));
    refused.note(mix, Instant(0));
    assert!(is(&refused, 599) && !is(&refused, 600));
    assert!(!refused.holds(&Mix { size: 0.9, ..mix }, Instant(S)), "other traffic");
    refused.note(mix, Instant(600 * S));
    assert!(is(&refused, 1799) && !is(&refused, 1800));
}

#[test]
fn each_cpu_gets_the_lowest_clock_at_which_it_does_its_work() {
    let names = ["tcp", "ip"].map(String::from);
    let levels = [Share(0.25), Share(0.5), Share(0.75)];
    let platform = Platform::new(Machine::of_equals(3), &names, Some(&levels)).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings::default());
    for (name, (cpu, work)) in names.iter().zip(platform.managed().iter().zip([0.4, 0.2])) {
        policy.plan.seats.entry(name.clone()).and_modify(|seat| seat.cpu = cpu);
        policy.work.insert(name.clone(), work);
    }
    policy.plan.speeds.clear();
    let plan = policy.kept_awake();
    assert!(plan.same_seats(&policy.plan));
    let speed = |name: &str| plan.speed(plan.seats[name].cpu);
    assert_eq!((speed("tcp"), speed("ip")), (Share(0.5), Share(0.25)), "4/9 and 2/9 would do");
}

#[test]
fn a_load_that_wakes_everybody_often_need_not_be_old() {
    let names = ["tcp", "ip", "filter"].map(String::from);
    let platform = Platform::new(Machine::of_equals(3), &names, None).unwrap();
    let mut policy = Adaptive::new(&platform, &Settings::default());
    policy.work.extend([(names[0].clone(), 0.3), (names[1].clone(), 0.1), (names[2].clone(), 0.0)]);
    let from = |policy: &Adaptive, wakes: [f64; 3]| {
        let load = |(name, wake_ups_per_s): (&String, f64)| ComponentLoad {
            name: name.clone(),
            wake_ups_per_s,
            ..ComponentLoad::default()
        };
        let components = names.iter().zip(wakes).map(load).collect();
        policy.awake_from(&Observation { components, ..Observation::default() }, 0.01)
    };
    assert_eq!(from(&policy, [9000.0, 2500.0, 0.0]), Duration::ZERO, "the filter has nothing to do");
    assert_eq!(from(&policy, [9000.0, 2400.0, 0.0]), Duration::from_millis(3600));
    assert_eq!(from(&policy, [0.0; 3]), Duration::from_millis(3600));
    policy.work.clear();
    assert_eq!(from(&policy, [9000.0; 3]), Duration::from_millis(3600), "nothing is known of their work yet");
}

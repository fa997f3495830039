use super::*;
use crate::plan::Seat;
use crate::sample::QueueSample;
use eft_machine::Machine;

#[test]
fn what_is_saved_is_told_with_what_it_rests_on() {
    let platform = Platform::new(Machine::of_equals(2), &["tcp".into()], Some(&[Share(0.5)])).unwrap();
    let seats = BTreeMap::from([("tcp".into(), Seat { cpu: CpuId(0), dedicated: false })]);
    let plan = Plan { seats, given_back: eft_machine::CpuSet::one(CpuId(1)), ..Plan::default() };
    let load = ComponentLoad { name: "tcp".into(), busy: Share(0.3), ..ComponentLoad::default() };
    let seen = Observation { components: alloc::vec![load], ..Observation::default() };
    let report = PowerReport::of(&platform, &PowerModel::default(), &plan, &seen);
    assert!(report.now > Watts::ZERO && report.now < report.full, "{report:?}");
    assert!((report.saving - (1.0 - report.now / report.full)).abs() < 1e-12);
    // The less of the power is independent of the plan, the more is saved.
    let [of_static, of_uncore] = &report.spans[..] else { panic!("{report:?}") };
    assert!(of_static.low < of_static.high && of_static.saving_low <= of_static.saving_high, "{report:?}");
    assert!(of_uncore.saving_low > report.saving && report.saving > of_uncore.saving_high, "{report:?}");
}

#[test]
fn hints_say_who_does_not_keep_up() {
    let load = |name: &str, hint: Hint, queue: Option<(&str, u32)>| ComponentLoad {
        name: name.into(),
        hint,
        queues: queue
            .map(|(from, high)| QueueSample { from: from.into(), capacity: 64, high, ..Default::default() })
            .into_iter()
            .collect(),
        ..ComponentLoad::default()
    };
    let of = |components: &[ComponentLoad]| {
        let seen = Observation { components: components.to_vec(), ..Observation::default() };
        overloaded(&seen).map(String::from)
    };
    let (tcp, ip) =
        (load("tcp", Hint::ReceiverBehind, Some(("ip", 60))), load("ip", Hint::None, Some(("tcp", 30))));
    let nic = load("nic0", Hint::None, Some(("ip", 50)));
    // tcp says that its receiver is behind, so it is the one that tcp sends to, whatever other queues are full.
    assert_eq!(of(&[tcp.clone(), ip.clone(), nic.clone()]).as_deref(), Some("ip"));
    let starved = load("filter", Hint::Starved, None);
    assert_eq!(of(&[tcp, starved, ip, nic.clone()]).as_deref(), Some("filter"));
    assert_eq!(of(&[nic]), None);
}

#[test]
fn who_waits_for_memory_loses_little_on_a_slower_core() {
    let platform =
        Platform::new(Machine::of_equals(1), &["tcp".into(), "ip".into()], Some(&[Share(0.5)])).unwrap();
    let seats = ["tcp", "ip"].map(|name| (name.to_string(), Seat { cpu: CpuId(0), dedicated: false }));
    let full = Plan { seats: seats.into(), ..Plan::default() };
    let half = Plan { speeds: BTreeMap::from([(CpuId(0), Share(0.5))]), ..full.clone() };
    let load = |name: &str, misses| ComponentLoad {
        name: name.into(),
        busy: Share(0.4),
        misses_per_cycle: misses,
        ..ComponentLoad::default()
    };
    let seen = Observation {
        components: alloc::vec![load("tcp", Some(0.004)), load("ip", None)],
        ..Observation::default()
    };
    let work = demand(&platform, &full, &seen);
    let under = carried_over(&platform, &work, &waits(&seen), &full, &half);
    // tcp waits four fifths of its time: the other fifth doubles. ip takes twice as long.
    let time = |name: &str| under[name] / 0.5;
    assert!((time("tcp") - 0.4 * 1.2).abs() < 1e-9 && (time("ip") - 0.8).abs() < 1e-9, "{under:?}");
}

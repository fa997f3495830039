use super::*;
use eft_machine::CpuId;
use proptest::prelude::*;

fn machine() -> Machine {
    Machine {
        online: "0-3".parse().unwrap(),
        offline: "4".parse().unwrap(),
        managed: "0-2".parse().unwrap(),
        ..Machine::default()
    }
}

fn plan(seats: &[(&str, u32, bool)]) -> Plan {
    let seats = seats.iter().map(|(name, cpu, dedicated)| {
        (String::from(*name), Seat { cpu: CpuId(*cpu), dedicated: *dedicated })
    });
    Plan { seats: seats.collect(), ..Plan::default() }
}

#[test]
fn a_refusal_to_park_tells_its_cause_once() {
    let parked = Plan { parked: "0".parse().unwrap(), ..Plan::default() };
    let error = check(&parked, &machine()).unwrap_err();
    assert!(error.to_string().contains("base CPU"));
    assert!(core::error::Error::source(&error).is_none());
}

#[test]
fn each_refusal_names_its_reason() {
    let reason = |plan: Plan| check(&plan, &machine()).unwrap_err().to_string();
    let parked =
        |seats: &[(&str, u32, bool)], cpus: &str| Plan { parked: cpus.parse().unwrap(), ..plan(seats) };
    let speed = |cpu, share| Plan { speeds: BTreeMap::from([(cpu, share)]), ..Plan::default() };
    assert!(reason(plan(&[("tcp", 9, false)])).contains("does not exist"));
    assert!(reason(plan(&[("tcp", 4, false)])).contains("offline"));
    assert!(reason(plan(&[("tcp", 1, true), ("ip", 1, false)])).contains("dedicates"));
    assert!(reason(parked(&[("tcp", 1, false)], "1")).contains("parks"));
    assert!(reason(parked(&[], "0")).contains("base CPU"));
    assert!(reason(parked(&[], "3")).contains("not managed"));
    assert!(reason(speed(CpuId(3), Share(0.5))).contains("not managed"));
    assert!(reason(speed(CpuId(1), Share(f64::NAN))).contains("speed"));
    assert!(reason(speed(CpuId(1), Share::NONE)).contains("speed"));
    assert!(reason(speed(CpuId(7), Share(0.5))).contains("does not exist"));
    let back = Plan { given_back: "2".parse().unwrap(), ..parked(&[], "2") };
    assert!(reason(back).contains("both"));
    assert!(check(&plan(&[("tcp", 3, true), ("ip", 1, false)]), &machine()).is_ok());
}

#[test]
fn a_parked_cpu_may_be_used_again_even_if_it_was_taken_offline() {
    let machine = Machine { managed: "0-4".parse().unwrap(), parked: "4".parse().unwrap(), ..machine() };
    assert!(check(&plan(&[("tcp", 4, true)]), &machine).is_ok());
}

#[test]
fn faster_first_then_moves_then_slower() {
    let old = Plan {
        speeds: BTreeMap::from([(CpuId(1), Share(0.5)), (CpuId(2), Share::ALL)]),
        parked: "3".parse().unwrap(),
        ..plan(&[("tcp", 2, true), ("ip", 2, false)])
    };
    let new = Plan {
        speeds: BTreeMap::from([(CpuId(1), Share::ALL), (CpuId(2), Share(0.5))]),
        parked: "2".parse().unwrap(),
        ..plan(&[("tcp", 1, true), ("ip", 3, false)])
    };
    let steps = changes(&old, &new);
    let kinds: Vec<u8> = steps
        .iter()
        .map(|step| match step {
            Change::Unpark(_) | Change::Take(_) => 0,
            Change::Speed { cpu: CpuId(1), .. } => 1,
            Change::Move { .. } | Change::Release { .. } => 2,
            Change::Speed { .. } => 3,
            Change::Park(_) | Change::GiveBack(_) => 4,
        })
        .collect();
    assert_eq!(kinds, [0, 1, 2, 2, 3, 4]);
    assert!(matches!(&steps[2], Change::Move { component, .. } if component == "ip"));
    assert!(changes(&new, &new).is_empty());
}

fn apply(plan: &mut Plan, change: &Change) {
    match change {
        Change::Unpark(cpus) => plan.parked = plan.parked.minus(cpus),
        Change::Take(cpus) => plan.given_back = plan.given_back.minus(cpus),
        Change::Speed { cpu, share } => drop(plan.speeds.insert(*cpu, *share)),
        Change::Move { component, seat } => drop(plan.seats.insert(component.clone(), *seat)),
        Change::Release { component } => drop(plan.seats.remove(component)),
        Change::Park(cpus) => plan.parked = plan.parked.union(cpus),
        Change::GiveBack(cpus) => plan.given_back = plan.given_back.union(cpus),
    }
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let seats = proptest::collection::btree_map("[a-d]", (0u32..6, any::<bool>()), 0..4);
    let speeds = proptest::collection::btree_map(0u32..6, 0.1f64..1.0, 0..4);
    let set = || proptest::collection::btree_set(0u32..6, 0..4);
    (seats, speeds, set(), set()).prop_map(|(seats, speeds, parked, back)| Plan {
        seats: seats
            .into_iter()
            .map(|(name, (cpu, dedicated))| (name, Seat { cpu: CpuId(cpu), dedicated }))
            .collect(),
        speeds: speeds.into_iter().map(|(cpu, share)| (CpuId(cpu), Share(share))).collect(),
        parked: parked.into_iter().map(CpuId).collect(),
        given_back: back.into_iter().map(CpuId).collect(),
    })
}

proptest! {
    #[test]
    fn the_changes_lead_there(old in any_plan(), new in any_plan()) {
        let mut plan = old.clone();
        for change in changes(&old, &new) {
            apply(&mut plan, &change);
        }
        prop_assert!(plan.is_same(&new), "{plan} instead of {new}");
        prop_assert_eq!(old.is_same(&new), changes(&old, &new).is_empty());
    }

    #[test]
    fn a_plan_survives_its_file(plan in any_plan()) {
        let text = toml::to_string(&plan).unwrap();
        let read: Plan = toml::from_str(&text).unwrap();
        prop_assert!(read.is_same(&plan));
    }
}

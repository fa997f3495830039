use eft_machine::CoreClass;

use super::*;
use crate::calibration::Calibration;

fn classes(machine: &Machine) -> Vec<(CoreClass, usize)> {
    let stack = || machine.cpus.iter().filter(|cpu| cpu.managed);
    let count = |class| (class, stack().filter(|cpu| cpu.class == class).count());
    [CoreClass::Big, CoreClass::Little, CoreClass::Equal].map(count).into()
}

#[test]
fn a_scheduler_hears_of_classes_what_a_live_machine_shows_and_of_equal_cores_none() {
    let hybrid = machine(&Calibration::core_ultra_245k().unwrap().cores().unwrap());
    assert_eq!(classes(&hybrid), [(CoreClass::Big, 6), (CoreClass::Little, 8), (CoreClass::Equal, 0)]);
    assert_eq!(hybrid.cpus[1].class_from.as_deref(), Some("hybrid PMU"));
    assert_eq!(hybrid.cpus[14].capacity, None, "its kernel tells none");

    let arm = machine(&Calibration::exynos_5422().unwrap().cores().unwrap());
    assert_eq!(classes(&arm), [(CoreClass::Big, 4), (CoreClass::Little, 4), (CoreClass::Equal, 0)]);
    assert_eq!((arm.cpus[4].capacity, arm.cpus[5].capacity), (Some(1024), Some(377)));
    let little = arm.cpus[5].frequency.as_ref().unwrap();
    assert_eq!((little.max, little.available.len()), (Some(KiloHertz(1_400_000)), SPEEDS as usize));
    assert_eq!(little.domain.to_string(), "5-8", "four cores have one clock");
    assert_eq!(arm.cpus[PROGRAM].frequency.as_ref().unwrap().domain.len(), 1);

    let equal = machine(&Calibration::e5520().unwrap().cores().unwrap());
    assert_eq!(classes(&equal), [(CoreClass::Big, 0), (CoreClass::Little, 0), (CoreClass::Equal, 4)]);
    assert!(equal.cpus.iter().all(|cpu| cpu.class_from.is_none() && cpu.core_type.is_none()));
}

#[test]
fn clocks_of_a_table_are_p_states_and_no_duty_cycles() {
    let levels = |machine: Calibration| duty_levels(&machine.cores().unwrap());
    assert_eq!(levels(Calibration::exynos_5422().unwrap()), None);
    assert_eq!(levels(Calibration::e5520().unwrap()).unwrap().len(), DUTY_STEPS as usize - 1);
}

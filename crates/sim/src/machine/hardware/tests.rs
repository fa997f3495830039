use super::*;
use crate::machine::shape::{Shape, Speeds};
use eft_machine::Share;

fn plan(speed: f64) -> Plan {
    Plan { speeds: BTreeMap::from([(CpuId(1), Share(speed))]), ..Plan::default() }
}

#[test]
fn a_lower_voltage_saves_more_than_a_stopped_clock() {
    let work = |speeds: Speeds, speed: f64| {
        let shape = Shape { speeds, ..Shape::TWO };
        let hardware = Hardware::new(shape.machine(), speeds == Speeds::Frequency);
        // The same work takes longer on a slower CPU.
        hardware.power_w(&plan(speed), &Activity::from([(CpuId(1), 0.4 / speed)]))
    };
    let (full, stopped, slow) =
        (work(Speeds::Duty, 1.0), work(Speeds::Duty, 0.5), work(Speeds::Frequency, 0.5));
    assert_eq!(full, work(Speeds::Frequency, 1.0));
    assert!(slow < stopped && slow < full, "{slow} {stopped} {full} W");
}

#[test]
fn who_is_unused_sleeps_and_little_cores_take_little() {
    let shape = Shape { managed: 4, little: 2, ..Shape::TWO };
    let hardware = Hardware::new(shape.machine(), false);
    let busy = |cpu: CpuId| hardware.power_w(&Plan::default(), &Activity::from([(cpu, 1.0)]));
    let idle = hardware.power_w(&Plan::default(), &Activity::new());
    assert!(
        busy(CpuId(1)) - idle < (busy(CpuId(4)) - idle) * 0.75,
        "{} {} {idle} W",
        busy(CpuId(1)),
        busy(CpuId(4))
    );
    assert!(idle < UNCORE_W && hardware.capacity(CpuId(1)) < hardware.capacity(CpuId(4)));
}

use super::*;
use eft_cores::indicators::Mix;
use eft_cores::plan::{Plan, Seat};
use eft_cores::profile::{Outcome, Profiles};
use eft_cores::throughput::Throughput;
use eft_machine::CpuId;
use eft_machine::Machine;

#[test]
fn what_was_learnt_is_saved_and_a_file_of_somebody_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profiles.toml").to_string_lossy().into_owned();
    let machine = Machine { model: Some("this".into()), ..Machine::default() };
    let plan = |cpu: CpuId| {
        let seats = [("tcp".to_string(), Seat { cpu, dedicated: false })].into();
        Plan { seats, ..Plan::default() }
    };
    let outcome = |cpu: CpuId, throughput: f64| Outcome {
        throughput: Throughput(throughput),
        plan: plan(cpu),
        ..Outcome::default()
    };
    let mut stored = Profiles::default();
    stored.record("bulk", Mix::default(), outcome(CpuId(0), 1.0));
    stored.record("bulk", Mix::default(), outcome(CpuId(5), 7.0));
    std::fs::write(&path, file::write(&stored, &machine).unwrap()).unwrap();
    // The policy had no use for CPU 5, and found that CPU 0 does better than recorded.
    let mut profiles = Profiles::default();
    profiles.record("bulk", Mix::default(), outcome(CpuId(0), 3.0));
    let learnt = Learnt { path: path.clone(), profiles, machine: machine.clone() };
    write(&learnt).unwrap();
    let now = file::read(&std::fs::read_to_string(&path).unwrap(), &machine).unwrap();
    let figures: Vec<f64> = now.loads[0].outcomes.iter().map(|o| o.throughput.0).collect();
    assert_eq!(figures, [7.0, 3.0]);

    for bad in ["not ours".to_string(), std::fs::read_to_string(&path).unwrap().replace("7.0", "8.0")] {
        std::fs::write(&path, &bad).unwrap();
        assert!(write(&learnt).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
    }
}

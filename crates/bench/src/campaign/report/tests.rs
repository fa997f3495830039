use super::*;
use eft_linux::inject::Kind;

/// A failure of tcp, of which its successor knows this.
fn failure(ran: bool, named: bool, recorded: bool) -> Trial {
    let mut trial = Trial::new("tcp", Kind::Failure, 1, 16);
    trial.died = true;
    trial.blame = Some(Blame { ran, named, recorded: Some(recorded) });
    trial
}

/// What is counted of failures, as far as it misses its aim.
fn missed(trials: &[Trial]) -> Vec<(String, f64)> {
    let all = figures(trials).into_iter().filter(|f| f.unit == "failures" && f.median() > 0.0);
    all.map(|f| (f.what.clone(), f.median())).collect()
}

#[test]
fn a_failure_whose_input_nobody_blames_misses_the_aim() {
    let well = [failure(true, true, true), failure(false, false, true)];
    assert_eq!(missed(&well), []);
    let note = blames(&well).unwrap();
    assert!(
        note.starts_with("2 failures, 1 of them while")
            && note.ends_with("blamed: 1; successors recorded: 2")
    );
    let badly = [failure(true, false, true), failure(true, true, false), failure(false, true, true)];
    let misses = [("failures that blame another input", 2.0), ("failures with no recorded successor", 1.0)];
    assert_eq!(missed(&badly), misses.map(|(what, count)| (what.to_string(), count)));
}

#[test]
fn deaths_from_outside_are_no_failures() {
    let trials = [Trial::new("tcp", Kind::Null, 1, 16)];
    assert_eq!(blames(&trials), None);
    assert!(figures(&trials).iter().all(|f| f.unit != "failures"));
}

#[test]
fn what_programs_do_with_damaged_bytes_is_counted_with_the_damage() {
    let flip = |damaged, kind| Trial {
        damaged,
        established: 10,
        helped: 1,
        lost: vec![0, 1],
        ..Trial::new("udp", kind, 1, 16)
    };
    let judged = |trial: Trial| (living(&[&trial], 0), trial.needed_restart(), after_damage(&[trial]));
    let told = "; 1 connections ended with such bytes, and in 1 faults a program went on waiting";
    assert_eq!(judged(flip(2, Kind::FlipPayload)), (vec![100.0], false, told.into()));
    // Nothing was damaged, or what the fault has struck is no payload.
    assert_eq!(judged(flip(0, Kind::FlipPayload)), (vec![90.0], true, String::new()));
    assert_eq!(judged(flip(2, Kind::FlipHeap)), (vec![90.0], true, String::new()));
}

#[test]
fn flips_of_payloads_are_told_apart_by_who_sums() {
    let flip = |component, checksums, damaged| Trial {
        checksums,
        damaged,
        ..Trial::new(component, Kind::FlipPayload, 1, 16)
    };
    let (device, software) = (Checksums::Device, Checksums::Software);
    let all = [
        flip("tcp", device, 0),
        flip("nic:eft0", device, 3),
        flip("tcp", software, 1),
        Trial { found_wrong: 2, ..flip("nic:eft0", software, 0) },
    ];
    let told = payloads(&all).unwrap();
    assert!(
        told.contains("1 of 2 damaged 3 bytes with the device's checksums, 0 were found by a checksum; 1 of 2 damaged 1 bytes with"),
        "{told}"
    );
    assert!(told.ends_with("(plain-tap), 1 were found by a checksum"), "{told}");
    assert!(all[3].is_effective() && !all[0].is_effective());
    let named: Vec<_> = rows(&all).into_iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let own = "flip-payload, own checksums";
    assert_eq!(
        named,
        [
            "tcp flip-payload".to_string(),
            format!("tcp {own}"),
            "nic flip-payload".into(),
            format!("nic {own}")
        ]
    );
    assert_eq!(payloads(&[Trial::new("tcp", Kind::Kill, 1, 16)]), None);
}

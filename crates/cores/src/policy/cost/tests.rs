use super::*;
use crate::plan::Seat;
use eft_machine::Share;

const S: Duration = Duration::from_secs(1);

fn after(length: Duration) -> Instant {
    Instant::ZERO + length
}

fn plan(cpus: [u32; 3], speed: f64) -> Plan {
    let seats = ["ip", "tcp", "nic0"].into_iter().zip(cpus);
    let seats = seats.map(|(name, cpu)| (name.into(), Seat { cpu: CpuId(cpu), dedicated: false })).collect();
    Plan { seats, speeds: [(CpuId(1), Share(speed))].into(), ..Plan::default() }
}

#[test]
fn more_moves_must_promise_more_and_a_speed_least() {
    let mut costs = Costs::default();
    costs.load_begins(Instant::ZERO);
    let here = plan([1, 1, 1], 1.0);
    let gain = |to: &Plan, age| costs.gain_min(0.001, &here, to, after(age));
    let (speed, one, three) = (plan([1, 1, 1], 0.5), plan([1, 1, 2], 1.0), plan([2, 2, 2], 1.0));
    assert!(gain(&speed, S) < gain(&one, S) && gain(&one, S) * 2.9 < gain(&three, S));
    assert!((gain(&three, S) - 2.0 * 3.0 * MOVE_NS / 1e9).abs() < 1e-9);
    assert!((gain(&three, 10 * S) - gain(&three, S) / 10.0).abs() < 1e-9, "it has lasted ten times as long");
    assert_eq!(costs.gain_min(0.03, &here, &one, after(10 * S)), 0.03, "the floor");
}

#[test]
fn loads_that_usually_last_long_pay_sooner_and_short_ones_later() {
    let here = plan([1, 1, 1], 1.0);
    let gain = |length: Duration| {
        let mut costs = Costs::default();
        for index in 0..20u32 {
            costs.load_begins(after(index * length));
        }
        costs.gain_min(0.0, &here, &plan([2, 2, 2], 1.0), after(19 * length + S))
    };
    assert!(gain(30 * S) < gain(4 * S) / 5.0);
    assert!(gain(4 * S) < gain(S));
    // Traffic for one sample at a time is no load.
    assert_eq!(gain(LOAD_MIN / 10), gain(LOAD_MIN / 5));
}

#[test]
fn what_a_change_was_seen_to_cost_replaces_what_was_assumed() {
    let mut costs = Costs::default();
    let (here, there) = (plan([1, 1, 1], 1.0), plan([2, 2, 1], 1.0));
    for _ in 0..30 {
        costs.begins(&here, &there, Throughput(100.0));
        costs.learn(Duration::from_millis(60));
    }
    assert!(costs.of(&here, &there).abs_diff(Duration::from_millis(60)) < Duration::from_micros(100));
    assert!(
        costs.of(&here, &plan([2, 2, 2], 1.0)).abs_diff(Duration::from_millis(90))
            < Duration::from_micros(200)
    );
    assert_eq!(costs.of(&here, &plan([1, 1, 1], 0.5)), whole(SPEED_NS), "a speed costs what it did");
    // Nothing was begun, or another load came meanwhile.
    let before = costs.of_move();
    costs.learn(1000 * S);
    costs.begins(&here, &there, Throughput(100.0));
    costs.load_begins(after(S));
    costs.learn(1000 * S);
    assert_eq!(costs.of_move(), before);
}

/// A kernel with Bolt changes CPUs in a hundredth of the time: what a policy demands of a change has to follow.
#[test]
fn a_faster_way_to_reconfigure_pays_for_smaller_gains() {
    let mut costs = Costs::default();
    let (here, there) = (plan([1, 1, 1], 1.0), plan([2, 2, 1], 1.0));
    costs.load_begins(Instant::ZERO);
    let mut gain_after = |lost: Duration, changes: u32| {
        for _ in 0..changes {
            costs.begins(&here, &there, Throughput(100.0));
            costs.learn(lost);
        }
        costs.gain_min(0.0, &here, &there, after(10 * S))
    };
    let (by_kernel, by_bolt) = (Duration::from_micros(36_770), Duration::from_micros(400));
    let native = gain_after(by_kernel, 30);
    assert!(gain_after(by_bolt, 1) < native * 0.8, "the first one counts");
    let bolt = gain_after(by_bolt, 29);
    assert!(
        (native / bolt - by_kernel.div_duration_f64(by_bolt)).abs() < 2.0,
        "{native} natively, {bolt} with Bolt"
    );
    assert!(
        (gain_after(by_kernel, 30) - native).abs() < native / 100.0,
        "and back, where Bolt is switched off"
    );
}

use super::*;
use crate::batch::calibrated::{Ablation, profile};
use crate::calibration::Calibration;
use crate::hardware::PS_PER_MS;

/// The one server that does anything here is tcp, on a core of its own.
fn machine() -> (Machine<(), u32>, Costs) {
    let mut core = 0;
    let seats = SERVERS.map(|_| {
        core += 1;
        (core, 0, Clock::full(1_600_000))
    });
    let costs = profile(&Calibration::e5520().unwrap(), "newtos", Ablation::default()).unwrap().costs;
    (Machine::new(&seats, Polling::default()), costs)
}

fn next_end(machine: &mut Machine<(), u32>, costs: &Costs) -> usize {
    loop {
        match machine.next(u64::MAX) {
            Some(Event::Ends { thread }) => {
                machine.ended(thread);
                return thread;
            }
            Some(Event::Woken { thread }) => machine.woken(costs, thread),
            Some(_) => {}
            None => panic!("nothing happens any more"),
        }
    }
}

#[test]
fn an_arrival_cuts_polls_and_not_what_is_owed() {
    let (mut machine, costs) = machine();
    machine.tell(&costs, None, Server::Tcp, true);
    let tcp = next_end(&mut machine, &costs);
    machine.owe(Server::Tcp, Work::cycles(1_600_000));
    let begun_ps = machine.now_ps;
    machine.go_on(&costs, tcp, |_| false, |_| Batch::default());
    machine.tell(&costs, None, Server::Tcp, true);
    next_end(&mut machine, &costs);
    assert_eq!(machine.now_ps - begun_ps, PS_PER_MS, "it works for a millisecond");
    machine.go_on(&costs, tcp, |_| false, |_| Batch::default());
    machine.tell(&costs, None, Server::Tcp, true);
    let polled_ps = machine.now_ps;
    next_end(&mut machine, &costs);
    assert!(machine.now_ps - polled_ps < PS_PER_MS / 1_000);
}

#[test]
fn a_core_that_slept_deep_gets_its_caches_back_before_it_works() {
    let (mut machine, mut costs) = machine();
    costs.cold_ps = PS_PER_MS;
    machine.tell(&costs, None, Server::Tcp, true);
    next_end(&mut machine, &costs);
    assert!(machine.now_ps >= costs.core_exit_ps + PS_PER_MS);
    assert!(machine.busy_ps(Server::Tcp) >= PS_PER_MS, "it is awake while they come back");
}

#[test]
fn a_thread_whose_sibling_is_awake_finds_its_caches_as_they_were() {
    let mut core = 0;
    let mut seats = SERVERS.map(|_| {
        core += 1;
        (core, 0, Clock::full(1_600_000))
    });
    seats[Server::Ip as usize] = (seats[Server::Tcp as usize].0, 1, Clock::full(1_600_000));
    let mut costs = machine().1;
    costs.cold_ps = PS_PER_MS;
    let mut machine: Machine<(), u32> = Machine::new(&seats, Polling::default());
    machine.tell(&costs, None, Server::Tcp, true);
    let tcp = next_end(&mut machine, &costs);
    machine.owe(Server::Tcp, Work::cycles(16_000_000));
    machine.go_on(&costs, tcp, |_| false, |_| Batch::default());
    let told_ps = machine.now_ps;
    machine.tell(&costs, Some(Server::Tcp), Server::Ip, true);
    assert_ne!(next_end(&mut machine, &costs), tcp);
    assert!(machine.now_ps - told_ps < PS_PER_MS);
}

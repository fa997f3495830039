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
            Some(Event::Ends { thread, version }) if machine.ended(thread, version).is_some() => {
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

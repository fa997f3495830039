//! Descriptors of ip that are changed before their frames go out: no stream is damaged, although the device completes checksums.

use eft_messages::ComponentId;
use eft_sim::{Faults, Simulation, simulation::Settings};
use std::time::Duration;

#[test]
fn a_changed_bit_of_a_descriptor_damages_no_stream() {
    let mut damaged = 0;
    for seed in 1700..1730 {
        let mut s = Simulation::new(seed, Settings { ipv6: seed % 2 == 1, ..Settings::default() });
        s.serve(400_000, 400_000, 0);
        s.stream(400_000, 400_000, 0);
        let connected = |s: &Simulation| s.applications.iter().all(|a| a.streams.iter().all(|s| s.connected));
        s.run(Duration::from_secs(60), |s| {
            s.applications.iter().all(|a| a.streams.len() == 1) && connected(s)
        });
        s.faults = Faults { flip_descriptor: 0.3, ..Faults::default() };
        // The programs compare every byte.
        let done = |s: &Simulation| s.applications.iter().all(|a| a.is_done());
        s.run_for(Duration::from_millis(200));
        s.faults = Faults::default();
        s.run(Duration::from_secs(120), done);
        damaged += s.total(ComponentId::nic(0), "drop_damaged");
    }
    assert!(damaged > 30, "only {damaged} frames were changed");
}

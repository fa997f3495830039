//! What the policy `profile` knows in advance: a sweep on tier 2, of a machine whose assumed parameters are drawn anew.

use std::time::Duration;

use eft_cores::indicators::{Window, delivered};
use eft_cores::profile::{Outcome as Recorded, Profiles, prune};
use eft_cores::throughput::Throughput;
use eft_machine::Watts;

use super::job::Job;
use super::placement::{PLACED, Placement};
use super::search::try_all;
use crate::batch::run::Outcome;
use crate::hardware::Clock;
use crate::hardware::power::Chip;

fn power_mw(chip: &Chip, placement: &Placement, outcome: &Outcome) -> u64 {
    let mut seen = Vec::new();
    let mut power = chip.static_mw();
    for (i, server) in PLACED.into_iter().enumerate() {
        if !seen.contains(&placement.core_of[i]) {
            seen.push(placement.core_of[i]);
            let clock = Clock { khz: chip.highest.0, duty: placement.duty[i] };
            power += chip.core_mw(clock, outcome.busy_ppm[server as usize]);
        }
    }
    power
}

/// Of each job, by its name.
pub fn swept(jobs: &[(&str, Job)], chip: &Chip, seed: u64) -> Profiles {
    let mut profiles = Profiles::default();
    for (name, job) in jobs {
        for (placement, outcome, traffic) in try_all(job, chip.highest.0, seed) {
            let mut window = Window::default();
            window.add(&traffic, Duration::from_secs(1));
            let recorded = Recorded {
                throughput: Throughput(delivered(&traffic)),
                power: Watts(power_mw(chip, &placement, &outcome) as f64 / 1000.0),
                modelled: true,
                plan: placement.plan(),
                ..Recorded::default()
            };
            profiles.record(name, window.indicators().mix(), recorded);
        }
        prune(&mut profiles);
    }
    profiles
}

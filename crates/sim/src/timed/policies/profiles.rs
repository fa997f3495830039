//! What the policy `profile` knows in advance: a sweep on tier 2, of a machine whose assumed parameters are drawn anew.

use std::time::Duration;

use eft_cores::indicators::{Window, delivered};
use eft_cores::profile::{Outcome as Recorded, Profiles, prune};
use eft_cores::throughput::Throughput;
use eft_machine::Watts;

use super::job::Job;
use super::search::try_all;
use crate::hardware::Cores;

/// Of each job, by its name.
pub fn swept(jobs: &[(&str, Job)], cores: &Cores, seed: u64) -> Profiles {
    let mut profiles = Profiles::default();
    for (name, job) in jobs {
        for (placement, (outcome, _, traffic)) in try_all(job, cores, seed) {
            let mut window = Window::default();
            window.add(&traffic, Duration::from_secs(1));
            let recorded = Recorded {
                throughput: Throughput(delivered(&traffic)),
                power: Watts(placement.milliwatts(cores, &outcome) as f64 / 1000.0),
                modelled: true,
                plan: placement.plan(cores),
                ..Recorded::default()
            };
            profiles.record(name, window.indicators().mix(), recorded);
        }
        prune(&mut profiles);
    }
    profiles
}

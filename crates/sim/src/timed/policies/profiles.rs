//! What the policy `profile` knows in advance: a sweep on tier 2, of a machine whose assumed parameters are drawn anew.

use std::time::Duration;

use eft_cores::indicators::{Window, delivered};
use eft_cores::profile::{Outcome as Recorded, Profiles, prune};
use eft_cores::sample::Traffic;
use eft_cores::throughput::Throughput;
use eft_machine::Watts;

use super::placement::{PLACED, Placement};
use super::search::{in_batches, placements};
use crate::batch::Profile;
use crate::batch::run::Outcome;
use crate::hardware::Clock;
use crate::hardware::power::Chip;

/// Headers of IP and TCP with timestamps, of a segment.
const HEADERS: u64 = 52;

/// What a stack's counters say after a second.
fn traffic(profile: &Profile, outcome: &Outcome) -> Traffic {
    let sent_bytes = outcome.kbps * 125;
    let sent_segments = sent_bytes / profile.maximum_segment;
    let received = sent_bytes / outcome.bytes_per_acknowledgement.max(1);
    Traffic {
        sent_bytes,
        sent_segments,
        received_segments: received,
        received_empty_segments: received,
        ip_sent_bytes: sent_bytes + sent_segments * HEADERS,
        ip_received_bytes: received * HEADERS,
        connections_open: profile.streams as u64,
        ..Traffic::default()
    }
}

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

pub fn swept(profile: &Profile, chip: &Chip, seed: u64) -> Profiles {
    let mut profiles = Profiles::default();
    for placement in placements() {
        let outcome = in_batches(profile, &placement, chip.highest.0, seed);
        let traffic = traffic(profile, &outcome);
        let mut window = Window::default();
        window.add(&traffic, Duration::from_secs(1));
        let recorded = Recorded {
            throughput: Throughput(delivered(&traffic)),
            power: Watts(power_mw(chip, &placement, &outcome) as f64 / 1000.0),
            modelled: true,
            plan: placement.plan(),
            ..Recorded::default()
        };
        profiles.record("bulk", window.indicators().mix(), recorded);
    }
    prune(&mut profiles);
    profiles
}

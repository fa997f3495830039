//! A server that is alone on its core watches its bells before it sleeps.

use super::Parking;
use crate::monitor;
use eft_base::Instant;
use eft_channel::Shared;
use eft_channel::account::Account;
use eft_channel::notify::{Doorbell, Mode};
use eft_host::clock;
use std::time::Duration;

/// How long a dedicated server watches before it goes to the kernel: longer than it takes to wake a sleeper on another
/// core (35 us measured), so that a steady stream never pays for a wake.
const WATCH: Duration = Duration::from_micros(100);

impl Parking {
    /// Watches the bells from user space. True if there is work.
    pub(super) fn watch(
        &mut self,
        account: Account,
        deadline: Option<Instant>,
        each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        has_work: &impl Fn() -> bool,
    ) -> bool {
        account.leave(monitor::phase());
        let start = clock::now();
        account.enter(monitor::phase(), start);
        let end = deadline.map_or(start + WATCH, |d| d.min(start + WATCH));
        let mut values = std::mem::take(&mut self.rung);
        values.clear();
        each_bell(&mut |b| values.push(b.value()));
        self.announce(Mode::Monitoring);
        let mut found = has_work();
        while !found && clock::now() < end {
            self.wait_for_a_ring(each_bell, &values, has_work);
            found = has_work() || (self.epoll.is_some() && self.poll_descriptors(Some(Duration::ZERO)));
        }
        if let Some(place) = first_rung(each_bell, &values) {
            self.likely = place;
        }
        self.rung = values;
        self.awake();
        found || deadline.is_some_and(|d| clock::now() >= d)
    }

    /// Sleeps on the line of the bell that rang last time: it is the likeliest to ring again.
    fn wait_for_a_ring(
        &self,
        each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        values: &[u32],
        has_work: &impl Fn() -> bool,
    ) {
        let changed = || first_rung(each_bell, values).is_some() || has_work();
        let likely = if self.likely < values.len() { self.likely } else { 0 };
        let only = values.len() == 1 && self.epoll.is_none();
        if values.is_empty() {
            return monitor::spin(&changed);
        }
        let mut place = 0;
        each_bell(&mut |b| {
            if place == likely {
                monitor::wait(b.word(), only, changed);
            }
            place += 1;
        });
    }
}

/// The index of the first bell whose value has changed.
fn first_rung(each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)), values: &[u32]) -> Option<usize> {
    let (mut place, mut rung) = (0, None);
    each_bell(&mut |b| {
        if rung.is_none() && values.get(place).is_some_and(|value| *value != b.value()) {
            rung = Some(place);
        }
        place += 1;
    });
    rung
}

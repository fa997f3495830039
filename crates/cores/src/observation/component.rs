//! What one component did between two samples.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::Share;

use super::doubt::Doubt;
use super::one_line;
use crate::sample::{ComponentSample, QueueSample, Traffic};

const SHARE_TOLERANCE: Share = Share(0.05);
/// Accounts may be ahead of the sample's time by as long as the sampling took, which is long if the sampler lost its
/// CPU.
const AHEAD_MAX: Duration = Duration::from_secs(1);

pub(super) struct Differences {
    /// Busy, polling, waiting, sleeping. `None`: the account stands still.
    pub shares: Option<[Share; 4]>,
    pub cpu: Duration,
    pub traffic: Traffic,
    pub wake_ups: u64,
    pub wakes_sent: u64,
    pub wakes_cost: Duration,
    pub queues: Vec<QueueSample>,
    pub counters: (Option<f64>, Option<f64>),
}

pub(super) fn differences(
    now: &ComponentSample,
    before: &ComponentSample,
    at: Instant,
    period: Duration,
) -> Result<Differences, Doubt> {
    if now.generation != before.generation {
        return Err(Doubt::Reborn { now: now.generation, before: before.generation });
    }
    // A turn counts as busy until it turns out to have been an idle poll; then its time moves from busy to polling.
    let working = |sample: &ComponentSample| sample.busy.saturating_add(sample.polling);
    let working = Doubt::time_since("its busy and polling time", working(now), working(before))?;
    let busy = now.busy.saturating_sub(before.busy).min(working);
    let waiting = Doubt::time_since("its waiting time", now.waiting, before.waiting)?;
    Doubt::time_since("its sleeping time", now.sleeping, before.sleeping)?;
    let cpu = Doubt::time_since("its CPU time", now.cpu_time, before.cpu_time)?;
    let turns = Doubt::since("its heartbeat", now.heartbeat, before.heartbeat)?;
    if turns == 0 && before.running && cpu > period / 2 {
        return Err(Doubt::HeartbeatStandsStill);
    }
    Ok(Differences {
        shares: accounted(now, before, at)?
            .map(|accounted| shares(busy, working - busy, waiting, accounted))
            .transpose()?,
        cpu,
        traffic: traffic_since(&now.traffic, &before.traffic)?,
        wake_ups: Doubt::since("its wake-ups", now.wake_ups, before.wake_ups)?,
        wakes_sent: Doubt::since("its sent wakes", now.wakes_sent, before.wakes_sent)?,
        wakes_cost: Doubt::time_since("its time of sent wakes", now.wakes_cost, before.wakes_cost)?,
        queues: queues_since(&now.queues, &before.queues)?,
        counters: counters_since(now, before),
    })
}

/// The time between two accounts. It differs from that between the samples: the sampler may lose its CPU after it has
/// read the clock and before it reads the page, and then the page is newer than the sample's time. `None`: the account
/// has not changed; the next one is compared with the same.
fn accounted(
    now: &ComponentSample,
    before: &ComponentSample,
    at: Instant,
) -> Result<Option<Duration>, Doubt> {
    if now.accounted_to == Instant::ZERO || before.accounted_to == Instant::ZERO {
        return Err(Doubt::AccountBegun);
    }
    if now.accounted_to.saturating_since(at) > AHEAD_MAX {
        return Err(Doubt::AccountAhead);
    }
    match now.accounted_to.checked_since(before.accounted_to) {
        None => Err(Doubt::AccountWentBack),
        Some(length) => Ok((length > Duration::ZERO).then_some(length)),
    }
}

/// Busy and polling time is taken as accounted, waiting as far as the rest allows, and all else is sleep.
fn shares(
    busy: Duration,
    polling: Duration,
    waiting: Duration,
    accounted: Duration,
) -> Result<[Share; 4], Doubt> {
    let share = |part: Duration| Share::of(part, accounted);
    let (busy, polling) = (share(busy), share(polling));
    if busy + polling > Share::ALL + SHARE_TOLERANCE {
        return Err(Doubt::MoreThanAll { share: busy + polling });
    }
    let busy = busy.min(Share::ALL);
    let polling = polling.min(busy.rest());
    let waiting = share(waiting).min(busy.rest() - polling).max(Share::NONE);
    Ok([busy, polling, waiting, (busy.rest() - polling - waiting).max(Share::NONE)])
}

fn queues_since(now: &[QueueSample], before: &[QueueSample]) -> Result<Vec<QueueSample>, Doubt> {
    let mut queues = Vec::with_capacity(now.len().min(64));
    for queue in now.iter().take(64) {
        if queue.high > queue.capacity || queue.low > queue.capacity {
            return Err(Doubt::QueueOverfull { capacity: queue.capacity, held: queue.high.max(queue.low) });
        }
        let Some(earlier) = before.iter().find(|earlier| earlier.from == queue.from) else {
            continue;
        };
        queues.push(QueueSample {
            from: one_line(&queue.from),
            overloads: Doubt::since("the overloads of a queue", queue.overloads, earlier.overloads)?,
            underloads: Doubt::since("the underloads of a queue", queue.underloads, earlier.underloads)?,
            ..queue.clone()
        });
    }
    Ok(queues)
}

/// The PMU may be taken away at any time: absurd counts are treated as absent.
fn counters_since(now: &ComponentSample, before: &ComponentSample) -> (Option<f64>, Option<f64>) {
    let (Some(now), Some(before)) = (now.counters, before.counters) else {
        return (None, None);
    };
    let cycles = now.cycles.checked_sub(before.cycles).filter(|cycles| *cycles > 0);
    let per_cycle = |now: u64, before: u64| Some(now.checked_sub(before)? as f64 / cycles? as f64);
    (per_cycle(now.instructions, before.instructions), per_cycle(now.cache_misses, before.cache_misses))
}

/// Every counter of [`Traffic`], with its name.
fn traffic_since(now: &Traffic, before: &Traffic) -> Result<Traffic, Doubt> {
    let mut since = Traffic { connections_open: now.connections_open, ..Traffic::default() };
    macro_rules! subtract {
        ($($field:ident),*) => {$(
            since.$field = Doubt::since(concat!("its counter ", stringify!($field)), now.$field, before.$field)?;
        )*};
    }
    subtract!(received_bytes, sent_bytes, received_segments, sent_segments);
    subtract!(sent_empty_segments, received_empty_segments);
    subtract!(outbound_connections, accepted_connections, closed_connections, opened_sockets, closed_sockets);
    subtract!(ip_received_bytes, ip_sent_bytes, arp_packets, icmp_packets);
    Ok(since)
}

//! What measuring and deciding cost, as own CPU time and, where there is a PMU, in instructions, for 4, 32 and 96 vCPUs.

use std::time::Duration;

use anyhow::Result;
use eft_host::clock;
use eft_host::guests::perf::{self, Pmu, ThreadCounters};
use eft_host::sensors::Tree;
use eft_machine::Ppm;
use eft_vcpu::guest::{Progress, Vcpu};
use eft_vcpu::host::{Class, Group, Host};
use eft_vcpu::options::{Options, Policy};
use eft_vcpu::scheduler::{Due, Scheduler};

use super::super::figure::{Aim, Figure};
use super::worker::own_cpu;

/// The kernel's number for the calling thread.
const OWN_THREAD: i32 = 0;
/// Of one core.
const COST_AIM_PERCENT: f64 = 0.5;
/// Of the guests' time, for measuring with counters.
const MEASURING_AIM_PERCENT: f64 = 0.05;

/// The cost of sampling and deciding over some intervals.
struct Cost {
    core_percent: f64,
    /// Where there is a PMU: millions of own instructions a second, and the part of the guests' time that measuring them took.
    counted: Option<(f64, f64)>,
}

/// Own CPU time of sampling and deciding, as a share of one core, for 4, 32 and 96 vCPUs: threads that sleep, so that
/// looking costs what it does live, told as busy and waiting, so that deciding does, too. With a note if nothing was counted.
pub fn cost() -> Result<(Vec<Figure>, Option<String>)> {
    let pmus = perf::pmus(&Tree::live(), |_| Some(0));
    let refusal = ThreadCounters::open(&pmus, OWN_THREAD, false).err();
    let counting = refusal.is_none().then_some(&pmus[..]);
    let mut figures = Vec::new();
    for count in [4u32, 32, 96] {
        let (stop, threads) = sleepers(count);
        let costs: Result<Vec<Cost>> = (0..5).map(|_| cost_of(count, counting)).collect();
        stop.store(true, std::sync::atomic::Ordering::Release);
        threads.into_iter().for_each(|thread| drop(thread.join()));
        let costs = costs?;
        let of = |pick: fn(&Cost) -> Option<f64>| costs.iter().filter_map(pick).collect::<Vec<f64>>();
        let what = format!("own CPU time of measuring and deciding, {count} vCPUs");
        let time = of(|cost| Some(cost.core_percent));
        figures.push(Figure::new(what, "% of a core", time).aim(Aim::AtMost(COST_AIM_PERCENT)));
        if counting.is_some() {
            let what = format!("own instructions of measuring and deciding, {count} vCPUs");
            figures.push(Figure::new(what, "million/s", of(|cost| Some(cost.counted?.0))));
            let what = format!("measuring {count} vCPUs with counters");
            let part = of(|cost| Some(cost.counted?.1));
            figures.push(Figure::new(what, "% of their time", part).aim(Aim::AtMost(MEASURING_AIM_PERCENT)));
        }
    }
    Ok((figures, refusal.map(|reason| format!("instructions are not counted: {reason}"))))
}

fn sleepers(count: u32) -> (std::sync::Arc<std::sync::atomic::AtomicBool>, Vec<std::thread::JoinHandle<()>>) {
    use std::sync::atomic::{AtomicBool, Ordering};
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let sleeper = || {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(50));
            }
        })
    };
    let threads = (0..count).map(|_| sleeper()).collect();
    (stop, threads)
}

/// Takes five intervals' samples and decisions as fast as possible; returns their cost over the intervals' live length.
fn cost_of(count: u32, counting: Option<&[Pmu]>) -> Result<Cost> {
    let tree = Tree::live();
    let me = std::process::id() as i32;
    let ids: Vec<_> = eft_host::sensors::tasks::threads(&tree, me)
        .into_iter()
        .filter_map(|tid| eft_host::sensors::tasks::read(&tree, me, tid))
        .take(count as usize)
        .collect();
    let mut sensors: Vec<_> =
        ids.iter().map(|task| eft_host::guests::sense::Sensor::new(&tree, me, task.id, None)).collect();
    let mut own = None;
    if let Some(pmus) = counting {
        for (sensor, task) in sensors.iter_mut().zip(&ids) {
            sensor.count(pmus, task.id.tid, false)?;
        }
        own = Some(ThreadCounters::open(pmus, OWN_THREAD, false)?);
    }
    let mut measuring = Duration::ZERO;
    let class = |name: &str, speed| Class { name: name.into(), speed, ipc: Ppm::ALL, sibling_of: None };
    let group = |class, cores, cache| Group { class, cores, threads: cores, cache, cluster: 0, node: cache };
    let (fast, slow) = ((count / 3).max(1), (count / 2).max(1));
    let host = Host {
        classes: vec![class("fast", Ppm::ALL), class("slow", Ppm::from_percent(50))],
        groups: vec![group(0, fast, 0), group(1, slow, 0), group(1, slow, 1)],
    };
    let mut scheduler = Scheduler::new(host, Options { policy: Policy::AmpFair(100), ..Options::default() })?;
    let vcpus: Vec<Vcpu> = (0..sensors.len()).map(|i| Vcpu::new(i as u64, i as u64 / 4)).collect();
    scheduler.set_vcpus(&vcpus);
    let mut now = clock::now();
    let (begin, end) = (now, now + scheduler.options().interval * 5);
    let before = own_cpu();
    while now < end {
        let (at, due) = scheduler.due();
        now = at.max(now);
        let sampled_at = counting.map(|_| own_cpu());
        for (index, sensor) in sensors.iter_mut().enumerate() {
            match due {
                Due::Window => sensor.sample_counters(Some(0), |_| false),
                Due::Turn if scheduler.watched_at_turns(index) => sensor.sample(),
                Due::Tick if scheduler.watched_at_ticks(index) => sensor.sample(),
                Due::Turn | Due::Tick => {}
            }
        }
        measuring += sampled_at.map_or(Duration::ZERO, |then| own_cpu() - then);
        // Busy for as long as the time that is told has passed.
        let passed = now.saturating_since(begin);
        let all: Vec<Progress> = vcpus
            .iter()
            .map(|vcpu| Progress {
                id: vcpu.id,
                ran: passed / 10 * 9,
                waited: passed / 10,
                by_class: &[],
                counts: &[],
                own_unit: false,
            })
            .collect();
        match due {
            Due::Tick => drop(scheduler.tick(now, &all)),
            Due::Turn => {
                let leavers = scheduler.turn(now, &all);
                leavers.iter().for_each(|leaver| sensors[leaver.index].sample());
                scheduler.left(now, &leavers, &all);
            }
            Due::Window => scheduler.window(now, &all),
        }
    }
    let spent = own_cpu() - before;
    let length = (scheduler.options().interval * 5).as_secs_f64();
    let counted = own.map(|mut own| {
        let instructions: u64 = own.read(None, |_| false).iter().map(|count| count.instructions).sum();
        let guests = vcpus.len() as f64 * length * 0.9;
        (instructions as f64 / 1e6 / length, measuring.as_secs_f64() / guests * 100.0)
    });
    Ok(Cost { core_percent: spent.as_secs_f64() / length * 100.0, counted })
}

//! One operation of each way, timed and traced.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use eft_host::actuators::cpuset_v1;
use eft_host::actuators::hotplug::{self, HotplugOptions};
use eft_host::actuators::lazy;
use eft_host::actuators::parking::Parking;
use eft_host::actuators::{affinity, bolt};
use eft_host::clock;
use eft_host::sensors::trace::Event;
use eft_host::sensors::{Tree, rates};
use eft_machine::{CpuId, CpuSet};

use super::Bench;
use super::report::{Direction, Way};
use super::rounds::DWELL;

/// Limit for the probe that wants to run on a CPU that came back.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

impl Bench {
    /// One call, or one for each set, under trace. Returns begin, end, and the events until a dwell after the end.
    pub fn timed(
        &mut self,
        way: Way,
        sets: &[CpuSet],
        leave: bool,
        parking: Option<&Parking>,
        row: &mut Direction,
    ) -> Result<(u64, u64, Vec<Event>)> {
        let tree = Tree::live();
        let options = HotplugOptions { force: true, native: way == Way::Native };
        // What the kernel forgets is written down, so that the masks are as before at the end; a user of the kernel's own
        // way would not do it, so it is not timed.
        if leave && way == Way::Native {
            self.announce_native(sets, options)?;
        }
        let own = own_cpusets(&tree, sets);
        turn_bolt(&tree, way == Way::Bolt)?;
        self.tracer.start()?;
        let interrupts = interrupts_elsewhere(&tree, &self.managed);
        let begin = Instant::now();
        let begin_us = clock::now().as_micros();
        match way {
            Way::Park | Way::ParkLazy | Way::ParkCancel => {
                self.park_or_back(sets, leave, parking.context("parking was not set up")?)?
            }
            Way::Native => {
                for cpu in sets.iter().flat_map(CpuSet::iter) {
                    hotplug::set_online(&tree, cpu, !leave)?;
                }
            }
            Way::Expedited | Way::Bolt if leave => {
                for set in sets {
                    hotplug::offline(&mut self.journal, set, options)?;
                }
            }
            Way::Expedited | Way::Bolt => {
                for set in sets {
                    hotplug::online(&mut self.journal, set, options)?;
                }
            }
        }
        let elapsed = begin.elapsed();
        let end_us = clock::now().as_micros();
        if !leave {
            sets.iter().flat_map(CpuSet::iter).for_each(probe);
        }
        row.call_us.push(elapsed.as_secs_f64() * 1e6);
        row.interrupts_elsewhere
            .push(interrupts_elsewhere(&tree, &self.managed).saturating_sub(interrupts) as f64);
        std::thread::sleep(DWELL);
        self.tracer.stop()?;
        if !leave && way.parks() {
            // As when a user unparks: the CPU runs programs again, and what else was moved follows.
            let notes = lazy::give_back(&mut self.journal, &CpuSet::new(), &[])?;
            self.notes.extend(notes);
        }
        if !leave && way == Way::Native {
            // The kernel's own way forgets cpusets and masks; put right outside of the time that is measured.
            own.iter().for_each(|(cpu, cpusets)| hotplug::give_back(&tree, *cpu, cpusets));
            for set in sets {
                hotplug::online(&mut self.journal, set, options)?;
            }
        }
        Ok((begin_us, end_us, self.tracer.read()?))
    }

    fn announce_native(&mut self, sets: &[CpuSet], options: HotplugOptions) -> Result<()> {
        for set in sets {
            let prepared = hotplug::prepare(&self.journal, set, options)?;
            for change in prepared.changes() {
                self.journal.announce(change.clone())?;
            }
        }
        Ok(())
    }

    fn park_or_back(&mut self, sets: &[CpuSet], leave: bool, parking: &Parking) -> Result<()> {
        let all = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let offlined = hotplug::offlined(&self.journal).and(&all);
        if !leave && !offlined.is_empty() {
            hotplug::online(&mut self.journal, &offlined, HotplugOptions { force: true, native: false })?;
        }
        let mut parked = if leave { CpuSet::new() } else { all };
        for set in sets {
            parked = if leave { parked.union(set) } else { parked.minus(set) };
            parking.apply(&mut self.journal, &parked, &[])?;
        }
        Ok(())
    }
}

/// Bolt has the online files as well, so it is on for its own turn only. The switch waits; that is not timed.
fn turn_bolt(tree: &Tree, on: bool) -> Result<()> {
    if !bolt::is_there(tree) || bolt::is_on(tree) == on {
        return Ok(());
    }
    Ok(tree.write(bolt::SWITCH, if on { "1" } else { "0" })?)
}

/// All our cpusets that name the CPUs: with parking set up, the kernel takes the CPU out of ours.
fn own_cpusets(tree: &Tree, sets: &[CpuSet]) -> Vec<(CpuId, Vec<(String, CpuSet)>)> {
    let with_it = |cpu: CpuId| {
        let cpusets = cpuset_v1::own(tree).into_iter();
        let named = cpusets.filter_map(|path| {
            let mut cpus: CpuSet = tree.parsed(&format!("{path}/cpuset.cpus"))?;
            cpus.insert(cpu);
            Some((path, cpus))
        });
        (cpu, named.collect())
    };
    sets.iter().flat_map(CpuSet::iter).map(with_it).collect()
}

/// A thread that wants to run there at once: exit latency ends when it runs. Real-time threads there may starve it, so
/// the wait for it is bounded.
fn probe(cpu: CpuId) {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = affinity::pin_myself(cpu);
        let _ = done.send(());
    });
    let _ = wait.recv_timeout(PROBE_PATIENCE);
}

fn interrupts_elsewhere(tree: &Tree, managed: &CpuSet) -> u64 {
    rates::read(tree)
        .interrupts
        .iter()
        .filter(|(cpu, _)| !managed.contains(**cpu))
        .map(|(_, count)| count)
        .sum()
}

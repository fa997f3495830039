//! What loads take on live stacks, by the components' own accounts.

use super::file::Parameter;
use super::fit::{self, Stretch};
use super::loads::{self, Account, Accounts, Ground};
use super::replayed::{OfLoad, Replayed};
use crate::samples::Samples;
use anyhow::{Context, Result};
use eft_linux::stack_sensor::CounterNames;
use eft_messages::ComponentId;

/// Of each load, by the name of its folder: what the accounts say in each round.
pub struct Times(Vec<(&'static str, Vec<Accounts>)>);

/// Messages of a round, and of a recording: fewer say nothing.
const FEWEST: f64 = 500.0;
/// A line that another cache has, and one that memory has: orders of magnitude of today's servers.
const FIRST_MISS_NS: f64 = 5.0;
const LAST_MISS_NS: f64 = 90.0;
/// Lines that another core has written, for each message: the message itself, and what it names. Replays do not see these.
const FOREIGN_LINES: f64 = 2.0;
const FOREIGN_LINE_NS: f64 = 60.0;

pub fn of_loads(rounds: usize, seconds: f64, names: CounterNames) -> Result<Times> {
    let mut ground = Ground::new(loads::ALL.len(), &[])?;
    let mut all: Vec<(&'static str, Vec<Accounts>)> =
        loads::ALL.iter().map(|load| (load.folder, Vec::new())).collect();
    for _ in 0..rounds {
        for (load, (_, rounds)) in loads::ALL.iter().zip(&mut all) {
            rounds.push(loads::account(&mut ground, load, seconds, names).context(load.name)?);
        }
    }
    Ok(Times(all))
}

impl Times {
    /// Nanoseconds of a message, in each round.
    pub fn of_messages(&self, load: &str, component: ComponentId) -> Vec<f64> {
        let rounds = self.0.iter().filter(|(name, _)| *name == load).flat_map(|(_, rounds)| rounds);
        let of = |accounts: &Accounts| accounts.get(&component.to_string()).copied();
        rounds.filter_map(of).filter(|a| a.messages >= FEWEST).map(|a| a.busy_ns / a.messages).collect()
    }

    /// Of each component and load that both were replayed and ran: the shortest time of a message.
    fn beside<'a>(&'a self, replayed: &'a [Replayed]) -> impl Iterator<Item = (&'a OfLoad, f64)> {
        replayed.iter().flat_map(move |of| {
            of.loads.iter().filter_map(move |load| {
                // A CPU that others use makes rounds longer, never shorter.
                let least = self.of_messages(&load.load, of.component).into_iter().reduce(f64::min)?;
                (load.messages() as f64 >= FEWEST).then_some((load, least))
            })
        })
    }

    /// How many cycles of this machine an instruction of a replay stands for.
    pub fn cycles_of_instructions(&self, replayed: &[Replayed], clock_mhz: f64) -> Option<Parameter> {
        let percent = |(load, ns): (&OfLoad, f64)| ns * clock_mhz / 1000.0 / load.instructions() * 100.0;
        let all = Samples::new(self.beside(replayed).map(percent).collect());
        (!all.samples.is_empty()).then(|| Parameter {
            name: "message_percent",
            value: all.median,
            low: all.low,
            high: all.high,
            is_assumed: false,
            source: format!(
                "cycles that a component is busy on a live stack, by its account and without wakes, for each instruction of its \
                 engine's replay under the same load: median and range of {} loads and components",
                all.samples.len()
            ),
        })
    }

    /// The part of a message that waits for memory: without a PMU it cannot be measured.
    pub fn waits(&self, replayed: &[Replayed]) -> Option<Parameter> {
        let share = |(load, ns): (&OfLoad, f64)| {
            let (first, last) = load.misses();
            let counted = first * FIRST_MISS_NS + last * LAST_MISS_NS;
            (counted / ns * 100.0, (counted + FOREIGN_LINES * FOREIGN_LINE_NS) / ns * 100.0)
        };
        let (low, high): (Vec<f64>, Vec<f64>) = self.beside(replayed).map(share).unzip();
        let (low, high) = (Samples::new(low).median.min(90.0), Samples::new(high).median.min(90.0));
        (high > 0.0).then(|| Parameter {
            name: "stall_percent",
            value: (low + high) / 2.0,
            low,
            high,
            is_assumed: true,
            source: format!(
                "of a message, waiting for memory, which no PMU measures here: from callgrind's misses at {FIRST_MISS_NS} and \
                 {LAST_MISS_NS} ns, to these and {FOREIGN_LINES} lines of other cores at {FOREIGN_LINE_NS} ns"
            ),
        })
    }

    /// The driver is not recorded: its costs are fitted to its account.
    pub fn of_driver(&self, clock_mhz: f64) -> Vec<Parameter> {
        let stretch = |account: &Account| Stretch {
            counts: vec![
                account.frames_out,
                account.frames_in,
                account.bytes_out / 1024.0,
                account.bytes_in / 1024.0,
            ],
            cost: account.busy_ns * clock_mhz / 1000.0,
        };
        let nic = ComponentId::nic(0).to_string();
        let of_load = |(_, rounds): &(&str, Vec<Accounts>)| -> Vec<Stretch> {
            rounds.iter().filter_map(|accounts| accounts.get(&nic)).map(stretch).collect()
        };
        let groups: Vec<Vec<Stretch>> = self.0.iter().map(of_load).collect();
        let whole = groups.concat();
        let costs = fit::costs(&whole);
        let error = fit::error(&whole, &costs) * 100.0;
        let names = [
            ("driver_segment_cycles", "a frame out"),
            ("driver_acknowledgement_cycles", "a frame in"),
            ("driver_sent_kib_cycles", "1024 bytes out"),
            ("driver_received_kib_cycles", "1024 bytes in"),
        ];
        let one = |(((name, what), cost), (low, high)): (((&'static str, &str), f64), (f64, f64))| {
            Parameter {
                name,
                value: cost,
                low,
                high,
                is_assumed: false,
                source: format!(
                    "cycles of a TAP device's driver for {what}, with its system calls: fitted to its account under {} loads, off by \
                 {error:.0}% (median); with its receipts",
                    groups.len()
                ),
            }
        };
        names.into_iter().zip(costs).zip(fit::ranges(&groups)).map(one).collect()
    }

    /// A call that wakes another component.
    pub fn of_wakes(&self, clock_mhz: f64) -> Option<Parameter> {
        let all = self.0.iter().flat_map(|(_, rounds)| rounds).flat_map(|accounts| accounts.values());
        let cycles = |a: &Account| a.wakes_ns / a.wakes * clock_mhz / 1000.0;
        let samples = Samples::new(all.filter(|a| a.wakes >= 100.0).map(cycles).collect());
        (!samples.samples.is_empty()).then(|| Parameter {
            name: "wake_cycles",
            value: samples.median,
            low: samples.low,
            high: samples.high,
            is_assumed: false,
            source: format!(
                "cycles of a call that wakes another component, by the accounts: median and range of {} loads, rounds and \
                 components",
                samples.samples.len()
            ),
        })
    }
}

#[cfg(test)]
mod tests;

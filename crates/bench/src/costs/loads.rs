//! The loads whose costs are counted: each on a stack of its own that records it, and on one that does not.

use crate::counters::counters;
use crate::side::{Load, Side, at_far_end};
use crate::stack::{Serving, host_peer};
use anyhow::{Context, Result, ensure};
use eft_component::topology::DEFAULT;
use eft_host::clock;
use eft_host::sensors::Tree;
use eft_linux::operator;
use eft_linux::stack_sensor::{CounterNames, StackSensor, pages};
use eft_machine::{CpuId, CpuSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What is put on a stack, by name.
#[derive(Clone, Copy)]
pub struct Named {
    pub name: &'static str,
    /// The folder of its recordings.
    pub folder: &'static str,
    what: What,
    /// Of the recorded load, of what is asked for: bulk fills a recording in a part of a second.
    recorded_share: f64,
}

#[derive(Clone, Copy)]
enum What {
    Of(Load),
    /// Requests and answers of so many bytes.
    Large(usize),
    Visits,
}

const fn named(name: &'static str, folder: &'static str, what: What, recorded_share: f64) -> Named {
    Named { name, folder, what, recorded_share }
}

/// Different numbers of messages of each kind, and different sizes.
pub const ALL: [Named; 6] = [
    named("bulk out", "out", What::Of(Load::Out), 0.05),
    named("bulk in", "in", What::Of(Load::In), 0.05),
    named("requests of 64 B, 1 connection", "requests-1", What::Of(Load::Requests(1)), 1.0),
    named("requests of 64 B, 32 connections", "requests-32", What::Of(Load::Requests(32)), 1.0),
    named("requests of 16 KiB, 4 connections", "requests-16k", What::Large(16384), 0.3),
    named("visits of 64 B", "visits", What::Visits, 1.0),
];

/// So many sockets that a replay's memory fits into the 128 GB of addresses that valgrind gives a program.
const LIMITS: &str = "\n[limits]\nsockets_per_domain = 400\n";
const LARGE_PORT: u16 = 7008;
const VISITS_PORT: u16 = 7007;
const FIRST_SOURCE: u8 = 100;
const SOURCES: u8 = 32;

/// A stack with what serves on it.
pub struct Ground {
    side: Side,
    _large: Serving,
    _visits: Serving,
}

impl Ground {
    /// `options`: further ones of `eft up`.
    pub fn new(number: usize, options: &[&str]) -> Result<Ground> {
        let side = Side::of_stack(number, &format!("{DEFAULT}{LIMITS}"), options)?;
        side.add_near_addresses(FIRST_SOURCE, SOURCES)?;
        let (large, visits) = (format!("{}:{LARGE_PORT}", side.far), format!("{}:{VISITS_PORT}", side.far));
        // Rules that pass everything: the filter is asked about each connection.
        let rules = json!({ "op": "pf-load", "rules": "pass all keep state\n" });
        operator::ask(&side.stack.as_ref().context("no stack")?.name, &rules)?;
        Ok(Ground {
            _large: Serving::start(at_far_end(&side, &["echo", &large, "--bytes", "16384"])?)?,
            _visits: Serving::start(at_far_end(&side, &["serve-visits", &visits])?)?,
            side,
        })
    }

    fn put(&mut self, what: What, seconds: f64) -> Result<()> {
        let (far, time) = (self.side.far.clone(), seconds.to_string());
        let mut command = match what {
            What::Of(load) => return self.side.measure(load, seconds).map(drop),
            What::Large(bytes) => {
                let address = format!("{far}:{LARGE_PORT}");
                host_peer(&["ask", &address, "4", &time, "--bytes", &bytes.to_string()])?
            }
            What::Visits => host_peer(&["visit", &format!("{far}:{VISITS_PORT}"), &self.side.near, &time])?,
        };
        let said = command.output()?;
        ensure!(said.status.success(), "a client failed: {}", String::from_utf8_lossy(&said.stderr).trim());
        Ok(())
    }

    fn stack(&self) -> Result<&str> {
        Ok(&self.side.stack.as_ref().context("no stack")?.name)
    }
}

/// Records the load for about so many seconds into `folder`.
pub fn record(number: usize, load: &Named, seconds: f64, folder: &Path) -> Result<()> {
    let folder = folder.to_string_lossy().into_owned();
    let mut ground = Ground::new(number, &["--record", &folder])?;
    ground.put(load.what, seconds * load.recorded_share)
}

/// What a component's account says of a load, beside its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Busy, without the calls that wake others.
    pub busy_ns: f64,
    /// On a CPU, by the kernel's account: a turn that loses its CPU is busy meanwhile, and who polls uses its CPU.
    pub cpu_ns: f64,
    pub messages: f64,
    pub wakes: f64,
    pub wakes_ns: f64,
    /// Of a driver.
    pub frames_in: f64,
    pub frames_out: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
}

pub type Accounts = BTreeMap<String, Account>;

/// Puts the load on the stack for so long, and reads the accounts before and after.
pub fn account(ground: &mut Ground, load: &Named, seconds: f64, names: CounterNames) -> Result<Accounts> {
    let before = read(ground, names)?;
    ground.put(load.what, seconds)?;
    let after = read(ground, names)?;
    let less = |after: &Account, before: &Account| Account {
        busy_ns: (after.busy_ns - before.busy_ns - (after.wakes_ns - before.wakes_ns))
            .min(after.cpu_ns - before.cpu_ns)
            .max(0.0),
        cpu_ns: after.cpu_ns - before.cpu_ns,
        messages: after.messages - before.messages,
        wakes: after.wakes - before.wakes,
        wakes_ns: after.wakes_ns - before.wakes_ns,
        frames_in: after.frames_in - before.frames_in,
        frames_out: after.frames_out - before.frames_out,
        bytes_in: after.bytes_in - before.bytes_in,
        bytes_out: after.bytes_out - before.bytes_out,
    };
    Ok(after
        .iter()
        .filter_map(|(name, after)| Some((name.clone(), less(after, before.get(name)?))))
        .collect())
}

fn read(ground: &Ground, names: CounterNames) -> Result<Accounts> {
    let stack = ground.stack()?;
    let mut sensor = StackSensor::new(Tree::live(), names, &CpuSet::one(CpuId(0)));
    pages::refresh(stack, &mut sensor)?;
    // A NIC is listed under the name of its device among the counters, and by its role in a sample.
    let counted = counters(stack, names)?;
    let sample = sensor.sample(clock::now());
    let of = |component: &eft_cores::sample::ComponentSample| {
        let own = counted.iter().find(|(name, values)| match component.name.starts_with("nic") {
            true => values.get("frames_in").is_some(),
            false => **name == component.name,
        });
        let counter = |name: &str| {
            own.and_then(|(_, values)| values.get(name)).and_then(Value::as_u64).unwrap_or(0) as f64
        };
        Account {
            busy_ns: component.busy.as_nanos() as f64,
            cpu_ns: component.cpu_time.as_nanos() as f64,
            messages: counter("messages_in"),
            wakes: component.wakes_sent as f64,
            wakes_ns: component.wakes_cost.as_nanos() as f64,
            frames_in: counter("frames_in"),
            frames_out: counter("frames_out"),
            bytes_in: counter("bytes_in"),
            bytes_out: counter("bytes_out"),
        }
    };
    Ok(sample.components.iter().map(|component| (component.name.clone(), of(component))).collect())
}

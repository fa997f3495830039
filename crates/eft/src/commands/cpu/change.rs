//! `eft cpu park`, `unpark`, `offline`, `online` and `restore`.

use anyhow::{Result, bail};
use eft_base::time;
use std::time::Duration;

use clap::Args;
use eft_cores::park::{Delays, ParkBackEnd, STEPS, Step};
use eft_host::actuators::hotplug::{self, By, HotplugOptions};
use eft_host::actuators::parking::{ParkOptions, SetUp};
use eft_host::actuators::scope::Scope;
use eft_host::sensors::residue::{self, Residue};
use eft_machine::CpuSet;
use serde::Serialize;

use super::{Context, print};

#[derive(Args)]
pub struct ParkArguments {
    pub cpus: CpuSet,
    /// v2, v1 or affinity; default: the kernel's Bolt if it is switched on, else the first that this machine has
    #[arg(long, value_name = "NAME")]
    pub back_end: Option<ParkBackEnd>,
    /// What to move away: all, or process ids (with their descendants)
    #[arg(long, value_name = "all|PIDS", default_value = "all")]
    pub scope: Scope,
    /// Interrupts that stay spread over the managed CPUs, and are moved lazily
    #[arg(long, value_name = "IRQS", value_delimiter = ',')]
    pub spread: Vec<u32>,
    /// Take the CPUs offline after they were parked this long, s
    #[arg(long, value_name = "SECONDS")]
    pub offline_after: Option<f64>,
    /// Park even if another program's cpuset names the CPU
    #[arg(long)]
    pub force: bool,
    /// Keep cpusets and attachments when the last CPU is unparked
    #[arg(long)]
    pub keep_set_up: bool,
    /// How long to watch what remains on the CPUs, ms
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub observe: u64,
}

#[derive(Args)]
pub struct CpusArguments {
    pub cpus: CpuSet,
}

#[derive(Args)]
pub struct SwitchArguments {
    pub cpus: CpuSet,
    /// Even if another program's cpuset names the CPU
    #[arg(long)]
    pub force: bool,
    /// Without expedited grace periods
    #[arg(long)]
    pub native: bool,
}

#[derive(Serialize)]
struct ParkOutcome {
    parked: CpuSet,
    latency_us: f64,
    set_up: Option<SetUp>,
    steps: Vec<StepRow>,
    remaining: Vec<Residue>,
}

#[derive(Serialize)]
struct StepRow {
    step: Step,
    urgency: eft_cores::park::Urgency,
    #[serde(rename = "due_ms", with = "time::millis::option")]
    due: Option<Duration>,
}

#[derive(Serialize)]
struct SwitchOutcome {
    cpus: CpuSet,
    by: &'static str,
    latency_us: f64,
    notes: Vec<String>,
}

pub fn options(context: &Context, arguments: &ParkArguments) -> ParkOptions {
    ParkOptions {
        back_end: arguments.back_end,
        scope: arguments.scope.clone(),
        spread: arguments.spread.clone(),
        managed: context.host.managed.clone(),
        force: arguments.force,
    }
}

pub fn delays(arguments: &ParkArguments) -> Result<Delays> {
    let offline_after = match arguments.offline_after {
        None => None,
        Some(seconds) if (0.0..1e7).contains(&seconds) => {
            Some(Duration::from_millis((seconds * 1000.0) as u64))
        }
        Some(seconds) => bail!("--offline-after {seconds} is no sensible time"),
    };
    Ok(Delays { offline_after, ..Delays::default() })
}

pub fn park(context: &Context, arguments: &ParkArguments) -> Result<()> {
    let delays = delays(arguments)?;
    if wants_bolt(context, arguments) {
        let options = HotplugOptions { force: arguments.force, native: false };
        let (latency, note) = context.session()?.offline(&arguments.cpus, options)?;
        return switched(
            context,
            "parked",
            &arguments.cpus,
            By::Bolt.name(),
            latency,
            note.into_iter().collect(),
        );
    }
    let outcome = {
        let mut session = context.session()?;
        session.park(&arguments.cpus, &options(context, arguments), delays, arguments.keep_set_up)?
    };
    let watch = residue::begin(&context.host.tree);
    if context.host.tree.is_live() {
        std::thread::sleep(Duration::from_millis(arguments.observe.min(60_000)));
    }
    let remaining = residue::end(&context.host.tree, &watch, &arguments.cpus);
    let steps = STEPS
        .iter()
        .map(|(step, urgency)| StepRow { step: *step, urgency: *urgency, due: delays.due(*step) })
        .collect();
    let outcome = ParkOutcome {
        parked: outcome.parked,
        latency_us: outcome.latency.as_secs_f64() * 1e6,
        set_up: outcome.set_up,
        steps,
        remaining,
    };
    if context.json { context.print_json(&outcome) } else { print(&describe(&outcome, arguments.observe)) }
}

/// Whether to park by Bolt. Bolt takes the CPUs away from all tasks, so it is used only if no option asks for less.
fn wants_bolt(context: &Context, arguments: &ParkArguments) -> bool {
    let is_plain =
        arguments.back_end.is_none() && arguments.scope == Scope::All && arguments.spread.is_empty();
    is_plain && hotplug::way(&context.host.tree, HotplugOptions::default()) == By::Bolt
}

fn describe(outcome: &ParkOutcome, observed_ms: u64) -> String {
    let mut text = String::new();
    if let Some(set_up) = &outcome.set_up {
        let interrupts = &set_up.interrupts;
        text += &format!(
            "set up once: back end {}, {} processes attached, {} interrupts moved to the base CPUs\n",
            set_up.back_end,
            set_up.processes_attached,
            interrupts.moved.len()
        );
        set_up.refused.iter().for_each(|refused| text += &format!("  not attached: {refused}\n"));
        if !interrupts.refused.is_empty() {
            text +=
                &format!("  interrupts that the kernel will not move: {}\n", numbers(&interrupts.refused));
        }
        if !interrupts.spread.is_empty() {
            text += &format!("  interrupts left spread, moved lazily: {}\n", numbers(&interrupts.spread));
        }
    }
    text += &format!("parked CPU {} in {:.0} us\n", outcome.parked, outcome.latency_us);
    for remaining in &outcome.remaining {
        let interrupts: u64 = remaining.interrupts.values().sum();
        text += &format!(
            "CPU {}: {interrupts} interrupts in {observed_ms} ms, {} kernel threads bound to it, {:.0} ms of foreign time\n",
            remaining.cpu,
            remaining.bound_kernel_threads.len(),
            remaining.foreign_ms
        );
        for (name, count) in &remaining.interrupts {
            text += &format!("  interrupt {name}: {count}\n");
        }
        if !remaining.bound_kernel_threads.is_empty() {
            text += &format!("  kernel threads: {}\n", remaining.bound_kernel_threads.join(", "));
        }
        if !remaining.user_tasks.is_empty() {
            text += &format!("  tasks that may still run there: {}\n", remaining.user_tasks.join(", "));
        }
    }
    text
}

fn numbers(list: &[u32]) -> String {
    list.iter().map(u32::to_string).collect::<Vec<String>>().join(", ")
}

pub fn unpark(context: &Context, arguments: &CpusArguments) -> Result<()> {
    let mut session = context.session()?;
    let is_parking = arguments.cpus.is_subset(&session.held().parked());
    let by = if is_parking {
        "parking"
    } else {
        hotplug::way(&context.host.tree, HotplugOptions::default()).name()
    };
    let (latency, notes) = session.unpark(&arguments.cpus)?;
    switched(context, "gave back", &arguments.cpus, by, latency, notes)
}

pub fn offline(context: &Context, arguments: &SwitchArguments) -> Result<()> {
    let options = HotplugOptions { force: arguments.force, native: arguments.native };
    let (latency, note) = context.session()?.offline(&arguments.cpus, options)?;
    let by = hotplug::way(&context.host.tree, options).name();
    switched(context, "took offline", &arguments.cpus, by, latency, note.into_iter().collect())
}

pub fn online(context: &Context, arguments: &SwitchArguments) -> Result<()> {
    let options = HotplugOptions { force: arguments.force, native: arguments.native };
    let (latency, note) = context.session()?.online(&arguments.cpus, options)?;
    let by = hotplug::way(&context.host.tree, options).name();
    switched(context, "brought online", &arguments.cpus, by, latency, note.into_iter().collect())
}

fn switched(
    context: &Context,
    verb: &str,
    cpus: &CpuSet,
    by: &'static str,
    latency: Duration,
    notes: Vec<String>,
) -> Result<()> {
    let outcome = SwitchOutcome { cpus: cpus.clone(), by, latency_us: latency.as_secs_f64() * 1e6, notes };
    if context.json {
        return context.print_json(&outcome);
    }
    context.say(&outcome.notes);
    print(&format!("{verb} CPU {cpus} in {:.0} us, by {by}\n", outcome.latency_us))
}

pub fn restore(context: &Context) -> Result<()> {
    let (count, notes) = context.session()?.restore()?;
    if context.json {
        return context.print_json(&serde_json::json!({ "undone": count, "notes": notes }));
    }
    context.say(&notes);
    print(&if count == 0 { "nothing to undo\n".to_string() } else { format!("undid {count} changes\n") })
}

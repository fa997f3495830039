//! `eft cpu power`: RAPL where the machine has it, otherwise the model, marked as modelled.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use eft_cores::description::Description;
use eft_cores::power::{CoreState, PowerEstimate, PowerModel, Sensitivity};
use eft_host::sensors::power::{self, MeasuredPower};
use eft_host::sensors::{Tree, idle, topology};
use eft_machine::{Cpu, CpuId, Machine, Microseconds, Share, Watts};
use serde::Serialize;

use super::{Context, columns, list, print};

#[derive(Args)]
pub struct PowerArguments {
    /// How far the result depends on the static and uncore shares
    #[arg(long)]
    sensitivity: bool,
    /// A machine description with a [power] section, instead of the built-in model
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// How long to watch, ms
    #[arg(long = "for", value_name = "MS", default_value_t = 1000)]
    duration_ms: u64,
}

#[derive(Serialize)]
struct Power {
    measured: Vec<MeasuredPower>,
    modelled: Option<PowerEstimate>,
    sensitivity: Vec<Sensitivity>,
}

pub fn run(context: &Context, arguments: &PowerArguments) -> Result<()> {
    let tree = &context.host.tree;
    let model = model(arguments)?;
    let duration = Duration::from_millis(arguments.duration_ms);
    let before = power::read(tree)?;
    let idle_before = idle_times(tree)?;
    let begin = Instant::now();
    let machine = list::observe(context, duration)?;
    // A recorded machine's counters do not change, so there is no wait.
    let elapsed = begin.elapsed();
    let mut measured = power::between(&before, &power::read(tree)?, elapsed);
    let idle_after = idle_times(tree)?;
    let state = |cpu: &Cpu| {
        let residency = model.residency(&spent(&idle_before, &idle_after, cpu.cpu));
        CoreState { residency, ..core_state(&machine, cpu) }
    };
    let states: Vec<CoreState> = machine.cpus.iter().map(state).collect();
    let burners: Vec<(Option<u32>, Watts)> = machine
        .cpus
        .iter()
        .zip(&states)
        .filter(|(cpu, _)| cpu.speed_set.as_ref().is_some_and(|set| set.back_end == "emulated"))
        .map(|(cpu, state)| (cpu.package, model.burner(state)))
        .collect();
    power::charge_burners(&mut measured, &burners);
    // Measured power needs no model, unless the user asks about the model.
    let is_modelled = before.is_empty() || arguments.sensitivity || arguments.model.is_some();
    let result = Power {
        measured,
        modelled: is_modelled.then(|| model.estimate(&states)),
        sensitivity: if arguments.sensitivity { model.sensitivity(&states) } else { Vec::new() },
    };
    if context.json { context.print_json(&result) } else { print(&describe(&result)) }
}

type IdleTimes = BTreeMap<CpuId, Vec<(String, Microseconds)>>;

/// Time in each idle state until now, as cpuidle counts it.
fn idle_times(tree: &Tree) -> Result<IdleTimes> {
    let present = topology::cpu_sets(tree)?.present;
    let of = |cpu: CpuId| {
        let states = idle::read(tree, cpu).into_iter();
        (cpu, states.map(|state| (state.name, state.time)).collect())
    };
    Ok(present.iter().map(of).collect())
}

/// Time spent in each state meanwhile.
fn spent<'a>(before: &'a IdleTimes, after: &IdleTimes, cpu: CpuId) -> Vec<(&'a str, Microseconds)> {
    let (Some(before), Some(after)) = (before.get(&cpu), after.get(&cpu)) else {
        return Vec::new();
    };
    let pairs = before.iter().zip(after).filter(|(before, after)| before.0 == after.0);
    pairs.map(|(before, after)| (before.0.as_str(), after.1.saturating_sub(before.1))).collect()
}

fn model(arguments: &PowerArguments) -> Result<PowerModel> {
    let Some(path) = &arguments.model else {
        return Ok(PowerModel::default());
    };
    let text = eft_host::named_file::text(path)
        .map_err(|error| anyhow!("{} cannot be read ({error})", path.display()))?;
    let description = Description::parse(&text).with_context(|| path.display().to_string())?;
    description.power.with_context(|| format!("{} has no [power] section", path.display()))
}

fn core_state(machine: &Machine, cpu: &Cpu) -> CoreState {
    let frequency = cpu.frequency.as_ref();
    let range = frequency.and_then(|frequency| Some((frequency.now?, frequency.max?)));
    // The emulated speed and the MSR stop the core; its clock and voltage stay.
    let duty =
        cpu.speed_set.as_ref().filter(|set| set.back_end != "cpufreq").map_or(Share::ALL, |set| set.share);
    CoreState {
        cpu: cpu.cpu,
        frequency: range.map_or(Share::ALL, |(now, max)| now.share_of(max)).min(Share::ALL),
        activity: cpu.load.unwrap_or_default() * duty,
        duty,
        parked: cpu.parked || machine.offline.contains(cpu.cpu),
        residency: Vec::new(),
    }
}

fn describe(power: &Power) -> String {
    let mut text = String::new();
    for domain in &power.measured {
        text += &format!("{}: {:.2} (measured)", domain.domain, domain.power);
        if domain.burner_modelled > Watts::ZERO {
            text += &format!(
                ", {:.2} without the burners' {:.2} (modelled)",
                domain.net(),
                domain.burner_modelled
            );
        }
        text += "\n";
    }
    if let Some(estimate) = &power.modelled {
        let why = if power.measured.is_empty() { "; this machine measures none" } else { "" };
        text += &format!("total {:.2} (modelled{why})\n", estimate.total);
        let asleep = if estimate.package_asleep { ", package asleep" } else { "" };
        text += &format!("uncore {:.2} (modelled{asleep})\n", estimate.uncore);
        let mut rows = vec!["CPU DYNAMIC-W STATIC-W IDLE-W".split(' ').map(String::from).collect()];
        rows.extend(estimate.cores.iter().map(|core| {
            vec![
                core.cpu.to_string(),
                format!("{:.2}", core.dynamic.0),
                format!("{:.2}", core.leaked.0),
                format!("{:.2}", core.idle.0),
            ]
        }));
        text += &columns(&rows);
    }
    for row in &power.sensitivity {
        text += &format!(
            "{} {:.2} to {:.2}: total {:.2} to {:.2}; 1% of it moves the result by {:.2}%\n",
            row.assumption, row.low, row.high, row.total_low.0, row.total_high, row.elasticity
        );
    }
    text
}

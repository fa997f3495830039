//! `eft cpu speed` and `eft cpu emulate`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use eft_cores::description::Description;
use eft_cores::duty::Phase;
use eft_cores::speed::{BackEnd, Setting, Speed, TOLERANCE};
use eft_host::actuators::{burner, held};
use eft_host::sensors::speed::{self, SpeedMeasurement, WakeDelay};
use eft_host::sensors::topology;
use eft_machine::{CpuId, CpuSet, Latency, Share};
use serde::Serialize;

use super::{Context, change, print};

#[derive(Args)]
pub struct SpeedArguments {
    cpus: CpuSet,
    /// 7/8, 0.421, 42.1%, 1200MHz, 1.2GHz, or full
    value: String,
    /// cpufreq, msr or emulated; default: the first of these that comes near
    #[arg(long, value_name = "NAME")]
    back_end: Option<BackEnd>,
    /// Let the stalls of several emulated cores alternate instead of coinciding
    #[arg(long)]
    antiphase: bool,
    /// Do not measure the speed for a second afterwards
    #[arg(long)]
    no_measure: bool,
}

#[derive(Args)]
pub struct EmulateArguments {
    /// A machine description (topologies/machines/*.toml)
    #[arg(required_unless_present = "undo")]
    file: Option<PathBuf>,
    /// Undo the emulation
    #[arg(long, conflicts_with = "file")]
    undo: bool,
    #[arg(long)]
    no_measure: bool,
}

#[derive(Serialize)]
struct Outcome {
    cpu: CpuId,
    #[serde(flatten)]
    setting: Setting,
    phase: Option<String>,
    /// CPUs that share the setting: hardware threads (msr) or the frequency domain (cpufreq).
    shared_with: CpuSet,
    measured: Option<SpeedMeasurement>,
    wake_delay_before: Option<WakeDelay>,
    #[serde(rename = "wake_delay_added_us")]
    wake_delay_added: Option<Latency>,
}

/// Most corrections of the burner until the measured speed is near; each takes a second.
const CALIBRATIONS_MAX: usize = 3;
/// How long the loop runs at full speed first.
const BASELINE: Duration = Duration::from_millis(500);
/// A smaller error is not corrected: half of what is promised.
const NEAR: Share = Share(TOLERANCE.0 / 4.0);

pub fn run(context: &Context, arguments: &SpeedArguments) -> Result<()> {
    let speed: Speed = arguments.value.parse()?;
    let wishes: Vec<(CpuId, Speed)> = arguments.cpus.iter().map(|cpu| (cpu, speed)).collect();
    let phase = if arguments.antiphase { Phase::Antiphase } else { Phase::InPhase };
    let outcomes = set(context, &wishes, arguments.back_end, phase, None, !arguments.no_measure)?;
    show(context, &outcomes)
}

pub fn emulate(context: &Context, arguments: &EmulateArguments) -> Result<()> {
    let Some(file) = arguments.file.as_ref().filter(|_| !arguments.undo) else {
        return change::restore(context);
    };
    let text = eft_host::named_file::text(file)
        .map_err(|error| anyhow!("{} cannot be read ({error})", file.display()))?;
    let description = Description::parse(&text).with_context(|| file.display().to_string())?;
    let present = topology::cpu_sets(&context.host.tree)?.present;
    if let Some(cpu) = description.cpus().minus(&present).first() {
        bail!("{}: CPU {cpu} does not exist (this machine has {present})", file.display());
    }
    let mut wishes = Vec::new();
    for core in description.cores.iter().filter(|core| core.is_slowed()) {
        let speed = core.speed()?;
        wishes.extend(core.cpus.iter().map(|cpu| (cpu, speed)));
    }
    if wishes.is_empty() {
        bail!("{} slows no core, so there is nothing to emulate", file.display());
    }
    let outcomes = set(
        context,
        &wishes,
        None,
        description.phase,
        Some(description.name.clone()),
        !arguments.no_measure,
    )?;
    if !context.json {
        print(&format!(
            "this machine is now: {}; 'eft cpu emulate --undo' takes it back\n",
            description.name
        ))?;
    }
    show(context, &outcomes)
}

fn set(
    context: &Context,
    wishes: &[(CpuId, Speed)],
    back_end: Option<BackEnd>,
    phase: Phase,
    machine: Option<String>,
    measure: bool,
) -> Result<Vec<Outcome>> {
    let live = context.host.tree.is_live();
    let mut session = context.session()?;
    // The baseline, before any change. `set_speeds` below refuses an unmanaged or absent CPU.
    let cpus: CpuSet = wishes.iter().map(|(cpu, _)| *cpu).collect();
    let mut before = BTreeMap::new();
    if measure && live && session.situation()?.check_managed(&cpus).is_ok() {
        let held = session.held().clone();
        for cpu in cpus.iter() {
            if let Some(speed) = held.speeds.get(&cpu) {
                session.full_rates.extend(speed.full_rate.map(|rate| (cpu, rate)));
            } else if let Ok(full) = speed::measure(cpu, BASELINE, None, None) {
                session.full_rates.insert(cpu, full.rate);
                before.insert(cpu, full.wake_delay);
            }
        }
    }
    let rates = session.full_rates.clone();
    let settings = session.set_speeds(wishes, back_end, phase, machine)?;
    let mut measured = BTreeMap::new();
    if measure && live {
        measured = measure_all(context, &settings, &rates)?;
        for _ in 1..CALIBRATIONS_MAX {
            let off: BTreeMap<CpuId, Share> = settings
                .iter()
                .filter(|(_, setting)| setting.back_end == BackEnd::Emulated && setting.share < Share::ALL)
                .filter_map(|(cpu, setting)| Some((*cpu, measured.get(cpu)?.share, setting.share)))
                .filter(|(_, share, asked)| share.differs(*asked, NEAR * *asked))
                .map(|(cpu, share, _)| (cpu, share))
                .collect();
            if off.is_empty() {
                break;
            }
            session.recalibrate(&off)?;
            measured.extend(measure_all(
                context,
                &settings.iter().filter(|(cpu, _)| off.contains_key(cpu)).cloned().collect::<Vec<_>>(),
                &rates,
            )?);
        }
    }
    let held = session.held().clone();
    drop(session);
    let outcome = |(cpu, setting): (CpuId, Setting)| {
        let (measured, before) = (measured.remove(&cpu), before.get(&cpu).copied());
        let added =
            measured.as_ref().zip(before).map(|(after, before)| after.wake_delay.median - before.median);
        Outcome {
            cpu,
            phase: held.speeds.get(&cpu).and_then(|speed| speed.phase.clone()),
            shared_with: shared_with(context, cpu, setting.back_end),
            setting,
            measured,
            wake_delay_before: before,
            wake_delay_added: added,
        }
    };
    Ok(settings.into_iter().map(outcome).collect())
}

/// Measures all at once, as they will be used.
fn measure_all(
    context: &Context,
    settings: &[(CpuId, Setting)],
    rates: &BTreeMap<CpuId, f64>,
) -> Result<BTreeMap<CpuId, SpeedMeasurement>> {
    let second = Duration::from_secs(1);
    let burners = held::load_status(&context.host.dir).burners;
    let start = |cpu: CpuId| {
        let (full_rate, burner) = (rates.get(&cpu).copied(), burners.get(&cpu).copied());
        (cpu, std::thread::spawn(move || speed::measure(cpu, second, full_rate, burner)))
    };
    let threads: Vec<_> = settings.iter().map(|(cpu, _)| start(*cpu)).collect();
    let join = |(cpu, thread): (
        CpuId,
        std::thread::JoinHandle<Result<SpeedMeasurement, eft_host::error::Error>>,
    )| { Ok((cpu, thread.join().map_err(|_| anyhow!("the measurement failed"))??)) };
    threads.into_iter().map(join).collect()
}

fn shared_with(context: &Context, cpu: CpuId, back_end: BackEnd) -> CpuSet {
    let tree = &context.host.tree;
    let all = match back_end {
        BackEnd::Msr => topology::read(tree, cpu).siblings,
        BackEnd::Cpufreq => eft_host::sensors::frequency::read(tree, cpu)
            .map(|frequency| frequency.domain)
            .unwrap_or_default(),
        BackEnd::Emulated => CpuSet::new(),
    };
    all.minus(&CpuSet::one(cpu))
}

fn show(context: &Context, outcomes: &[Outcome]) -> Result<()> {
    if context.json {
        return context.print_json(&outcomes);
    }
    let mut text = String::new();
    for outcome in outcomes {
        let clock = outcome.setting.clock.map_or(String::new(), |clock| format!(" ({clock})"));
        let phase = outcome.phase.as_ref().map_or(String::new(), |phase| format!(", {phase}"));
        text += &format!(
            "CPU {}: {:.4} of full speed by {}{clock}{phase}\n",
            outcome.cpu, outcome.setting.share, outcome.setting.back_end
        );
        if !outcome.shared_with.is_empty() {
            text += &format!("  CPU {} shares this setting\n", outcome.shared_with);
        }
        if let Some(measured) = &outcome.measured {
            let error = (measured.share / outcome.setting.share - 1.0) * 100.0;
            text +=
                &format!("  measured {:.4} over {:.1} s ({error:+.1}%)", measured.share, measured.seconds);
            text += &format!(
                "; others had {:.1}% of the core, with which it is {:.4}\n",
                measured.others.percent(),
                measured.share_seen
            );
            text += &format!(
                "  over 10 ms windows: {:.4} to {:.4}, standard deviation {:.4}\n",
                measured.window_min, measured.window_max, measured.window_deviation
            );
            let added = outcome
                .wake_delay_added
                .map_or(String::new(), |added| format!(", {added:+.0} against before"));
            let delay = measured.wake_delay;
            text += &format!(
                "  wake-up delay: median {:.0}{added}, 99% {:.0}, longest {:.0}\n",
                delay.median, delay.p99, delay.max
            );
        }
    }
    if outcomes
        .iter()
        .any(|outcome| outcome.setting.back_end == BackEnd::Emulated && outcome.setting.share < Share::ALL)
    {
        text += &format!("limits, {}\n", burner::LIMITS);
    }
    print(&text)
}

//! `eft cpu trace -- offline 1`: where the time of a reconfiguration goes, by the kernel's trace events.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use eft_base::Instant;
use eft_cores::gaps::{Gap, Phase, SchedEvent, attribute};
use eft_cores::hotplug::{GroupTime, StepEvent, StepGroup, TimedStep, by_group, pair};
use eft_cores::park::Delays;
use eft_host::actuators::hotplug::HotplugOptions;
use eft_host::actuators::parking::ParkOptions;
use eft_host::actuators::scope::Scope;
use eft_host::sensors::trace::{Event, STACK, Tracer, field};
use eft_machine::{CpuId, CpuSet};
use serde::Serialize;

use super::{Context, columns, print};

#[derive(Args)]
pub struct TraceArguments {
    /// Also draw it, as SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Without expedited grace periods
    #[arg(long)]
    native: bool,
    /// Take it offline even if another program's cpuset names it
    #[arg(long)]
    force: bool,
    /// What to move away when parking: all, or process ids
    #[arg(long, default_value = "all")]
    scope: Scope,
    operation: Operation,
    cpus: CpuSet,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Offline,
    Online,
    Park,
    Unpark,
}

#[derive(Serialize)]
struct Trace {
    operation: Operation,
    cpus: CpuSet,
    total_us: u64,
    groups: Vec<GroupTime>,
    /// Time of the call that no step accounts for, and what threads did meanwhile.
    between_us: u64,
    gaps: Vec<Gap>,
    tasks_moved: usize,
    /// Last switch to a task that is no kernel thread, since the beginning (offline, park).
    entry_us: Option<u64>,
    steps: Vec<TimedStep>,
}

const EVENTS: [&str; 7] = [
    "cpuhp/cpuhp_enter",
    "cpuhp/cpuhp_multi_enter",
    "cpuhp/cpuhp_exit",
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_migrate_task",
    "cgroup/cgroup_attach_task",
];

pub fn run(context: &Context, arguments: &TraceArguments) -> Result<()> {
    if !context.host.tree.is_live() {
        bail!("a recorded machine cannot be traced");
    }
    let mut session = context.session()?;
    let tracer = Tracer::new(&EVENTS, None)?;
    // The stacks of sleeping threads; a kernel without stack traces shows only that a thread slept.
    tracer.record_stacks(&format!(
        "prev_pid == {} || prev_comm ~ \"cpuhp/*\" || prev_comm ~ \"kworker/*\"",
        std::process::id()
    ));
    tracer.start()?;
    let options = HotplugOptions { force: arguments.force, native: arguments.native };
    let outcome = match arguments.operation {
        Operation::Offline => session.offline(&arguments.cpus, options).map(|(latency, _)| latency),
        Operation::Online => session.online(&arguments.cpus, options).map(|(latency, _)| latency),
        Operation::Park => {
            let park = ParkOptions {
                back_end: None,
                scope: arguments.scope.clone(),
                spread: Vec::new(),
                managed: context.host.managed.clone(),
                force: arguments.force,
            };
            session.park(&arguments.cpus, &park, Delays::default(), false).map(|parked| parked.latency)
        }
        Operation::Unpark => session.unpark(&arguments.cpus).map(|(latency, _)| latency),
    };
    tracer.stop()?;
    let latency = outcome?;
    let events = tracer.read()?;
    // Set-up and recovery come before the operation itself.
    let trace = analyse(arguments, &events, session.began, latency);
    if let Some(path) = &arguments.picture {
        std::fs::write(path, draw(&trace))
            .map_err(|error| anyhow!("{} cannot be written ({error})", path.display()))?;
    }
    if context.json { context.print_json(&trace) } else { print(&describe(&trace)) }
}

fn analyse(arguments: &TraceArguments, events: &[Event], begin: Instant, total: Duration) -> Trace {
    let steps: Vec<StepEvent> = events.iter().filter_map(step_event).collect();
    let steps = pair(&steps, begin);
    let groups = by_group(&steps);
    let gaps = gaps(events, &steps, begin, total);
    let migrated = |event: &&Event| {
        event.name == "sched_migrate_task"
            && field(&event.fields, "orig_cpu=")
                .and_then(|cpu| cpu.parse().ok())
                .is_some_and(|cpu| arguments.cpus.contains(cpu))
    };
    let leaves = matches!(arguments.operation, Operation::Offline | Operation::Park);
    let is_user_switch = |event: &&Event| {
        event.name == "sched_switch"
            && arguments.cpus.contains(event.cpu)
            && eft_host::sensors::trace::switches_to_user(event)
    };
    let entry = events.iter().filter(is_user_switch).map(|event| event.at).filter(|at| *at >= begin).max();
    Trace {
        operation: arguments.operation,
        cpus: arguments.cpus.clone(),
        total_us: micros(total),
        between_us: gaps.iter().map(|gap| micros(gap.duration)).sum(),
        gaps,
        groups,
        tasks_moved: events.iter().filter(migrated).count(),
        entry_us: if leaves { Some(entry.map_or(0, |at| micros(at - begin))) } else { None },
        steps,
    }
}

/// Gaps of the threads that worked on it: of the caller, and of those that ran a step.
fn gaps(events: &[Event], steps: &[TimedStep], begin: Instant, total: Duration) -> Vec<Gap> {
    let caller = std::process::id() as i32;
    let mut workers: Vec<i32> =
        events.iter().filter(|event| event.name.starts_with("cpuhp_")).map(|event| event.pid).collect();
    workers.sort_unstable();
    workers.dedup();
    workers.retain(|tid| *tid != caller);
    let scheduled: Vec<SchedEvent> = events.iter().filter_map(scheduled).collect();
    let spans: Vec<(Instant, Instant)> =
        steps.iter().map(|step| (begin + step.begin, begin + step.begin + step.whole)).collect();
    attribute(&scheduled, &spans, (begin, begin + total), caller, &workers)
}

/// As whole microseconds, the resolution of traces.
fn micros(length: Duration) -> u64 {
    length.as_micros() as u64
}

fn scheduled(event: &Event) -> Option<SchedEvent> {
    let number = |key: &str| field(&event.fields, key)?.parse().ok();
    let at = event.at;
    match event.name.as_str() {
        "sched_switch" => Some(SchedEvent::Switch {
            at,
            prev: event.pid,
            runnable: field(&event.fields, "prev_state=")?.starts_with('R'),
            next: number("next_pid=")?,
        }),
        "sched_waking" => Some(SchedEvent::Wake { at, tid: number("pid=")? }),
        STACK => Some(SchedEvent::Stack {
            at,
            tid: event.pid,
            functions: event.fields.split_whitespace().map(String::from).collect(),
        }),
        _ => None,
    }
}

fn step_event(event: &Event) -> Option<StepEvent> {
    let number = |key: &str| field(&event.fields, key)?.parse::<u32>().ok();
    let function = match event.name.as_str() {
        "cpuhp_enter" | "cpuhp_multi_enter" => {
            Some(event.fields.split_once('(')?.1.trim_end_matches(')').to_string())
        }
        "cpuhp_exit" => None,
        _ => return None,
    };
    Some(StepEvent { at: event.at, cpu: CpuId(number("cpu:")?), step: number("step:")?, function })
}

fn describe(trace: &Trace) -> String {
    let mut text = format!("{:?} CPU {}: {} us\n", trace.operation, trace.cpus, trace.total_us)
        .to_lowercase()
        .replace("cpu", "CPU");
    let share = |us: u64| format!("{:.1}%", us as f64 * 100.0 / trace.total_us.max(1) as f64);
    let mut rows: Vec<Vec<String>> = vec![["GROUP", "STEPS", "US", "SHARE"].map(String::from).to_vec()];
    for group in &trace.groups {
        rows.push(vec![
            group.group.name().into(),
            group.steps.to_string(),
            micros(group.duration).to_string(),
            share(micros(group.duration)),
        ]);
    }
    rows.push(vec![
        "outside of the steps".into(),
        "-".into(),
        trace.between_us.to_string(),
        share(trace.between_us),
    ]);
    text += &columns(&rows);
    let mut gaps: Vec<&Gap> = trace.gaps.iter().filter(|gap| micros(gap.duration) > 0).collect();
    gaps.sort_by_key(|gap| (gap.phase, std::cmp::Reverse(gap.duration)));
    let row = |gap: &&Gap| {
        let phase = match gap.phase {
            Phase::Before => "  before the first step",
            Phase::Between => "  between",
            Phase::After => "  after the last step",
        };
        vec![
            phase.into(),
            gap.what.clone(),
            format!("{} us", micros(gap.duration)),
            share(micros(gap.duration)),
        ]
    };
    text += &columns(&gaps.iter().map(row).collect::<Vec<_>>());
    text += &format!("{} tasks moved", trace.tasks_moved);
    if let Some(entry) = trace.entry_us {
        text += &format!("; last switch to a task that is no kernel thread after {entry} us");
    }
    text += "\n";
    let mut longest: Vec<&TimedStep> = trace.steps.iter().filter(|step| micros(step.duration) > 0).collect();
    longest.sort_by_key(|step| std::cmp::Reverse(step.duration));
    if !longest.is_empty() {
        text += "longest steps\n";
        let row = |step: &&TimedStep| {
            vec![
                format!("  {}", step.function),
                format!("CPU {}", step.cpu),
                format!("{} us", micros(step.duration)),
                step.group.name().into(),
            ]
        };
        text += &columns(&longest.iter().take(12).map(row).collect::<Vec<_>>());
    }
    text
}

/// A bar, split by group, over a time line of the steps.
fn draw(trace: &Trace) -> String {
    const WIDTH: f64 = 900.0;
    let colour = |group: StepGroup| match group {
        StepGroup::GracePeriods => "#d1495b",
        StepGroup::StopMachine => "#edae49",
        StepGroup::ThreadParking => "#00798c",
        StepGroup::PerCpuAllocation => "#30638e",
        StepGroup::SysfsNodes => "#8f6593",
        StepGroup::HardwareStart => "#5b8c5a",
        StepGroup::Interrupts => "#c97b63",
        StepGroup::Other => "#9a9a9a",
    };
    let scale = WIDTH / trace.total_us.max(1) as f64;
    let mut shapes = String::new();
    let mut x = 50.0;
    for (index, group) in trace.groups.iter().enumerate() {
        let width = micros(group.duration) as f64 * scale;
        let (fill, y) = (colour(group.group), 150 + index * 20);
        shapes += &format!("<rect x='{x:.1}' y='40' width='{width:.1}' height='30' fill='{fill}'/>\n");
        shapes += &format!("<rect x='50' y='{y}' width='12' height='12' fill='{fill}'/>");
        shapes += &format!(
            "<text x='70' y='{}'>{}: {} us in {} steps</text>\n",
            y + 11,
            group.group.name(),
            micros(group.duration),
            group.steps
        );
        x += width;
    }
    for step in &trace.steps {
        let (from, width) =
            (50.0 + micros(step.begin) as f64 * scale, (micros(step.duration) as f64 * scale).max(0.5));
        shapes += &format!(
            "<rect x='{from:.1}' y='90' width='{width:.1}' height='30' fill='{}'>",
            colour(step.group)
        );
        shapes += &format!(
            "<title>{} CPU {}: {} us</title></rect>\n",
            escape(&step.function),
            step.cpu,
            micros(step.duration)
        );
    }
    let height = 170 + trace.groups.len() * 20;
    let title = format!(
        "{:?} CPU {}: {} us, {} us outside of the steps",
        trace.operation, trace.cpus, trace.total_us, trace.between_us
    );
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='1000' height='{height}' font-family='sans-serif' font-size='12'>\n<rect width='1000' height='{height}' fill='white'/>\n<text x='50' y='25' font-size='14'>{title}</text>\n{shapes}</svg>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

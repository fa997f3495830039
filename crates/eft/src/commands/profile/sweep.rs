//! `eft profile sweep`: a load over the configurations of a running stack.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use eft_cores::indicators::Mix;
use eft_cores::plan::Plan;
use eft_cores::platform::Platform;
use eft_cores::profile::sweep::{Achieved, Configuration, StepMatching, exhaustive};
use eft_cores::profile::{Outcome, Profiles};
use eft_cores::throughput::Throughput;
use eft_machine::{CpuSet, Latency, Watts};
use serde_json::json;

use super::load::{Load, Reported};
use eft_bench::ground::{End, Ground, Wish};
use eft_bench::samples::Samples;
use eft_bench::watch::{Seen, Watch};
use eft_bench::{SWEEP_ROUNDS, store};

/// How long a load may take to move its first byte.
const START: Duration = Duration::from_secs(3);

#[derive(clap::Args, Debug)]
pub struct SweepArguments {
    #[command(flatten)]
    stack: crate::commands::Stack,
    /// Name of the load in the file; default: the program's name
    #[arg(long)]
    load: Option<String>,
    /// All configurations, or step matching: raise the busiest, then the others when that stops helping
    #[arg(long, value_parser = ["exhaustive", "steps"], default_value = "exhaustive")]
    search: String,
    /// Seconds for which each configuration is measured
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seconds before that, in which connections begin and windows open
    #[arg(long, default_value_t = 0.5)]
    settle: f64,
    /// How often each configuration is measured; the medians are recorded. An exhaustive search measures
    /// all of them in turn, since other work on a machine comes in bursts
    #[arg(long, default_value_t = SWEEP_ROUNDS, value_parser = clap::value_parser!(u8).range(1..=99))]
    rounds: u8,
    /// Slow CPUs by a real-time thread where the hardware offers nothing else
    #[arg(long)]
    emulate_speeds: bool,
    /// Number of speeds of each CPU, if they are emulated
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    levels: u8,
    /// CPUs that may be used and slowed; default: those that the stack manages
    #[arg(long)]
    managed: Option<CpuSet>,
    /// The command that makes the load for $EFT_SECONDS; its last line may say throughput=… latency_us=…
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

/// Longer names would make tables unreadable.
const NAME_MAX: usize = 40;

/// One measured configuration.
#[derive(Clone)]
struct Point {
    plan: Plan,
    seen: Seen,
    reported: Reported,
}

pub fn run(arguments: &SweepArguments, file: Option<&PathBuf>, as_json: bool) -> Result<()> {
    let times = [("--seconds", arguments.seconds, 0.05), ("--settle", arguments.settle, 0.0)];
    for (option, value, least) in times {
        if !(value >= least && value <= 3600.0) {
            bail!("{option} {value}: it must be from {least} to 3600 s");
        }
    }
    let name = load_name(arguments)?;
    let machine = store::this_machine()?;
    let end = End::new()?;
    let wish = Wish {
        managed: arguments.managed.clone(),
        emulated_levels: if arguments.emulate_speeds { usize::from(arguments.levels) } else { 0 },
    };
    let mut ground = Ground::take(&arguments.stack.name, &wish)?;
    let path = file.cloned().unwrap_or_else(|| told_file(&ground));
    // A file that cannot be used is an error now, not after an hour.
    store::read_or_new(&path, &machine)?;
    let mut sweep = Sweep { arguments, end: &end, points: Vec::new(), quiet: as_json };
    let outcome = sweep.all(&mut ground);
    let points = medians(&sweep.points);
    drop(ground);
    if points.is_empty() {
        return outcome;
    }
    let mut profiles = store::read_or_new(&path, &machine)?;
    record(&mut profiles, &name, &points);
    store::write(&path, &profiles, &machine)?;
    tell(&name, &path, &points, as_json);
    outcome
}

fn load_name(arguments: &SweepArguments) -> Result<String> {
    let program = || Path::new(&arguments.command[0]).file_name().map(|n| n.to_string_lossy().into_owned());
    let name = arguments.load.clone().or_else(program).unwrap_or_default();
    if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
        bail!("`{}` is no name of a load: --load NAME, at most {NAME_MAX} bytes", name.escape_debug());
    }
    Ok(name)
}

/// The file that the stack's `profile` policy would use.
fn told_file(ground: &Ground) -> PathBuf {
    let reported = ground.scheduling.as_ref().and_then(|s| s["profiles"].as_str());
    PathBuf::from(reported.unwrap_or(store::DEFAULT))
}

struct Sweep<'a> {
    arguments: &'a SweepArguments,
    end: &'a End,
    points: Vec<Point>,
    quiet: bool,
}

impl Sweep<'_> {
    fn all(&mut self, ground: &mut Ground) -> Result<()> {
        let mut watch = Watch::new(&ground.stack, &ground.managed(), crate::commands::stat::counters_of)?;
        if self.arguments.search == "steps" {
            let mut search = StepMatching::new(&ground.platform, ground.spare);
            let mut next = search.next_configuration(None);
            while let Some(configuration) = next {
                let first = self.points.len();
                for _ in 0..self.arguments.rounds {
                    self.one(ground, &mut watch, &configuration, None)?;
                }
                next = search.next_configuration(medians(&self.points[first..]).first().map(Point::achieved));
            }
            return Ok(());
        }
        let all = exhaustive(&ground.platform, ground.spare);
        for _ in 0..self.arguments.rounds {
            for configuration in &all {
                let count = all.len() * usize::from(self.arguments.rounds);
                self.one(ground, &mut watch, configuration, Some(count))?;
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        ground: &mut Ground,
        watch: &mut Watch,
        configuration: &Configuration,
        of: Option<usize>,
    ) -> Result<()> {
        let SweepArguments { seconds, settle, command, .. } = self.arguments;
        self.end.check()?;
        ground.apply(&configuration.plan)?;
        let mut load = Load::start(command, seconds + settle)?;
        self.end.sleep(Duration::from_secs_f64(*settle))?;
        load.check()?;
        let seen = self.measure(watch, &ground.platform, &configuration.plan, &mut load)?;
        let reported = load.finish(self.end)?;
        if !self.quiet {
            let number = self.points.len() + 1;
            let count = of.map_or_else(|| number.to_string(), |of| format!("{number}/{of}"));
            println!(
                "{count}: {:.1} Mbyte/s delivered, {:.1}{} [{}] {}",
                seen.throughput.0 / 1e6,
                seen.power,
                if seen.metered { "" } else { " modelled" },
                seen.indicators,
                configuration.name,
            );
        }
        if seen.throughput == Throughput::NONE {
            bail!("the load sent nothing through this stack, so there is nothing to record");
        }
        self.points.push(Point { plan: configuration.plan.clone(), seen, reported });
        Ok(())
    }

    /// On a machine that others fill, a program may take longer to begin than the user gave it. So a time in which
    /// nothing moved is followed by another, for as long as the load runs, up to [`START`].
    fn measure(&self, watch: &mut Watch, platform: &Platform, plan: &Plan, load: &mut Load) -> Result<Seen> {
        let begin = Instant::now();
        let time = Duration::from_secs_f64(self.arguments.seconds);
        loop {
            let seen = watch.window(self.end, platform, plan, time)?;
            if seen.throughput > Throughput::NONE || begin.elapsed() > START || load.has_ended() {
                return Ok(seen);
            }
        }
    }
}

impl Point {
    fn achieved(&self) -> Achieved {
        let throughput = self.reported.throughput.unwrap_or(self.seen.throughput);
        Achieved { throughput, busy: self.seen.busy.clone() }
    }
}

/// One point for each configuration, in the order of the first measurement: the medians of the figures that decide, the
/// other figures from the last measurement.
fn medians(points: &[Point]) -> Vec<Point> {
    let mut groups: Vec<Vec<&Point>> = Vec::new();
    for point in points {
        match groups.iter_mut().find(|group| group[0].plan.is_same(&point.plan)) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    let merge = |group: &Vec<&Point>| {
        let median = |of: &dyn Fn(&Point) -> f64| Samples::new(group.iter().map(|p| of(p)).collect()).median;
        // A figure counts only if every run reported it.
        let reported = |of: fn(&Reported) -> Option<f64>| {
            let all: Option<Vec<f64>> = group.iter().map(|p| of(&p.reported)).collect();
            all.map(|all| Samples::new(all).median)
        };
        let mut point = Point::clone(group[group.len() - 1]);
        point.seen.throughput = Throughput(median(&|p| p.seen.throughput.0));
        point.seen.power = Watts(median(&|p| p.seen.power.0));
        point.reported = Reported {
            throughput: reported(|t| Some(t.throughput?.0)).map(Throughput),
            latency: reported(|t| Some(t.latency?.0)).map(Latency),
        };
        point
    };
    groups.iter().map(merge).collect()
}

/// Profiles count what tcp and udp deliver, since that is what the policy sees. If the load reports its own throughput,
/// that decides between configurations; it is scaled to the average of what was delivered.
fn record(profiles: &mut Profiles, name: &str, points: &[Point]) {
    let delivered: Throughput = points.iter().map(|p| p.seen.throughput).sum();
    let reported: Option<Throughput> = points.iter().map(|p| p.reported.throughput).sum();
    let unit = reported.filter(|reported| *reported > Throughput::NONE).map(|reported| delivered / reported);
    for point in points {
        let throughput = match (unit, point.reported.throughput) {
            (Some(unit), Some(reported)) => reported * unit,
            _ => point.seen.throughput,
        };
        let outcome = Outcome {
            throughput,
            latency: point.reported.latency,
            power: point.seen.power,
            modelled: !point.seen.metered,
            guessed: false,
            plan: point.plan.clone(),
        };
        profiles.record(name, mean_mix(points), outcome);
    }
}

fn mean_mix(points: &[Point]) -> Mix {
    let mean = |of: fn(&Mix) -> f64| {
        points.iter().map(|p| of(&p.seen.mix)).sum::<f64>() / points.len().max(1) as f64
    };
    Mix {
        size: mean(|m| m.size),
        empty: mean(|m| m.empty),
        received: mean(|m| m.received),
        connections: mean(|m| m.connections),
        overhead: mean(|m| m.overhead),
        parallel: mean(|m| m.parallel),
    }
}

fn tell(name: &str, path: &Path, points: &[Point], as_json: bool) {
    if as_json {
        let row = |p: &Point| {
            json!({ "plan": p.plan.to_string(), "throughput": p.seen.throughput, "told": p.reported.throughput,
                    "latency_us": p.reported.latency, "power_w": p.seen.power, "modelled": !p.seen.metered })
        };
        let rows: Vec<_> = points.iter().map(row).collect();
        println!("{}", json!({ "load": name, "file": path, "configurations": rows }));
        return;
    }
    println!("{} configurations of load `{name}` are in {}", points.len(), path.display());
}

#[cfg(test)]
mod tests;

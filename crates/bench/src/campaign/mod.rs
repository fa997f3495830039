//! `eft bench campaign`: breaks every component in every way under mixed load, and reports the effect on connections.
//!
//! The measures are NewtOS's (Hruby et al., "Keep Net Working", DSN 2012, section VI): how many faults were not
//! noticed, how many cost connections, how many a restart by hand. The faults are those of `eft inject`.

mod blame;
mod checksums;
mod component;
mod content;
mod evidence;
mod judge;
mod late;
mod loads;
mod part;
mod picture;
mod plan;
mod programs;
mod pulse;
mod report;
pub mod server;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use eft_base::Random;
use eft_linux::inject::{FREE, KINDS, Kind, SUPERVISOR, Strike, in_stack, inject};
use eft_linux::operator;
use serde_json::{Value, json};

use super::interrupt;
use super::service::Service;
use super::stolen::Stolen;
use blame::{Watch, counted};
use checksums::Checksums;
use component::Component;
use judge::{Outcome, Trial};
use loads::Loads;
use plan::Plan;
use pulse::{AFTER, Pulse};

#[derive(clap::Args)]
pub struct CampaignArguments {
    /// Effective faults of each kind in each component (default: 100, with --quick 5)
    #[arg(long)]
    faults: Option<u64>,
    /// Faults of each kind in each component at most, effective or not (default: three times --faults, with --quick as many)
    #[arg(long, value_name = "FAULTS")]
    most: Option<u64>,
    /// Few faults of each kind, in ten minutes
    #[arg(long)]
    quick: bool,
    /// Only this component (may be repeated)
    #[arg(long)]
    component: Vec<String>,
    /// Only this kind (may be repeated); `eft inject --list` shows all
    #[arg(long)]
    kind: Vec<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for pictures of the throughput, a list of all faults (faults.json), and what is seen of connections that
    /// stand still (stuck-SEED.txt)
    #[arg(long)]
    report: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

/// How long a server that should be replaced may take to be.
const REBIRTH: Duration = Duration::from_secs(20);
/// How long a fault that kills no component at once is watched.
const WATCH: Duration = Duration::from_millis(400);
/// By then every part of the load has achieved something again; time-outs of TCP double from 0.2 s.
const REVIVAL: Duration = Duration::from_secs(8);

pub fn run(arguments: &CampaignArguments) -> Result<()> {
    let kinds: Vec<Kind> = match arguments.kind.is_empty() {
        true => KINDS.iter().map(|(_, kind, _)| *kind).collect(),
        false => arguments.kind.iter().map(|name| Kind::parse(name)).collect::<Result<_, _>>()?,
    };
    let count = arguments.faults.unwrap_or(if arguments.quick { 5 } else { 100 });
    if let Some(folder) = &arguments.report {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let (stolen, begin) = (Stolen::begin(None), Instant::now());
    interrupt::heed();
    let campaign = Campaign::start(Checksums::Device, arguments.report.as_deref())?;
    let all = campaign.components()?;
    let wanted = |name: &&Component| {
        arguments.component.is_empty()
            || arguments.component.iter().any(|c| *c == name.name || *c == name.short())
    };
    let components: Vec<String> = all.iter().filter(wanted).map(|c| c.name.clone()).collect();
    if components.is_empty() {
        let names: Vec<_> = all.iter().map(Component::short).collect();
        bail!("there is no such component; there are: {}", names.join(", "));
    }
    let mut trials = Vec::new();
    let most = arguments.most.unwrap_or(if arguments.quick { count } else { 3 * count });
    let plan = Plan { seed: arguments.seed, count, most, components, kinds };
    let ended = carry_out(&plan, campaign, &mut trials);
    // A report of what was tried is worth having, too.
    if ended.is_err() && trials.is_empty() {
        return ended;
    }
    let took = begin.elapsed();
    let remarks: Vec<String> = plan.lacking(&trials).into_iter().chain([stolen.describe()]).collect();
    let whole = arguments.quick && arguments.component.is_empty() && arguments.kind.is_empty();
    let quick = whole.then_some(took);
    let reported = report::print(&trials, quick, remarks, arguments.report.as_deref(), arguments.json);
    ended.and(reported)
}

/// Adds what came of each fault to `trials`.
fn carry_out(plan: &Plan, mut campaign: Campaign, trials: &mut Vec<Trial>) -> Result<()> {
    for series in plan.series() {
        let (component, kind, first) = (series.component, series.kind, trials.len());
        if campaign.checksums != series.checksums {
            campaign = campaign.anew(series.checksums)?;
        }
        while plan.goes_on(&trials[first..]) {
            let turn = (trials.len() - first) as u64;
            if kind.counts() && turn > 0 && turn.is_multiple_of(u64::from(FREE)) {
                // A stack that has seen no failure: otherwise each restart would wait twice as long as the last one.
                campaign = campaign.anew(series.checksums)?;
            }
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(trials.len() as u64 * 101 + turn);
            let trial = campaign.attempt(component, kind, seed)?;
            if trial.outcome != Outcome::Transparent || trial.others_died > 0 {
                eprintln!("campaign: {trial}");
            }
            if trial.is_hopeless {
                campaign = campaign.anew(series.checksums)?;
            }
            trials.push(trial);
        }
    }
    Ok(())
}

/// Waits a moment for what others do, unless this process is to end.
fn nap() -> Result<()> {
    interrupt::check()?;
    std::thread::sleep(Duration::from_millis(4));
    Ok(())
}

struct Campaign {
    checksums: Checksums,
    pulse: Pulse,
    loads: std::sync::Arc<Loads>,
    service: Service,
    _folder: tempfile::TempDir,
    /// Where evidence is kept.
    report: Option<PathBuf>,
    /// Supervisors that were replaced by hand because they gave no sensible answer.
    senseless: Cell<u64>,
}

impl Campaign {
    fn start(checksums: Checksums, report: Option<&Path>) -> Result<Campaign> {
        let folder = tempfile::tempdir()?;
        let service = Service::start(checksums.device(), folder.path())?;
        // A filter without rules is asked nothing, and so sends nothing in which a fault could show.
        let rules = json!({ "op": "pf-load", "rules": "pass all\n" });
        eft_linux::operator::ask(&service.name, &rules).context("the rules of the filter")?;
        let loads = std::sync::Arc::new(Loads::start(&service.name, folder.path())?);
        let pulse = Pulse::start(&loads);
        let report = report.map(Path::to_path_buf);
        let campaign =
            Campaign { checksums, pulse, loads, service, _folder: folder, report, senseless: Cell::new(0) };
        match campaign.revives(&vec![0; campaign.loads.parts.len()], REBIRTH)? {
            true => Ok(campaign),
            false => {
                bail!("before any fault nothing comes of: {}", campaign.stuck(&[0; 16]).join(", "))
            }
        }
    }

    /// The same with another stack.
    fn anew(mut self, checksums: Checksums) -> Result<Campaign> {
        let report = self.report.take();
        drop(self);
        Campaign::start(checksums, report.as_deref())
    }

    fn components(&self) -> Result<Vec<Component>> {
        let answer = self.ask(&json!({ "op": "ps" }))?;
        let (lives, is_ready) = self.service.supervisor();
        let supervisor = Component { name: SUPERVISOR.into(), generation: lives, runs: is_ready };
        let servers = answer["components"].as_array().into_iter().flatten().map(Component::read);
        Ok(servers.chain([supervisor]).collect())
    }

    /// Asks the supervisor, which may just have died or hang. One that gives no sensible answer for long is replaced.
    fn ask(&self, request: &Value) -> Result<Value> {
        self.ask_patiently(request).or_else(|_| {
            interrupt::check()?;
            self.senseless.set(self.senseless.get() + 1);
            self.service.replace_supervisor();
            self.ask_patiently(request)
        })
    }

    fn ask_patiently(&self, request: &Value) -> Result<Value> {
        let until = Instant::now() + REBIRTH;
        loop {
            match operator::ask(&self.service.name, request) {
                Ok((answer, _)) => return Ok(answer),
                Err(why) if Instant::now() > until => return Err(why.into()),
                Err(_) => nap()?,
            }
        }
    }

    /// A damaged supervisor may not name it.
    fn generation(&self, name: &str) -> Result<(u64, bool)> {
        let all = self.components()?;
        Ok(all.iter().find(|c| c.name == name).map_or((0, false), |c| (c.generation, c.runs)))
    }

    /// Waits for a successor of `name` at work.
    fn is_reborn(&self, name: &str, after: u64, limit: Duration) -> Result<bool> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if let (generation, true) = self.generation(name)?
                && generation > after
            {
                return Ok(true);
            }
            nap()?;
        }
        Ok(false)
    }

    /// Whether every part of the load achieves something more than `before`.
    fn revives(&self, before: &[u64], limit: Duration) -> Result<bool> {
        let until = Instant::now() + limit;
        loop {
            if self.loads.progress().iter().zip(before).all(|(now, then)| now > then) {
                return Ok(true);
            }
            if Instant::now() > until {
                return Ok(false);
            }
            nap()?;
        }
    }

    /// The parts that achieve nothing.
    fn stuck(&self, before: &[u64]) -> Vec<&'static str> {
        let now = self.loads.progress();
        let all = self.loads.parts.iter().zip(now.iter().zip(before));
        all.filter(|(_, (now, then))| now <= then).map(|(part, _)| part.name).collect()
    }

    fn kill(&self, component: &str) -> Result<bool> {
        let (generation, _) = self.generation(component)?;
        match component {
            SUPERVISOR => {
                let pid = self.ask(&json!({ "op": "ps" }))?["pid"].as_u64().unwrap_or_default();
                inject(pid as u32, Kind::Kill, &mut Random::new(0))?;
            }
            _ => drop(self.ask(&json!({ "op": "kill", "component": component }))?),
        }
        self.is_reborn(component, generation, REBIRTH)
    }

    /// Breaks a component.
    fn inject(&self, component: &str, kind: Kind, seed: u64) -> Result<Strike> {
        if component != SUPERVISOR {
            return Ok(in_stack(&self.service.name, component, kind, seed)?.strike);
        }
        // The supervisor is this process's child: as its debugger, too, it would take its stops for its end.
        let (mut command, asked) = (Command::new(super::stack::exe()?), Instant::now());
        command.args(["inject", "--json", "--name", &self.service.name, component, kind.name()]);
        let output = command.args(["--seed", &seed.to_string()]).output().context("eft inject")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let said: Value = serde_json::from_slice(&output.stdout).context("eft inject")?;
        Ok(Strike { what: said["what"].as_str().unwrap_or_default().into(), at: asked, durable: None })
    }

    /// Injects one fault and reports the outcome.
    fn attempt(&mut self, component: &str, kind: Kind, seed: u64) -> Result<Trial> {
        let before = self.components()?;
        let generation = before.iter().find(|c| c.name == component).map_or(0, |c| c.generation);
        let (lost, damaged, answers) =
            (self.loads.lost(), self.loads.damaged(), self.loads.answers(Instant::now()).0);
        let mut trial = Trial::new(component, kind, seed, self.loads.established());
        trial.checksums = self.checksums;
        let (holes, found_wrong) = (self.holes(), self.found_wrong(kind));
        let mut watch = Watch::begin(&self.service.name, component, kind)?;
        let mut begin = self.pulse.now();
        match self.inject(component, kind, seed) {
            Ok(strike) => {
                // What stands still while a debugger leads a server to where it breaks does not wait for a successor.
                begin = self.pulse.time(strike.at);
                watch.struck(&strike);
                trial.what = strike.what;
            }
            // A server that has nothing to break, or did nothing meanwhile: no fault, and no success either.
            Err(why) => {
                trial.what = why.to_string();
                trial.struck = false;
            }
        }
        trial.died = self.is_reborn(component, generation, if kind.is_deadly() { REBIRTH } else { WATCH })?;
        let is_latent = !trial.died && kind.fault().is_none() && kind != Kind::Enomem && trial.struck;
        if is_latent {
            trial.pause = self.pulse.pause(begin);
            // It must not affect the next trial.
            self.kill(component)?;
        }
        self.help_if_stuck(&mut trial)?;
        if !is_latent {
            // Connections may stand still for longer than the component is gone: a time-out of TCP is 200 ms.
            self.watch_until(begin + AFTER)?;
            trial.pause = self.pulse.pause(begin);
            trial.holes = holes.zip(self.holes()).map_or(0, |(then, now)| now.saturating_sub(then));
        }
        let after = self.components()?;
        let reborn = |c: &&Component| {
            let then = before.iter().find(|b| b.name == c.name).map_or(0, |b| b.generation);
            c.name != component && c.generation > then
        };
        trial.blame = watch.end(self.generation(component)?.0)?;
        trial.helped += self.senseless.take();
        // If we replaced components ourselves, their deaths do not count.
        trial.others_died = if trial.helped > 1 { 0 } else { after.iter().filter(reborn).count() as u64 };
        trial.lost = self.loads.lost().iter().zip(&lost).map(|(now, then)| now - then).collect();
        trial.lost_parts = self
            .loads
            .parts
            .iter()
            .zip(&trial.lost)
            .filter(|(_, lost)| **lost > 0)
            .map(|(part, lost)| format!("{lost} of {} ({})", part.name, part.last_ends(*lost)))
            .collect();
        trial.damaged = self.loads.damaged() - damaged;
        let now = found_wrong.and_then(|then| Some((then, self.found_wrong(kind)?)));
        trial.found_wrong = now.map_or(0, |(then, now)| now.saturating_sub(then));
        let (all, late) = self.loads.answers(self.pulse.instant(begin));
        trial.answers = (all - answers, late);
        trial.window = self.pulse.window(begin);
        trial.judge();
        Ok(trial)
    }

    /// Segments that came to tcp out of order so far, if the supervisor says that now.
    fn holes(&self) -> Option<u64> {
        counted(&self.service.name, "tcp", "out_of_order_segments").ok()
    }

    /// Packets so far whose checksum was found wrong, where payload is hit, if the supervisor says that now.
    fn found_wrong(&self, kind: Kind) -> Option<u64> {
        (kind == Kind::FlipPayload).then(|| checksums::found_wrong(&self.service.name).ok()).flatten()
    }

    /// Waits until this time of the pulse.
    fn watch_until(&self, time: Duration) -> Result<()> {
        while self.pulse.now() < time {
            nap()?;
        }
        Ok(())
    }

    /// If the load does not continue by itself: replaces the component, then every other one, as an operator would.
    fn help_if_stuck(&self, trial: &mut Trial) -> Result<()> {
        let before = self.loads.progress();
        if self.revives(&before, REVIVAL)? {
            return Ok(());
        }
        trial.stuck = self.stuck(&before).iter().map(ToString::to_string).collect();
        if let Some(folder) = &self.report {
            evidence::keep(&self.service.name, folder, &format!("stuck-{}", trial.seed))?;
        }
        let others: Vec<String> = self.components()?.into_iter().map(|c| c.name).collect();
        let rest = others.iter().filter(|name| **name != trial.component);
        for name in std::iter::once(&trial.component).chain(rest) {
            trial.helped += 1;
            let before = self.loads.progress();
            if self.kill(name)? && self.revives(&before, REVIVAL)? {
                return Ok(());
            }
        }
        trial.is_hopeless = true;
        Ok(())
    }
}

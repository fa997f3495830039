//! `eft vm`: virtual machines, or programs like them, on cores that differ.

mod advise;
mod config;
mod run;
mod show;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use eft_host::guests::discover::GroupSpec;
use eft_host::guests::session::{STATE_DIR, Settings};
use eft_host::journal;
use eft_host::sensors::Tree;
use eft_machine::CpuSet;
use eft_vcpu::options::{Policy, Score};

#[derive(Args)]
pub struct VmArguments {
    #[command(subcommand)]
    command: VmCommand,
}

#[derive(Subcommand)]
enum VmCommand {
    /// Show the guests, and the role of each thread
    Watch(watch::WatchArguments),
    /// Schedule their vCPUs until interrupted; then every affinity is restored
    Run(run::RunArguments),
    /// Show what a running `eft vm run` does
    Top(show::TopArguments),
    /// Watch without changing anything, and say what a policy would do and gain
    Advise(advise::AdviseArguments),
    /// Restore the affinity of every thread that an ended instance left behind
    Restore(RestoreArguments),
}

/// What to manage, and where.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Control socket of a QEMU; may be repeated. Those on QEMU's command lines are found anyway
    #[arg(long, value_name = "PATH")]
    qmp: Vec<PathBuf>,
    /// Manage a cgroup or processes as if they were a guest: NAME=/sys/fs/cgroup/… or NAME=12,34; may be repeated
    #[arg(long, value_name = "NAME=WHAT")]
    group: Vec<GroupSpec>,
    /// Only the QEMU guest of this name; may be repeated. Default: all
    #[arg(long, value_name = "NAME", conflicts_with = "groups_only")]
    guest: Vec<String>,
    /// Leave QEMU guests alone
    #[arg(long)]
    groups_only: bool,
    /// CPUs to deal out (such as 0-3,8); default: all
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Guests' weights, caps, CPUs; and defaults for these options
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the journal and the status lie
    #[arg(long, value_name = "DIR", default_value = STATE_DIR)]
    state_dir: PathBuf,
    /// Where `eft cpu` keeps its state
    #[arg(long, value_name = "DIR", default_value = journal::STATE_DIR, hide = true)]
    cpu_state_dir: PathBuf,
    #[arg(long)]
    json: bool,
}

/// How to decide.
#[derive(Args, Clone, Debug)]
pub struct Deciding {
    /// amp-vm, amp-vcpu, amp-fair, amp-fair:R, adaptive-fair or adaptive-fair:P
    #[arg(long)]
    policy: Option<Policy>,
    /// predicted (IPC as on a fast core) or paper (the raw product)
    #[arg(long)]
    score: Option<Score>,
    /// Time between two dealings, s
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// How much of that time is measured, s
    #[arg(long, value_name = "SECONDS")]
    window: Option<f64>,
}

#[derive(Args)]
pub struct RestoreArguments {
    #[arg(long, value_name = "DIR", default_value = STATE_DIR)]
    state_dir: PathBuf,
}

pub fn run(arguments: &VmArguments) -> Result<()> {
    match &arguments.command {
        VmCommand::Watch(a) => watch::run(a),
        VmCommand::Run(a) => run::run(a),
        VmCommand::Top(a) => show::run(a),
        VmCommand::Advise(a) => advise::run(a),
        VmCommand::Restore(a) => restore(a),
    }
}

fn seconds(value: f64, name: &str) -> Result<Duration> {
    if (0.001..=3600.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        bail!("{name} {value}: it must be from 0.001 to 3600 s")
    }
}

/// Options of the command line over those of the file.
pub fn settings(common: &Common, deciding: &Deciding) -> Result<Settings> {
    let file = common.config.as_deref().map(config::read).transpose()?.unwrap_or_default();
    let mut settings = Settings {
        cpus: common.cpus.clone().or(file.cpus),
        guests: file.guest,
        state_dir: common.state_dir.clone(),
        cpu_state_dir: common.cpu_state_dir.clone(),
        ..Settings::default()
    };
    settings.wanted.qmp.clone_from(&common.qmp);
    settings.wanted.qmp.extend(file.qmp);
    settings.wanted.groups.clone_from(&common.group);
    for text in &file.group {
        settings.wanted.groups.push(text.parse()?);
    }
    settings.wanted.only = if common.guest.is_empty() { file.only } else { common.guest.clone() };
    settings.wanted.groups_only = common.groups_only || file.groups_only;
    let options = &mut settings.options;
    options.policy = deciding.policy.or(file.policy).unwrap_or_default();
    options.score = deciding.score.or(file.score).unwrap_or_default();
    if let Some(value) = deciding.interval.or(file.interval) {
        options.interval = seconds(value, "--interval")?;
        // The paper measures four fifths of each interval.
        options.window = options.interval * 4 / 5;
    }
    if let Some(value) = deciding.window.or(file.window) {
        options.window = seconds(value, "--window")?;
    }
    options.check()?;
    Ok(settings)
}

/// Where scrapes are answered.
#[derive(Args, Clone, Debug)]
pub struct Metrics {
    /// Serve it to Prometheus at this address, such as 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

fn restore(arguments: &RestoreArguments) -> Result<()> {
    let tree = Tree::live();
    let mut journal = journal::Journal::lock_within(&tree, &arguments.state_dir, Duration::from_millis(500))
        .map_err(|error| match error {
            eft_host::error::Error::Busy(_) => {
                anyhow!("'eft vm run' is at work; end it, and it puts everything back itself")
            }
            error => error.into(),
        })?;
    let count = journal.entries().len();
    journal.undo(|_| true).iter().for_each(|note| eprintln!("eft: {note}"));
    super::cpu::print(&format!("{} threads are as they were before\n", count - journal.entries().len()))
}

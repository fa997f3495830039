//! `eft cpu`: see the CPUs, set their speed, park them, take them offline; and undo it all.

mod acpi;
mod change;
mod counters;
mod list;
mod power;
mod speed;
mod trace;

use anyhow::{Result, anyhow, bail};
pub use eft_text::columns;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use eft_base::text::complaint;
use eft_host::actuators::held;
use eft_host::actuators::session::{Host, Session, state_dir};
use eft_host::sensors::Tree;
use eft_machine::CpuSet;
use serde::{Deserialize, Serialize};

const CONFIG: &str = "/etc/eft/cpu.toml";

#[derive(Args)]
pub struct CpuArguments {
    /// CPUs that eft may park, slow or isolate (such as 1-3,6); none by default
    #[arg(long, global = true, value_name = "CPUS", env = "EFT_MANAGED")]
    managed: Option<CpuSet>,
    /// Configuration with `managed = "1-3"`
    #[arg(long, global = true, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Where the journal and the lock lie, shared by all instances
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Read and write a recorded machine below DIR instead of this one
    #[arg(long, global = true, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
    /// How long to watch loads and interrupts, ms
    #[arg(long, value_name = "MS", default_value_t = 250)]
    interval: u64,
    #[command(subcommand)]
    command: Option<CpuCommand>,
}

#[derive(Subcommand)]
enum CpuCommand {
    /// P-states from the ACPI tables of this machine, or of a folder
    Acpi(acpi::AcpiArguments),
    /// Power: measured where the machine measures it, else modelled
    Power(power::PowerArguments),
    /// Instructions, cycles and cache misses of a thread or of CPUs
    Counters(counters::CountersArguments),
    /// Set the speed of CPUs: a frequency, or a share such as 7/8 or 0.421; `full` undoes it
    Speed(speed::SpeedArguments),
    /// Make this machine asymmetric, as a description says
    Emulate(speed::EmulateArguments),
    /// Move everything away from CPUs, at once
    Park(change::ParkArguments),
    /// Return parked CPUs
    Unpark(change::CpusArguments),
    /// Take CPUs offline: by the kernel's Bolt if it is switched on, else with expedited grace periods
    Offline(change::SwitchArguments),
    /// Bring CPUs online, in the same way
    Online(change::SwitchArguments),
    /// Show where the time goes: `eft cpu trace -- offline 1`
    Trace(trace::TraceArguments),
    /// Undo everything that eft changed on this host
    Restore,
    /// Hold what the commands set (started by them)
    #[command(hide = true)]
    Holder,
}

pub fn print(text: &str) -> Result<()> {
    Ok(eft_text::print(text)?)
}

/// What every command needs to know.
pub struct Context {
    pub host: Host,
    pub json: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    managed: Option<CpuSet>,
}

pub fn run(arguments: &CpuArguments) -> Result<()> {
    let context = context(arguments)?;
    match &arguments.command {
        None => list::run(&context, arguments.interval),
        Some(CpuCommand::Acpi(acpi)) => acpi::run(&context, acpi),
        Some(CpuCommand::Power(power)) => power::run(&context, power),
        Some(CpuCommand::Counters(counters)) => counters::run(&context, counters),
        Some(CpuCommand::Speed(speed)) => speed::run(&context, speed),
        Some(CpuCommand::Emulate(emulate)) => speed::emulate(&context, emulate),
        Some(CpuCommand::Park(park)) => change::park(&context, park),
        Some(CpuCommand::Unpark(cpus)) => change::unpark(&context, cpus),
        Some(CpuCommand::Offline(switch)) => change::offline(&context, switch),
        Some(CpuCommand::Online(switch)) => change::online(&context, switch),
        Some(CpuCommand::Trace(trace)) => trace::run(&context, trace),
        Some(CpuCommand::Restore) => change::restore(&context),
        Some(CpuCommand::Holder) => holder(&context),
    }
}

fn context(arguments: &CpuArguments) -> Result<Context> {
    let tree = arguments.root.as_ref().map_or_else(Tree::live, Tree::at);
    let dir = arguments.state_dir.clone().unwrap_or_else(|| state_dir(&tree));
    let managed = match &arguments.managed {
        Some(managed) => managed.clone(),
        // The CPUs that eft holds were allowed when they were set.
        None => config(arguments)?.managed.unwrap_or_else(|| held::load(&dir).managed),
    };
    let program =
        std::env::current_exe().map_err(|error| anyhow!("eft does not find its own program ({error})"))?;
    Ok(Context { host: Host { tree, dir, managed, program }, json: arguments.json })
}

fn config(arguments: &CpuArguments) -> Result<Config> {
    let path = &arguments.config;
    let text = match eft_host::named_file::text(path) {
        Ok(text) => text,
        Err(_) if path.as_os_str() == CONFIG => return Ok(Config::default()),
        Err(error) => bail!("{} cannot be read ({error})", path.display()),
    };
    toml::from_str(&text)
        .map_err(|e| anyhow!("{}: {}", path.display(), complaint(&text, e.span(), e.message())))
}

impl Context {
    /// Takes the lock; reports on stderr which changes of a killed instance are undone now.
    pub fn session(&self) -> Result<Session> {
        let session = Session::open(&self.host)?;
        if session.recovered > 0 {
            eprintln!("eft: undid {} changes that an instance left behind", session.recovered);
        }
        self.say(&session.notes);
        Ok(session)
    }

    pub fn say(&self, notes: &[String]) {
        notes.iter().for_each(|note| eprintln!("eft: {note}"));
    }

    pub fn print_json<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        print(&(text + "\n"))
    }
}

fn holder(context: &Context) -> Result<()> {
    Ok(eft_host::actuators::holder::run(&context.host.dir, || {
        // The parent process waits for this line, and then reads no more.
        let _ = print("ready\n");
    })?)
}

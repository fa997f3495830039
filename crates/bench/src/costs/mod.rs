//! `eft bench costs`: what messages and bytes cost each component of a stack, for the models of `eft sim`.
//!
//! Recordings of live components under different loads are replayed under callgrind, which counts instructions and cache misses;
//! a fit tells the kinds of messages apart. What the same loads take on stacks that record nothing, by the components' accounts,
//! says how many cycles of this machine an instruction stands for, with all that servers do around their engines.

pub(crate) mod count;
mod figures;
mod file;
mod fit;
mod kinds;
pub(crate) mod loads;
mod replayed;
mod times;

pub use count::{ReplayArguments, replay};

use crate::figure::Figure;
use crate::report::print;
use crate::stolen::Stolen;
use anyhow::{Context, Result, bail, ensure};
use eft_host::sensors::{Tree, frequency};
use eft_linux::stack_sensor::CounterNames;
use eft_machine::CpuId;
use file::Parameter;
use replayed::Replayed;
use std::path::{Path, PathBuf};
use times::Times;

#[derive(clap::Args)]
pub struct CostsArguments {
    /// The calibration file to write, for `eft sim … --calibration FILE`
    file: PathBuf,
    /// Replay these recordings (folders of `eft up --record`, one for each load) in place of new ones, and start no stack
    #[arg(long, num_args = 1.., value_name = "DIR")]
    recordings: Vec<PathBuf>,
    /// Calls of each recording that are counted
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    calls: u32,
    /// Rounds of each load for the accounts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CostsArguments, names: CounterNames) -> Result<()> {
    ensure!(arguments.rounds > 0, "--rounds: one at least");
    let stolen = Stolen::begin(None);
    let directory = tempfile::tempdir().context("no directory for recordings")?;
    let clock_mhz = clock_mhz()?;
    let counts = count::has_valgrind();
    if !counts {
        eprintln!(
            "eft: no instructions are counted, since valgrind cannot be run: install the package valgrind"
        );
    }
    let is_live = arguments.recordings.is_empty();
    let mut folders = arguments.recordings.clone();
    if is_live && counts {
        for (number, load) in loads::ALL.iter().enumerate() {
            let folder = directory.path().join(load.folder);
            loads::record(number, load, arguments.seconds, &folder).context(load.name)?;
            folders.push(folder);
        }
    }
    let replayed = match counts {
        true => replayed::all(&folders, arguments.calls as usize, directory.path())?,
        false => Vec::new(),
    };
    let times = match is_live {
        true => Some(times::of_loads(arguments.rounds, arguments.seconds, names)?),
        false => None,
    };
    let parameters = parameters(&replayed, times.as_ref(), clock_mhz);
    if parameters.is_empty() {
        bail!("nothing could be measured");
    }
    std::fs::write(&arguments.file, file::text(&head(clock_mhz), &parameters))
        .with_context(|| arguments.file.display().to_string())?;
    let mut figures: Vec<Figure> = parameters
        .iter()
        .map(|p| {
            Figure::new(
                p.name,
                if p.name.contains("percent") { "%" } else { "cycles" },
                vec![p.low, p.value, p.high],
            )
        })
        .collect();
    figures.extend(replayed.iter().flat_map(|of| figures::figures(of, times.as_ref(), clock_mhz)));
    let notes = [
        "parameters: value and range as in the file, whose sources say what they are".into(),
        stolen.describe(),
    ];
    print("costs", &figures, &notes, arguments.json)
}

/// Everything that goes into the file.
fn parameters(replayed: &[Replayed], times: Option<&Times>, clock_mhz: f64) -> Vec<Parameter> {
    let mut all: Vec<Parameter> = replayed.iter().flat_map(Replayed::parameters).collect();
    if let Some(times) = times {
        all.extend(times.cycles_of_instructions(replayed, clock_mhz));
        all.extend(times.waits(replayed));
        all.extend(times.of_driver(clock_mhz));
        all.extend(times.of_wakes(clock_mhz));
    }
    all
}

fn clock_mhz() -> Result<f64> {
    let of = |frequency: eft_machine::Frequency| frequency.base.or(frequency.now);
    let clock = frequency::read(&Tree::live(), CpuId(0)).and_then(of);
    Ok(clock.context("this machine does not say how fast its CPU is")?.0 as f64 / 1000.0)
}

fn head(clock_mhz: f64) -> String {
    let info = Tree::live().text("proc/cpuinfo").unwrap_or_default();
    let of_line = |line: &str| {
        line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_string())
    };
    let model = info.lines().find_map(of_line).unwrap_or_else(|| "a CPU without a name".into());
    format!(
        "Costs of eft's messages on {model} at {clock_mhz:.0} MHz, written by `eft bench costs`.\n\
         *_cycles of tcp, ip, filter, writes and handshakes: instructions of a replay, by callgrind. Their cycles here are\n\
         message_percent of them. Ranges: least and most of the fits without one of the loads."
    )
}

/// A folder's recordings.
pub(crate) fn recordings(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "eftrec"))
        .collect();
    files.sort();
    Ok(files)
}

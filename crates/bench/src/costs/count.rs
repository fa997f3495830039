//! Replays a recording and counts: by itself messages and time, under callgrind instructions and cache misses. A recording
//! is cut into stretches of as many calls each, so that a fit can tell the kinds of messages apart.

use super::kinds;
use anyhow::{Context, Result, bail};
use eft_base::{Protection, protection};
use eft_channel::Segment;
use eft_messages::ComponentId;
use eft_record::recording::{Call, End, Input, RecordedEvent, Recording};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A recording that servers wrote ends at 256 MB of inputs.
const RECORDING_MAX: u64 = 1 << 30;
/// Stretches of a recording.
const STRETCHES: usize = 60;

#[derive(clap::Args)]
pub struct ReplayArguments {
    file: PathBuf,
    calls: usize,
    /// Whether the engine protects what it does, as that which was recorded
    #[arg(long, default_value = Protection::On.name())]
    protection: Protection,
}

/// What a replay counts by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Messages of its neighbours, in all.
    pub messages: u64,
    /// Of each stretch, how much of each kind was done.
    pub stretches: Vec<Vec<u64>>,
    /// What the calls of each took. Engines of programs' pages do their reading by the recording meanwhile.
    pub ns: Vec<u64>,
}

/// Runs what is to be counted: callgrind knows it by this name.
#[inline(never)]
fn costs_counted(call: &mut dyn FnMut()) {
    call();
}

/// callgrind writes down what it has counted since the last time.
#[inline(never)]
fn costs_stretch_ends() {
    black_box(());
}

/// Which component's recording a file is, of those whose work is told apart.
pub fn component(file: &Path) -> Result<Option<ComponentId>> {
    let bytes = eft_host::named_file::bytes(file, RECORDING_MAX)?;
    let component = eft_record::file::from_bytes(&bytes)?.head.engine.peer();
    Ok((!kinds::of(component).is_empty()).then_some(component))
}

/// Prints what is [`Counted`], as JSON.
pub fn replay(arguments: &ReplayArguments) -> Result<()> {
    let shown = || arguments.file.display().to_string();
    let bytes = eft_host::named_file::bytes(&arguments.file, RECORDING_MAX).with_context(shown)?;
    let life = eft_record::file::from_bytes(&bytes).with_context(shown)?;
    let mut recording = life.recording.borrow().clone();
    if recording.calls.len() > arguments.calls {
        recording.calls.truncate(arguments.calls);
        recording.end = End::Died;
    }
    if arguments.protection == Protection::Off {
        protection::switch_off();
        recording.calls.splice(..0, recording.calls.first().map(told_to_do_without));
    }
    let kinds = kinds::of(life.head.engine.peer());
    let again = |conductor: &mut dyn FnMut(usize, &mut dyn FnMut())| {
        life.conducted(&recording, memory, conductor).with_context(shown)
    };
    let counted = count(&recording, kinds, again)?;
    println!("{}", serde_json::to_string(&counted)?);
    Ok(())
}

/// An engine is told by a setting, before anything else.
fn told_to_do_without(first: &Call) -> Call {
    let setting = RecordedEvent::Configure {
        key: Protection::KEY.into(),
        value: Protection::Off.name().as_bytes().to_vec().into(),
    };
    let nothing = Call { memory: Vec::new(), accesses: Vec::new(), outputs: Vec::new(), ..first.clone() };
    Call { input: Input::Event(setting), ..nothing }
}

/// Memory of programs is large and mostly empty.
fn memory(len: usize) -> Option<Segment> {
    let fd = eft_linux::memory::create("eft-costs", len).ok()?;
    eft_linux::memory::map(&fd, true).ok()
}

/// `again` replays the recording, each call by the conductor.
pub fn count<E>(
    recording: &Recording,
    kinds: &[kinds::Kind],
    again: impl FnOnce(&mut dyn FnMut(usize, &mut dyn FnMut())) -> Result<(), E>,
) -> Result<Counted, E> {
    let calls = &recording.calls;
    let length = calls.len().div_ceil(STRETCHES).max(1);
    let messages = calls.iter().filter(|call| kinds::is_message(call)).count() as u64;
    let mut counted = Counted { messages, ..Counted::default() };
    let (mut counts, mut ns) = (vec![0; kinds.len()], 0);
    again(&mut |number, call| {
        let begin = Instant::now();
        costs_counted(call);
        ns += begin.elapsed().as_nanos() as u64;
        for (count, kind) in counts.iter_mut().zip(kinds) {
            *count += kind.count(&calls[number]);
        }
        if (number + 1) % length == 0 || number + 1 == calls.len() {
            costs_stretch_ends();
            counted.stretches.push(std::mem::replace(&mut counts, vec![0; kinds.len()]));
            counted.ns.push(std::mem::take(&mut ns));
        }
    })?;
    Ok(counted)
}

/// What callgrind has counted in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Events {
    pub instructions: u64,
    /// Data and instructions that were not in the first level.
    pub first_misses: u64,
    /// Those that were not in the last one.
    pub last_misses: u64,
}

impl Events {
    /// Reads a file of callgrind's.
    pub fn parse(profile: &str) -> Option<Events> {
        let line = |name: &str| profile.lines().find_map(|line| line.strip_prefix(name));
        let (names, totals) = (line("events:")?, line("totals:")?);
        let numbers = totals.split_whitespace().map(|number| number.parse().unwrap_or(0));
        let all: Vec<(&str, u64)> = names.split_whitespace().zip(numbers).collect();
        let of = |wanted: &[&str]| {
            all.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, count)| count).sum()
        };
        Some(Events {
            instructions: of(&["Ir"]),
            first_misses: of(&["I1mr", "D1mr", "D1mw"]),
            last_misses: of(&["ILmr", "DLmr", "DLmw"]),
        })
    }
}

fn replaying(file: &Path, calls: usize, protection: Protection, mut command: Command) -> Result<Counted> {
    let output = command
        .arg(std::env::current_exe().context("this program")?)
        .args(["bench", "costs-replay"])
        .arg(file)
        .arg(calls.to_string())
        .args(["--protection", protection.name()])
        .output()
        .with_context(|| format!("{} cannot be run", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let own: Vec<&str> = said.lines().filter(|line| line.starts_with("eft: ")).collect();
        bail!("a replay failed: {}", if own.is_empty() { said.trim().to_string() } else { own.join("; ") });
    }
    serde_json::from_slice(&output.stdout).context("a replay's answer")
}

/// Replays as it is.
pub fn natively(file: &Path, calls: usize) -> Result<Counted> {
    replaying(file, calls, Protection::On, Command::new("env"))
}

/// Whether valgrind is there.
pub fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Replays under callgrind, with caches of one size whatever the machine has; a stretch's events beside its counts. What a replay does in an engine's place to read and write
/// pages is left out: entering it ends the counting, and leaving it begins it again.
pub fn under_callgrind(
    file: &Path,
    calls: usize,
    protection: Protection,
    directory: &Path,
) -> Result<(Counted, Vec<Events>)> {
    let out = directory.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--cache-sim=yes", "--collect-atstart=no"])
        .args(["--toggle-collect=*costs_counted*", "--toggle-collect=*Prompter*"])
        .arg("--toggle-collect=*bytes_for_observer*")
        .args(["--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64"])
        .arg("--dump-after=*costs_stretch_ends*")
        .arg(format!("--callgrind-out-file={}", out.display()));
    let counted = replaying(file, calls, protection, valgrind)?;
    let events = (1..=counted.stretches.len()).map(|number| {
        let part = PathBuf::from(format!("{}.{number}", out.display()));
        let profile = std::fs::read_to_string(&part).with_context(|| part.display().to_string())?;
        let _ = std::fs::remove_file(&part);
        Events::parse(&profile).with_context(|| format!("{} has no total", part.display()))
    });
    let events = events.collect::<Result<Vec<_>>>()?;
    Ok((counted, events))
}

#[cfg(test)]
mod tests;

//! `eft replay`: repeats the inputs of a live server to a fresh one in the simulator, which must produce the same
//! segments and verdicts, and the same results for its applications.

use anyhow::{Context, Result, bail};
use eft_linux::memory;
use eft_record::recording::End;
use std::path::PathBuf;

/// A recording ends at 256 MB of inputs (`eft up --record`); with its framing it is a little longer.
const RECORDING_MAX: u64 = 1 << 30;
/// Limit of shared memory that a recording may ask for: it is sparse, so only written pages cost memory.
const MEMORY_MAX: usize = 1 << 42;

#[derive(clap::Args, Debug)]
pub struct ReplayArguments {
    /// A file that `eft up --record` wrote
    file: PathBuf,
}

pub fn run(arguments: &ReplayArguments) -> Result<()> {
    replay(&arguments.file).with_context(|| arguments.file.display().to_string())
}

fn replay(file: &PathBuf) -> Result<()> {
    let bytes = eft_host::named_file::bytes(file, RECORDING_MAX)?;
    let life = eft_record::file::from_bytes(&bytes)?;
    let recording = life.recording.borrow();
    let sparse = |len: usize| {
        let fd = memory::create("eft-replay", len).ok().filter(|_| len <= MEMORY_MAX)?;
        memory::map(&fd, true).ok()
    };
    life.again_in(&recording, sparse)?;
    let (calls, peer) = (recording.calls.len(), life.head.engine.peer());
    let end = match recording.end {
        End::InOrder => String::new(),
        End::Full(bytes) => {
            format!(" (the recording was full after {bytes} bytes: what came later is not in it)")
        }
        End::Panicked => {
            println!("{peer}: {calls} calls: the last one panics, as it did, and all before are identical");
            return Ok(());
        }
        End::Died => " (it did not end in order: its last calls may be missing)".into(),
        End::CutShort => {
            bail!("the recording is cut short after call {calls}; until there all is identical");
        }
    };
    let (segments, payload) = recording.segments();
    let payload = if payload > 0 { format!(" with {payload} bytes of payload") } else { String::new() };
    println!("{peer}: {calls} calls, {segments} segments sent{payload}: all identical{end}");
    if let Some(last) = &recording.last {
        println!("{peer}: the call in which it panicked later, alone: {}", life.last_input(last));
        life.last_call(last, sparse, None)?;
        println!("{peer}: it panics, as it did");
    }
    Ok(())
}

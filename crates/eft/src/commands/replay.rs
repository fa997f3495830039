//! `eft replay`: repeats the inputs of a live server to a fresh one in the simulator, which must produce the same
//! segments and verdicts, and the same results for its applications.

use anyhow::{Context, Result, bail};
use eft_linux::fatal::{self, Death};
use eft_linux::memory;
use eft_messages::ComponentId;
use eft_record::recording::{Cause, End};
use std::backtrace::Backtrace;
use std::path::PathBuf;
use std::time::Duration;

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
    let (calls, peer) = (recording.calls.len(), life.head.engine.peer());
    let mut again = |i: usize, call: &mut dyn FnMut()| match recording.end {
        End::InCall(cause) if i + 1 == calls => {
            println!(
                "{peer}: {calls} calls: the server {cause} in the last one, and all before are identical"
            );
            deadly(peer, cause, call);
        }
        _ => call(),
    };
    life.conducted(&recording, sparse, &mut again)?;
    let end = match recording.end {
        End::InOrder => String::new(),
        End::Full(bytes) => {
            format!(" (the recording was full after {bytes} bytes: what came later is not in it)")
        }
        End::InCall(cause) => {
            println!("{peer}: it panics{}", as_it_did(cause, Cause::Panic));
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
        println!("{peer}: the call in which it {} later, alone: {}", last.cause, life.last_input(last));
        life.last_call(last, sparse, None, &mut |_, call| deadly(peer, last.cause, call))?;
        println!("{peer}: it panics{}", as_it_did(last.cause, Cause::Panic));
    }
    Ok(())
}

/// CPU time after which a call hangs that was made again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the call in which a server died. If that ends this process, too, it says how, and where.
fn deadly(peer: ComponentId, cause: Cause, call: &mut dyn FnMut()) {
    let mut tell = |death| {
        let (what, now) = match death {
            Death::Signal(number) => (format!("dies of signal {number}"), Cause::Signal(number)),
            Death::Hang => (format!("hangs: it computes for {} s", PATIENCE.as_secs()), Cause::Hang),
        };
        println!("{peer}: it {what}{}", as_it_did(cause, now));
        println!("{}", Backtrace::force_capture());
        std::process::exit(0);
    };
    if let Err(why) = fatal::prepare().and_then(|()| fatal::ask_after(PATIENCE)) {
        eprintln!("{why}: if the call ends this process, nothing says so");
    }
    fatal::during(&mut tell, call);
}

fn as_it_did(then: Cause, now: Cause) -> &'static str {
    if then == now { ", as it did" } else { "" }
}

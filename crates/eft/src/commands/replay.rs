//! `eft replay`: what a live ip or filter was told, told to a fresh one in the simulator, which must answer with
//! the same segments and verdicts.

use eft_channel::Segment;
use eft_linux::memory;
use eft_sim::replay::Let;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct ReplayArguments {
    /// A file that `eft up --record` wrote
    file: PathBuf,
}

pub fn run(arguments: &ReplayArguments) -> Result<(), String> {
    let shown = arguments.file.display();
    let bytes = std::fs::read(&arguments.file).map_err(|e| format!("{shown}: {e}"))?;
    let life = eft_sim::file::from_bytes(&bytes).map_err(|e| format!("{shown}: {e}"))?;
    let recording = life.recording.borrow();
    // Families' arenas are large and sparse; such memory costs only what is written.
    let sparse = |len: usize| {
        memory::create("eft-replay", len)
            .and_then(|fd| memory::map(&fd, true))
            .unwrap_or_else(|_| Segment::heap(len))
    };
    let sent =
        recording.outputs().filter(|o| matches!(o, Let::Message(_, _, bytes) if !bytes.is_empty())).count();
    let end = if recording.ended { "" } else { " (it did not end in order: its last calls may be missing)" };
    match life.again_in(&recording, sparse) {
        Ok(()) => {
            let (calls, peer) = (recording.calls.len(), life.head.peer);
            println!("{peer}: {calls} calls, {sent} segments sent: all identical{end}");
            Ok(())
        }
        Err(d) => Err(format!("{shown}: call {} answers differently: {d:?}", d.call)),
    }
}

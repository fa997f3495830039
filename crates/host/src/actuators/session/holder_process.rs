//! Starting, awaiting and ending the holder.

use super::{Host, PATIENCE, Session};
use crate::actuators::held::{self, Progress};
use crate::error::{Error, error};
use crate::sensors::Tree;
use crate::sensors::tasks::{self, TaskId};
use rustix::process::{Pid, Signal};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

impl Session {
    /// Waits until the holder has applied what was published. The lock is released meanwhile.
    pub(super) fn await_holder(&mut self) -> Result<(), Error> {
        let Some(holder) = self.held.holder.filter(|_| self.host.tree.is_live()) else {
            return Ok(());
        };
        let outcome = self.journal.unlocked(|| {
            let begin = Instant::now();
            loop {
                let live = Tree::live();
                let (is_alive, dir) = (|| tasks::is_alive(&live, holder), &self.host.dir);
                match held::progress(self.held.generation, is_alive, || held::load_status(dir)) {
                    Progress::Served(errors) if errors.is_empty() => return Ok(()),
                    Progress::Served(errors) => return Err(error!(Holder, "{}", errors.join("; "))),
                    Progress::Ended if self.held.is_empty() => return Ok(()),
                    Progress::Working if begin.elapsed() <= PATIENCE => {}
                    _ => return Err(Error::Holder(silence_of(holder, dir))),
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // Another eft may have published meanwhile.
        self.held = held::load(&self.host.dir);
        outcome
    }
}

pub(super) fn start_holder(host: &Host) -> Result<TaskId, Error> {
    let complain = |error: std::io::Error| error!(Holder, "the holder cannot be started ({error})");
    let log = std::fs::File::create(host.dir.join("holder.log")).map_err(complain)?;
    let mut child = Command::new(&host.program)
        .args(["cpu", "--state-dir"])
        .arg(&host.dir)
        .arg("holder")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(complain)?;
    let pid = child.id() as i32;
    let mut line = String::new();
    let output = child.stdout.take().ok_or_else(|| error!(Holder, "the holder has no output"))?;
    BufReader::new(output).read_line(&mut line).map_err(complain)?;
    match tasks::leader(&Tree::live(), pid) {
        Some(task) if line.trim() == "ready" => Ok(task.id),
        _ => {
            let log = std::fs::read_to_string(host.dir.join("holder.log")).unwrap_or_default();
            Err(error!(Holder, "the holder did not start: {}", log.trim()))
        }
    }
}

/// The error text for a holder that does not apply what was published.
fn silence_of(holder: TaskId, dir: &Path) -> String {
    let live = Tree::live();
    let what = if tasks::is_alive(&live, holder) {
        let threads = tasks::threads(&live, holder.tid);
        let threads = threads.into_iter().filter_map(|tid| tasks::read(&live, holder.tid, tid));
        let states = threads.map(|t| format!("{} {} on CPU {}", t.name, t.state, t.last_cpu));
        format!("does not answer ({})", states.collect::<Vec<_>>().join(", "))
    } else {
        let log = std::fs::read_to_string(dir.join("holder.log")).unwrap_or_default();
        format!("has ended ({})", eft_base::text::one_line(&log))
    };
    format!("the holder {what}; 'eft cpu restore' undoes what it held")
}

/// Asks a process to end, and waits for it.
pub(super) fn end_process(process: TaskId) -> Result<(), Error> {
    if let Some(pid) = Pid::from_raw(process.tid) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
    let begin = Instant::now();
    while tasks::is_alive(&Tree::live(), process) {
        if begin.elapsed() > PATIENCE {
            return Err(error!(Holder, "process {} does not end", process.tid));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

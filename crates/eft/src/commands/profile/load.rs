//! The command that makes the load of a sweep, run once for each configuration.
//!
//! `EFT_SECONDS` says how long it should run; then it is ended, with all processes that it started. Its last line may
//! say what it achieved, as `throughput=… latency_us=…`: throughput in any unit, as long as it is always the same.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use eft_bench::ground::End;
use eft_cores::throughput::Throughput;
use eft_machine::Latency;

/// How long the command may take to end by itself, and after each signal.
const GRACE: Duration = Duration::from_millis(500);
const GRACE_SIGNALLED: Duration = Duration::from_secs(3);
/// More output than this is not kept.
const OUTPUT_MAX: u64 = 1 << 20;

/// The figures that the command reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reported {
    pub throughput: Option<Throughput>,
    pub latency: Option<Latency>,
}

pub struct Load {
    child: Child,
    output: Option<std::thread::JoinHandle<String>>,
}

impl Load {
    pub fn start(command: &[OsString], seconds: f64) -> Result<Load> {
        let (program, arguments) = command.split_first().context("there is no load command")?;
        let mut command = Command::new(program);
        command.args(arguments).env("EFT_SECONDS", seconds.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        // SAFETY: only async-signal-safe calls between fork and exec. Signals that we block must reach the command.
        unsafe { command.pre_exec(unblock_signals) };
        let name = program.to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|e| anyhow!("the load `{name}` cannot be started ({e})"))?;
        let output = child.stdout.take().map(|out| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = out.take(OUTPUT_MAX).read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Load { child, output })
    }

    /// An error if the command has ended: it must not end before it is measured.
    pub fn check(&mut self) -> Result<()> {
        if !self.has_ended() {
            return Ok(());
        }
        let status = self.child.wait().map_err(|e| anyhow!("the load cannot be watched ({e})"))?;
        bail!("the load ended before it could be measured ({status}): it should run for $EFT_SECONDS seconds")
    }

    /// Does not reap it yet.
    pub fn has_ended(&self) -> bool {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = Pid::from_raw(self.child.id() as i32).map(|pid| waitid(WaitId::Pid(pid), options));
        !matches!(ended, Some(Ok(None)))
    }

    /// Ends it, unless it ends by itself, and returns the figures that it reported.
    pub fn finish(mut self, end: &End) -> Result<Reported> {
        for signal in [None, Some(libc::SIGTERM), Some(libc::SIGKILL)] {
            signal.into_iter().for_each(|signal| self.signal(signal));
            let grace = if signal.is_none() { GRACE } else { GRACE_SIGNALLED };
            let begin = Instant::now();
            while begin.elapsed() < grace {
                if self.has_ended() {
                    // Processes that it left behind would be load in the next configuration. Its process id is not
                    // reused until it is waited for.
                    self.signal(libc::SIGKILL);
                    let status = self.child.wait()?;
                    if signal.is_none() && !status.success() {
                        bail!("the load failed ({status})");
                    }
                    let text = self.output.take().and_then(|t| t.join().ok()).unwrap_or_default();
                    return reported(&text);
                }
                end.sleep(Duration::from_millis(5))?;
            }
        }
        bail!("the load does not end")
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a signal to the process group that we made; a group that is gone is an error that does not matter.
        unsafe { libc::kill(-(self.child.id() as i32), signal) };
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(libc::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unblock_signals() -> std::io::Result<()> {
    // SAFETY: a local set, initialised before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
    Ok(())
}

/// The figures in the last line that is not empty. A line without figures is no error; a figure that is not a number
/// is one.
fn reported(text: &str) -> Result<Reported> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut reported = Reported::default();
    for word in line.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else { continue };
        let is_told = matches!(key, "throughput" | "latency_us");
        if !is_told {
            continue;
        }
        let number = value.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        let number =
            number.with_context(|| format!("the load's last line says `{word}`, which is no figure"))?;
        match key {
            "throughput" => reported.throughput = Some(Throughput(number)),
            _ => reported.latency = Some(Latency(number)),
        }
    }
    Ok(reported)
}

#[cfg(test)]
mod tests;

//! Servers that are replaced on purpose, and the death of all but the keeper, as one connection of many sees them.

use super::super::figure::{Aim, Figure};
use super::{PATIENCE, Populated, REST};
use anyhow::{Context, Result};
use eft_linux::operator;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds that a request may wait while a server is replaced.
const REPLACED: f64 = 10.0;
/// And while all but the keeper are killed and started again.
const KILLED: f64 = 200.0;
/// Replacements of each component at most: each takes more than a second, in which the newcomer proves itself.
const REPLACEMENTS: usize = 3;
/// Between an answer and the next request.
const BETWEEN: Duration = Duration::from_micros(200);

/// The figures of a stack, whose connections must all be there afterwards.
pub fn figures(crowd: &mut Populated, components: &[&str], rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for name in components {
        let waits = (0..rounds.min(REPLACEMENTS)).map(|_| crowd.update(name)).collect::<Result<_>>()?;
        let what = format!("{name}, replaced by `eft update`: the longest wait for an answer");
        figures.push(Figure::new(what, "ms", waits).aim(Aim::AtMost(REPLACED)));
    }
    let waits = (0..rounds).map(|_| crowd.kill_all_but_the_keeper()).collect::<Result<_>>()?;
    let what = "all but the keeper killed, and `eft up`: the wait for an answer";
    figures.push(Figure::new(what, "ms", waits).aim(Aim::AtMost(KILLED)));
    Ok(figures)
}

impl Populated {
    /// Replaces a component by a process of the same program. Milliseconds of the longest wait for an answer meanwhile.
    fn update(&mut self, name: &str) -> Result<f64> {
        let request = json!({ "op": "update", "component": self.component(name)?["component"] });
        let program = OwnedFd::from(File::open("/proc/self/exe").context("this program")?);
        let (stack, stream) = (self.stack.name.clone(), self.one()?);
        longest_wait(stream, || Ok(operator::ask_with(&stack, &request, &[&program]).map(drop)?))
    }

    /// Kills every server and the supervisor, and starts the stack again. Milliseconds until a request is answered that is
    /// sent after the kill.
    fn kill_all_but_the_keeper(&mut self) -> Result<f64> {
        let (answer, _) = operator::ask(&self.stack.name, &json!({ "op": "ps" }))?;
        let servers = answer["components"].as_array().into_iter().flatten().filter_map(|c| c["pid"].as_i64());
        let all: Vec<Pid> = std::iter::once(self.stack.pid() as i64)
            .chain(servers)
            .filter_map(|pid| Pid::from_raw(pid as i32))
            .collect();
        let begin = Instant::now();
        for pid in all {
            let _ = kill_process(pid, Signal::KILL);
        }
        self.one()?.write_all(b"?")?;
        // The dead supervisor is reaped when it is replaced.
        self.stack = self.recipe.start()?;
        self.one()?.read_exact(&mut [0]).context("a connection was lost")?;
        let waited = begin.elapsed();
        std::thread::sleep(REST);
        Ok(waited.as_secs_f64() * 1e3)
    }

    fn one(&mut self) -> Result<&mut TcpStream> {
        self.one.set_nodelay(true)?;
        self.one.set_read_timeout(Some(PATIENCE))?;
        Ok(&mut self.one)
    }
}

/// Asks all the time until `meanwhile` is done. Milliseconds of the longest wait for an answer.
fn longest_wait(stream: &mut TcpStream, meanwhile: impl FnOnce() -> Result<()>) -> Result<f64> {
    let is_done = AtomicBool::new(false);
    let (longest, done) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| -> io::Result<Duration> {
            let mut longest = Duration::ZERO;
            while !is_done.load(Ordering::Acquire) {
                let begin = Instant::now();
                stream.write_all(b"?")?;
                stream.read_exact(&mut [0])?;
                longest = longest.max(begin.elapsed());
                std::thread::sleep(BETWEEN);
            }
            Ok(longest)
        });
        let done = meanwhile();
        is_done.store(true, Ordering::Release);
        (asking.join(), done)
    });
    done?;
    let longest = longest.map_err(|_| anyhow::anyhow!("who asked panicked"))?;
    Ok(longest.context("a connection was lost")?.as_secs_f64() * 1e3)
}

//! Servers that are replaced on purpose, and the death of all but the keeper, as one connection of many sees them.

use super::super::figure::{Aim, Figure};
use super::super::stack::{Serving, peer_on};
use super::{COMPONENTS, PATIENCE, Populated, REST};
use anyhow::{Context, Result, ensure};
use eft_linux::operator;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
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

/// All components, in turn.
const ALL: &str = "all";
/// The bytes of a large request, of which the second connection has one on its way all the time, and where they are sent back.
const LARGE: usize = 64 << 10;
const LARGE_PORT: u16 = 6907;

/// The figures of a stack, whose connections must all be there afterwards.
pub fn figures(crowd: &mut Populated, components: &[&str], rounds: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut bulk = Bulk::start(crowd)?;
    // What is asked for by its name alone is not all of them.
    let rest = if components.len() == COMPONENTS.len() { &["cores", ALL][..] } else { &[] };
    for name in components.iter().chain(rest) {
        let one = |_| crowd.update(name, &mut bulk.stream);
        let waits: Vec<[f64; 2]> = (0..rounds.min(REPLACEMENTS)).map(one).collect::<Result<_>>()?;
        for (n, what) in
            ["the longest wait for an answer", "the longest for 64 KiB to and fro"].into_iter().enumerate()
        {
            let waits = waits.iter().map(|waits| waits[n]).collect();
            let what = format!("{name}, replaced by `eft update`: {what}");
            figures.push(Figure::new(what, "ms", waits).aim(Aim::AtMost(REPLACED)));
        }
    }
    drop(bulk);
    let waits = (0..rounds).map(|_| crowd.kill_all_but_the_keeper()).collect::<Result<_>>()?;
    let what = "all but the keeper killed, and `eft up`: the wait for an answer";
    figures.push(Figure::new(what, "ms", waits).aim(Aim::AtMost(KILLED)));
    Ok(figures)
}

/// A connection with large requests, and the program that answers them.
struct Bulk {
    stream: TcpStream,
    _server: Serving,
}

impl Bulk {
    fn start(crowd: &Populated) -> Result<Bulk> {
        let place = format!("{}:{LARGE_PORT}", crowd.recipe.far);
        let server = ["echo", &place, "--bytes", &LARGE.to_string()];
        let server = Serving::start(peer_on(&crowd.stack.name, &server)?)?;
        let stream = TcpStream::connect(&place).context("a connection for large requests")?;
        patient(&stream)?;
        Ok(Bulk { stream, _server: server })
    }
}

impl Populated {
    /// Replaces a component, or all, by processes of the same program. Milliseconds of the longest wait for an answer meanwhile,
    /// and of that for a large one.
    fn update(&mut self, name: &str, bulk: &mut TcpStream) -> Result<[f64; 2]> {
        let mut command = Command::new(super::super::stack::exe()?);
        command.args(["update", "--name", &self.stack.name]);
        match name {
            ALL => command.arg("--all"),
            _ => command
                .arg(self.component(name)?["component"].as_str().context("a component without a name")?),
        };
        let stream = self.one()?;
        longest_waits([(stream, 1), (bulk, LARGE)], || {
            let output = command.output().context("eft update")?;
            ensure!(
                output.status.success(),
                "eft update {name}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
            Ok(())
        })
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
        patient(&self.one)?;
        Ok(&mut self.one)
    }
}

fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))
}

/// Asks on connections all the time, with requests of so many bytes each, until `meanwhile` is done. Milliseconds of the longest waits for
/// an answer.
fn longest_waits(
    connections: [(&mut TcpStream, usize); 2],
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<[f64; 2]> {
    let is_done = &AtomicBool::new(false);
    let (waits, done) = std::thread::scope(|scope| {
        let asking =
            connections.map(|(stream, bytes)| scope.spawn(move || longest_wait(stream, bytes, is_done)));
        let done = meanwhile();
        is_done.store(true, Ordering::Release);
        (asking.map(|thread| thread.join()), done)
    });
    done?;
    let mut longest = [0.0; 2];
    for (longest, wait) in longest.iter_mut().zip(waits) {
        let wait = wait.map_err(|_| anyhow::anyhow!("who asked panicked"))?;
        *longest = wait.context("a connection was lost")?.as_secs_f64() * 1e3;
    }
    Ok(longest)
}

fn longest_wait(stream: &mut TcpStream, bytes: usize, is_done: &AtomicBool) -> io::Result<Duration> {
    let (request, mut answer) = (vec![b'?'; bytes], vec![0; bytes]);
    let mut longest = Duration::ZERO;
    while !is_done.load(Ordering::Acquire) {
        let begin = Instant::now();
        stream.write_all(&request)?;
        stream.read_exact(&mut answer)?;
        longest = longest.max(begin.elapsed());
        std::thread::sleep(BETWEEN);
    }
    Ok(longest)
}

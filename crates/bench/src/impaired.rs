//! `eft bench impaired`: goodput over wires that lose, delay, reorder and repeat, beside two kernels over the same wire. Receivers
//! check every byte.
//!
//! Both run at the same time, each on a wire of its own with the same chances: such wires are bound by delay and loss, not
//! by the machine. TCP over random loss varies a lot, so the ratio of one round says little; the median of many does.

use super::Common;
use super::figure::{Aim, Figure};
use super::link::Wire;
use super::progress::Progress;
use super::report::print;
use super::stack::{Ends, Impaired, KERNEL_ENDS, STACK_ENDS, Serving};
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct ImpairedArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of each round
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// Only wires whose names contain this, such as `20 ms`
    #[arg(long)]
    only: Option<String>,
    /// Congestion control of the sending kernels
    #[arg(long, default_value = "cubic")]
    kernel_congestion: String,
    /// Congestion control of eft's senders
    #[arg(long, default_value = "cubic")]
    congestion: String,
}

/// Bytes a second of a wire: 100 Mb/s.
const RATE: u64 = 12_500_000;
/// How long a connection may take to carry the first bytes.
const CONNECTING: Duration = Duration::from_secs(15);
/// How long a wire is clear after a round, so that what the ends still have is gone.
const PAUSE: Duration = Duration::from_millis(500);

/// Round trip in milliseconds; loss, reordering and repetition in percent.
type Conditions = (u64, f64, f64, f64);

const WIRES: [Conditions; 12] = [
    (1, 0.1, 0.0, 0.0),
    (1, 10.0, 0.0, 0.0),
    (20, 0.1, 0.0, 0.0),
    (20, 1.0, 0.0, 0.0),
    (20, 5.0, 0.0, 0.0),
    (20, 10.0, 0.0, 0.0),
    (20, 1.0, 5.0, 0.0),
    (20, 0.1, 0.0, 5.0),
    (20, 1.0, 5.0, 5.0),
    (200, 0.1, 0.0, 0.0),
    (200, 1.0, 0.0, 0.0),
    (200, 1.0, 5.0, 0.0),
];

fn name_of((rtt_ms, loss, reorder, duplicate): &Conditions) -> String {
    let twice = if *duplicate > 0.0 { format!(", {duplicate}% twice") } else { String::new() };
    format!("{rtt_ms} ms, {loss}% lost, {reorder}% reordered{twice}")
}

fn wire((rtt_ms, loss, reorder, duplicate): Conditions, seed: u64) -> Wire {
    let delay = Duration::from_micros(rtt_ms * 500);
    let queue = (RATE * rtt_ms / 1000).max(64_000);
    let share = |percent: f64| percent / 100.0;
    let (loss, reorder, duplicate) = (share(loss), share(reorder), share(duplicate));
    Wire { delay, loss, reorder, duplicate, rate: RATE, queue, seed }
}

pub fn run(arguments: &ImpairedArguments) -> Result<()> {
    let common = &arguments.common;
    let is_wanted =
        |wire: &Conditions| arguments.only.as_ref().is_none_or(|only| name_of(wire).contains(only));
    let wires: Vec<Conditions> = WIRES.into_iter().filter(is_wanted).collect();
    if wires.is_empty() {
        let all: Vec<String> = WIRES.iter().map(name_of).collect();
        bail!("--only fits none of the wires: {}", all.join("; "));
    }
    let stolen = Stolen::begin(None);
    let scene = Impaired::start(common.topology.as_deref())?;
    let counts = tempfile::tempdir()?;
    let mut port = 5300;
    let mut figures = Vec::new();
    for conditions in wires {
        let name = name_of(&conditions);
        for outwards in [true, false] {
            let mut rates: [Vec<f64>; 2] = Default::default();
            for round in 0..common.rounds as u64 {
                port += 1;
                let wire = wire(conditions, round + 1);
                let both = measure(&scene, counts.path(), (port, outwards), wire, arguments)?;
                rates.iter_mut().zip(both).for_each(|(to, rate)| to.push(rate));
            }
            let [eft, kernel] = rates;
            let from = if outwards { "eft to Linux" } else { "Linux to eft" };
            let figure = Figure::new(format!("{from}, {name}"), "Mb/s", eft);
            figures.push(figure.beside("two kernels", kernel).aim(Aim::AtLeast(0.9)));
        }
    }
    let notes = [
        format!("kernels use {}, eft {}", arguments.kernel_congestion, arguments.congestion),
        stolen.describe(),
    ];
    print("impaired", &figures, &notes, common.json)
}

/// Megabits a second over both wires, at the same time.
fn measure(
    scene: &Impaired,
    counts: &Path,
    (port, outwards): (u16, bool),
    wire: Wire,
    arguments: &ImpairedArguments,
) -> Result<[f64; 2]> {
    let seconds = arguments.seconds;
    let mut running = Vec::new();
    for ends in [STACK_ENDS, KERNEL_ENDS] {
        running.push(Stream::start(scene, ends, counts, (port, outwards), arguments)?);
    }
    scene.links().into_iter().for_each(|link| link.set(wire));
    running.iter_mut().try_for_each(Stream::begin)?;
    let begun = Instant::now();
    while begun.elapsed() < CONNECTING + Duration::from_secs_f64(seconds)
        && running.iter().any(|stream| stream.rate.is_none())
    {
        std::thread::sleep(Duration::from_millis(2));
        running.iter_mut().for_each(|stream| stream.watch(seconds));
    }
    running.iter_mut().try_for_each(Stream::check)?;
    let rates: Vec<f64> = running.iter().map(|stream| stream.rate.unwrap_or(0.0)).collect();
    drop(running);
    scene.links().into_iter().for_each(|link| link.set(Wire::CLEAR));
    std::thread::sleep(PAUSE);
    Ok([rates[0], rates[1]])
}

/// One stream over one wire, ended when dropped.
struct Stream {
    sink: Serving,
    command: Command,
    source: Option<Child>,
    count: Progress,
    /// When the first bytes came, and how many.
    first: Option<(Instant, u64)>,
    /// Megabits a second since then, once the time is over.
    rate: Option<f64>,
}

impl Stream {
    fn start(
        scene: &Impaired,
        ends: Ends,
        counts: &Path,
        (port, outwards): (u16, bool),
        arguments: &ImpairedArguments,
    ) -> Result<Stream> {
        let path = counts.join(ends.near);
        let count = Progress::create(&path)?;
        let (from, to) = if outwards { (ends.near, ends.far) } else { (ends.far, ends.near) };
        let address = format!("{to}:{port}");
        let file = path.display().to_string();
        let sink = Serving::start(scene.peer(to, &["sink", &address, "--check", "--progress", &file])?)?;
        let seconds = (arguments.seconds + CONNECTING.as_secs_f64() + 5.0).to_string();
        let mut command = scene.peer(from, &["source", &address, &seconds])?;
        let by_eft = from == STACK_ENDS.near;
        let congestion = if by_eft { &arguments.congestion } else { &arguments.kernel_congestion };
        command.args(["--congestion", congestion]);
        Ok(Stream { sink, command, source: None, count, first: None, rate: None })
    }

    fn begin(&mut self) -> Result<()> {
        let source = self.command.spawn().context("cannot start a source")?;
        self.source = Some(source);
        Ok(())
    }
}

impl Stream {
    /// Lost segments of the handshake take whole seconds, and are luck: the time begins with the first bytes.
    fn watch(&mut self, seconds: f64) {
        let (now, count) = (Instant::now(), self.count.get());
        match self.first {
            None if count > 0 => self.first = Some((now, count)),
            Some((first, before)) if self.rate.is_none() && (now - first).as_secs_f64() >= seconds => {
                self.rate = Some((count - before) as f64 * 8e-6 / (now - first).as_secs_f64());
            }
            _ => {}
        }
    }

    /// Who has ended by now has failed.
    fn check(&mut self) -> Result<()> {
        if !self.sink.is_running()? {
            bail!("a sink failed");
        }
        match self.source.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => Ok(()),
            _ => bail!("a source failed"),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(source) = &mut self.source {
            let _ = source.kill();
            let _ = source.wait();
        }
    }
}

//! `eft bench others`: other stacks in user space on the same kind of device, under the same loads.

use super::bulk::rate;
use super::figure::{Aim, Figure};
use super::latency::ask;
use super::report::print;
use super::side::{ECHO, Load, Setting, Side, at_far_end, chosen};
use super::stack::{Serving, host_peer, ip};
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub struct OthersArguments {
    #[command(flatten)]
    comparison: super::side::Comparison,
    /// Folder of the other stacks' programs, which `scripts/peers` builds (default: `peers` beside that of this program)
    #[arg(long)]
    peers: Option<PathBuf>,
}

/// Name, the program that serves on it, and whether that takes the far end of a veth pair; else it makes a TAP device. Each has
/// what it is fastest on.
const OTHERS: [(&str, &str, bool); 2] = [("smoltcp", "smoltcp-peer", false), ("gVisor", "gvisor-peer", true)];
const SINK: u16 = 5201;
/// A side has a sink of its own at the other port.
const EFT_SINK: u16 = 5211;
const SOURCE: u16 = 5202;
const LOADS: [(Load, &str, &str); 4] = [
    (Load::In, "bulk in", "Gb/s"),
    (Load::Out, "bulk out", "Gb/s"),
    (Load::Requests(1), "64 B requests, 1 connection", "1/s"),
    (Load::Requests(32), "64 B requests, 32 connections", "1/s"),
];
/// Beside either, in the order of [`Setting::ALL`].
const AIMS: [f64; 3] = [2.0, 2.0, 3.0];

/// What serves at the far end of a wire.
struct Server {
    far: String,
    sink: Serving,
    sink_port: u16,
    /// What else must go on: eft's source, and the stack.
    _rest: Option<(Serving, Side)>,
    _veth: Option<Veth>,
}

/// A veth pair, until it is dropped. The far end's name has a `p` more.
struct Veth(String);

impl Veth {
    fn make(near: &str) -> Result<Veth> {
        let far = format!("{near}p");
        ip(&["link", "add", near, "type", "veth", "peer", "name", &far])?;
        let veth = Veth(near.into());
        ip(&["link", "set", &far, "up"])?;
        Ok(veth)
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.0]);
    }
}

impl Server {
    fn of_eft(number: usize) -> Result<Server> {
        let side = Side::of_stack(number, Setting::ALL[number].topology, &[])?;
        let at = |port: u16| format!("{}:{port}", side.far);
        let serve = |arguments: &[&str]| Serving::start(at_far_end(&side, arguments)?);
        let (sink, flood) = (serve(&["sink", &at(EFT_SINK)])?, serve(&["flood", &at(SOURCE)])?);
        Ok(Server {
            far: side.far.clone(),
            sink,
            sink_port: EFT_SINK,
            _rest: Some((flood, side)),
            _veth: None,
        })
    }

    fn of_other(number: usize, program: &Path, on_veth: bool) -> Result<Server> {
        let (near, far) = (format!("10.79.{}.1/24", 40 + number), format!("10.79.{}.2", 40 + number));
        let device = format!("eftb{}o{number}", std::process::id() % 100_000);
        let veth = on_veth.then(|| Veth::make(&device)).transpose()?;
        let own = if on_veth { format!("{device}p") } else { device.clone() };
        let mut command = Command::new(program);
        command.args([own, format!("{far}/24")]);
        let sink = Serving::start(command).with_context(|| program.display().to_string())?;
        ip(&["addr", "add", &near, "dev", &device])?;
        ip(&["link", "set", &device, "up"])?;
        Ok(Server { far, sink, sink_port: SINK, _rest: None, _veth: veth })
    }

    /// What the load achieves in its unit.
    fn measure(&mut self, load: Load, seconds: f64) -> Result<f64> {
        let seconds = seconds.to_string();
        let at = |port: u16| format!("{}:{port}", self.far);
        match load {
            Load::Requests(connections) => {
                Ok(ask(host_peer(&["ask", &at(ECHO), &connections.to_string(), &seconds])?)?[0])
            }
            Load::In => {
                let status = host_peer(&["source", &at(self.sink_port), &seconds])?.status()?;
                if !status.success() {
                    bail!("a source failed");
                }
                rate(&self.sink.line()?)
            }
            Load::Out => {
                let drained = host_peer(&["drain", &at(SOURCE), &seconds])?.output()?;
                rate(String::from_utf8_lossy(&drained.stdout).trim())
            }
        }
    }
}

/// The other stacks' programs.
fn programs(arguments: &OthersArguments) -> Result<Vec<PathBuf>> {
    let own = std::env::current_exe()?;
    let beside = || own.parent().and_then(Path::parent).map(|dir| dir.join("peers"));
    let Some(folder) = arguments.peers.clone().or_else(beside) else { bail!("no folder for peers") };
    let all: Vec<PathBuf> = OTHERS.iter().map(|(_, program, _)| folder.join(program)).collect();
    match all.iter().find(|program| !program.exists()) {
        Some(missing) => bail!("{} is missing: scripts/peers builds it", missing.display()),
        None => Ok(all),
    }
}

pub fn run(arguments: &OthersArguments) -> Result<()> {
    let common = &arguments.comparison;
    let programs = programs(arguments)?;
    let stolen = Stolen::begin(None);
    let settings = chosen(&common.setting);
    let mut servers = Vec::new();
    for (number, _) in &settings {
        servers.push(Server::of_eft(*number)?);
    }
    for (number, (program, (.., on_veth))) in programs.iter().zip(OTHERS).enumerate() {
        servers.push(Server::of_other(number, program, on_veth)?);
    }
    let mut figures = Vec::new();
    for (load, name, unit) in LOADS {
        let mut rates = vec![Vec::new(); servers.len()];
        for _ in 0..common.rounds {
            for (server, rates) in servers.iter_mut().zip(&mut rates) {
                rates.push(server.measure(load, common.seconds)?);
            }
        }
        let others = rates.split_off(settings.len());
        for ((other, ..), baseline) in OTHERS.iter().zip(others) {
            for ((number, setting), own) in settings.iter().zip(&rates) {
                let figure = Figure::new(format!("{setting} beside {other}: {name}"), unit, own.clone());
                figures.push(figure.beside(other, baseline.clone()).aim(Aim::AtLeast(AIMS[*number])));
            }
        }
    }
    print("others", &figures, &[stolen.describe()], common.json)
}

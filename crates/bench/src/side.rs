//! A stack or a kernel with what serves on either side of its wire, and the loads that are put on it.

use super::bulk::rate;
use super::latency::ask;
use super::stack::{FAR, Kernels, NEAR, Serving, Stack, host_peer, ip};
use anyhow::{Context, Result, bail};
use eft_component::topology::{DEFAULT, EDGE, STACK};
use std::process::Command;

#[derive(Clone, Copy)]
pub enum Load {
    /// Bulk data to the far end.
    In,
    /// Bulk data from there.
    Out,
    /// 64-byte requests and responses on so many connections.
    Requests(usize),
}

pub const ECHO: u16 = 7;
const SINK: u16 = 5201;
const HOST_SINK: u16 = 5202;

/// A way to put components into processes, in the order in which aims are listed.
pub struct Setting {
    pub name: &'static str,
    pub topology: &'static str,
}

impl Setting {
    pub const ALL: [Setting; 3] = [
        Setting { name: "one process each", topology: DEFAULT },
        Setting { name: "edge", topology: EDGE },
        Setting { name: "stack", topology: STACK },
    ];
}

/// Options of a benchmark that compares the settings and the kernel.
#[derive(clap::Args, Debug, Clone)]
pub struct Comparison {
    /// Rounds of each setting and of the kernel, in turn; their medians are compared
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Only settings whose name contains this
    #[arg(long)]
    pub setting: Option<String>,
    #[arg(long)]
    pub json: bool,
}

/// Those settings whose names contain `only`, with their numbers.
pub fn chosen(only: &Option<String>) -> Vec<(usize, &'static str)> {
    let names = Setting::ALL.iter().map(|setting| setting.name).enumerate();
    names.filter(|(_, name)| only.as_ref().is_none_or(|only| name.contains(only.as_str()))).collect()
}

/// A command that runs `eft bench peer …` at the far end of the side's wire.
pub fn at_far_end(side: &Side, arguments: &[&str]) -> Result<Command> {
    beyond(&side.stack, &side.kernels, arguments)
}

/// A stack, or a kernel, with what serves on either side of its wire.
pub struct Side {
    pub stack: Option<Stack>,
    kernels: Option<Kernels>,
    pub near: String,
    /// The interface on this side of the wire.
    interface: String,
    pub far: String,
    sink: Serving,
    host_sink: Serving,
    _echo: Serving,
}

impl Side {
    /// `options`: further ones of `eft up`.
    pub fn of_stack(number: usize, topology: &str, options: &[&str]) -> Result<Side> {
        let id = std::process::id();
        let (near, far) = (format!("10.79.{}.1", 10 + number), format!("10.79.{}.2", 10 + number));
        let file = std::env::temp_dir().join(format!("eft-bench-{id}-{number}.toml"));
        std::fs::write(&file, topology).with_context(|| file.display().to_string())?;
        let device = format!("tap:eftb{}i{number}", id % 100_000);
        let (own, host) = (format!("{far}/24"), format!("{near}/24"));
        let all = [&["--address", &own, "--host-address", &host], options].concat();
        let stack = Stack::start_as(&format!("bench{id}-{number}"), &device, &all, Some(&file));
        let _ = std::fs::remove_file(&file);
        let interface = device.trim_start_matches("tap:").to_string();
        Side::new(Some(stack?), None, (near, far), interface)
    }

    pub fn of_kernels() -> Result<Side> {
        let kernels = Kernels::start()?;
        let interface = kernels.interface.clone();
        Side::new(None, Some(kernels), (NEAR.into(), FAR.into()), interface)
    }

    fn new(
        stack: Option<Stack>,
        kernels: Option<Kernels>,
        (near, far): (String, String),
        interface: String,
    ) -> Result<Side> {
        let beyond = |what: &str, port: u16| {
            let address = format!("{far}:{port}");
            Serving::start(beyond(&stack, &kernels, &[what, &address])?)
        };
        let (echo, sink) = (beyond("echo", ECHO)?, beyond("sink", SINK)?);
        let host_sink = Serving::start(host_peer(&["sink", &format!("{near}:{HOST_SINK}")])?)?;
        Ok(Side { stack, kernels, near, interface, far, sink, host_sink, _echo: echo })
    }

    /// Gives this side of the wire `count` further addresses of its network, from the number `first` on.
    pub fn add_near_addresses(&self, first: u8, count: u8) -> Result<()> {
        let network = self.near.rsplit_once('.').map_or("", |(network, _)| network);
        (first..first.saturating_add(count)).try_for_each(|number| {
            ip(&["addr", "add", &format!("{network}.{number}/32"), "dev", &self.interface])
        })
    }

    /// What the load achieves in its unit.
    pub fn measure(&mut self, load: Load, seconds: f64) -> Result<f64> {
        let seconds = seconds.to_string();
        let (source, sink) = match load {
            Load::Requests(connections) => {
                let arguments = ["ask", &format!("{}:{ECHO}", self.far), &connections.to_string(), &seconds];
                return Ok(ask(host_peer(&arguments)?)?[0]);
            }
            Load::In => (host_peer(&["source", &format!("{}:{SINK}", self.far), &seconds])?, &mut self.sink),
            Load::Out => {
                let arguments = ["source", &format!("{}:{HOST_SINK}", self.near), &seconds];
                (beyond(&self.stack, &self.kernels, &arguments)?, &mut self.host_sink)
            }
        };
        finish(source)?;
        rate(&sink.line()?)
    }
}

/// A command that runs `eft bench peer …` at the far end of the wire.
fn beyond(stack: &Option<Stack>, kernels: &Option<Kernels>, arguments: &[&str]) -> Result<Command> {
    match (stack, kernels) {
        (Some(stack), _) => stack.peer(arguments),
        (None, Some(kernels)) => kernels.peer(arguments),
        (None, None) => bail!("nobody is at the far end"),
    }
}

fn finish(mut command: Command) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("a source failed"),
        Err(e) => Err(e.into()),
    }
}

//! A stack or a kernel with what serves on either side of its wire, and the loads that are put on it.

use super::bulk::rate;
use super::latency::ask;
use super::stack::{FAR, Kernels, NEAR, Serving, Stack, host_peer};
use anyhow::{Context, Result, bail};
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

/// A stack, or a kernel, with what serves on either side of its wire.
pub struct Side {
    pub stack: Option<Stack>,
    kernels: Option<Kernels>,
    near: String,
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
        Side::new(Some(stack?), None, near, far)
    }

    pub fn of_kernels() -> Result<Side> {
        Side::new(None, Some(Kernels::start()?), NEAR.into(), FAR.into())
    }

    fn new(stack: Option<Stack>, kernels: Option<Kernels>, near: String, far: String) -> Result<Side> {
        let beyond = |what: &str, port: u16| {
            let address = format!("{far}:{port}");
            Serving::start(beyond(&stack, &kernels, &[what, &address])?)
        };
        let (echo, sink) = (beyond("echo", ECHO)?, beyond("sink", SINK)?);
        let host_sink = Serving::start(host_peer(&["sink", &format!("{near}:{HOST_SINK}")])?)?;
        Ok(Side { stack, kernels, near, far, sink, host_sink, _echo: echo })
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

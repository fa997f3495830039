//! The QEMU Machine Protocol, as far as a query for vCPU threads needs it.
//!
//! The other side is not trusted: it may lie, hang, close, or send without end. Every exchange has a deadline and a
//! largest size, and a thread counts only if it belongs to the process that holds the socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{Error, error};

/// A monitor answers within milliseconds; a monitor that is busy with another client sends no greeting.
const PATIENCE: Duration = Duration::from_millis(300);
const LINE_MAX: usize = 1 << 20;

/// What a guest says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Index and thread of each vCPU.
    pub vcpus: Vec<(u32, i32)>,
    pub is_running: bool,
    /// Id of the process at the other end.
    pub process: i32,
}

pub fn ask(path: &Path) -> Result<Answer, Error> {
    exchange(path).map_err(|reason| error!(Refused, "QMP socket {}: {reason}", path.display()))
}

fn exchange(path: &Path) -> Result<Answer, Error> {
    let stream =
        UnixStream::connect(path).map_err(|error| error!(System, "cannot be connected to ({error})"))?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| error!(System, "{error}"))?;
    let mut monitor = Monitor { stream, until: Instant::now() + PATIENCE, bytes: Vec::new() };
    if monitor.line()?.get("QMP").is_none() {
        return Err(error!(Invalid, "does not greet as QMP does"));
    }
    monitor.call("qmp_capabilities")?;
    let cpus = monitor.call("query-cpus-fast")?;
    let status = monitor.call("query-status")?;
    Ok(Answer {
        vcpus: vcpus(&cpus)?,
        is_running: status["running"].as_bool().unwrap_or(true),
        process: peer.pid.as_raw_nonzero().get(),
    })
}

fn vcpus(cpus: &Value) -> Result<Vec<(u32, i32)>, Error> {
    let of = |cpu: &Value| {
        let thread = cpu["thread-id"].as_i64().and_then(|tid| i32::try_from(tid).ok()).filter(|tid| *tid > 0);
        let index = cpu["cpu-index"].as_u64().and_then(|index| u32::try_from(index).ok());
        index.zip(thread).ok_or_else(|| error!(Invalid, "answers with something that is no vCPU"))
    };
    cpus.as_array()
        .ok_or_else(|| error!(Invalid, "answers with something that is no list of vCPUs"))?
        .iter()
        .map(of)
        .collect()
}

struct Monitor {
    stream: UnixStream,
    until: Instant,
    bytes: Vec<u8>,
}

impl Monitor {
    /// The reply to a command; events in between are skipped.
    fn call(&mut self, command: &str) -> Result<Value, Error> {
        let text = format!("{}\n", json!({ "execute": command }));
        self.stream.set_write_timeout(Some(PATIENCE)).map_err(|error| error!(System, "{error}"))?;
        self.stream.write_all(text.as_bytes()).map_err(|_| error!(Gone, "closes in the middle"))?;
        loop {
            let mut line = self.line()?;
            if let Some(error) = line.get("error") {
                let what = error["desc"].as_str().unwrap_or("no reason given");
                return Err(error!(Refused, "refuses {command} ({})", eft_base::text::one_line(what)));
            }
            if let Some(value) = line.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn line(&mut self) -> Result<Value, Error> {
        let mut buffer = [0u8; 4096];
        // Each byte is searched once, however much comes without an end of line.
        let mut searched = 0;
        loop {
            if let Some(end) = self.bytes[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=searched + end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|_| error!(Invalid, "says something that is no JSON"));
            }
            searched = self.bytes.len();
            if self.bytes.len() > LINE_MAX {
                return Err(error!(Invalid, "talks without end"));
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() && self.bytes.is_empty() {
                return Err(error!(Busy, "does not answer; another program may hold it"));
            }
            if left.is_zero() {
                return Err(error!(Invalid, "talks without end, or stops in the middle of a line"));
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| error!(System, "{error}"))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(error!(Gone, "closes in the middle")),
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error!(System, "cannot be read ({error})")),
            }
        }
    }
}

#[cfg(test)]
mod tests;

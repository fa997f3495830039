//! A stack on which a test's programs run.

use anyhow::{Context, Result, bail};
use eft_linux::operator;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A test has few sockets. packetdrill locks all its memory, also the mapped memory of the stack. A receive ring is
/// as long as Linux lets a receive buffer grow in these scripts, so that the window scale is what they expect.
const LIMITS: &str = "
[memory]
receive_ring_bytes = 16777216
[limits]
domains = 4
sockets_per_domain = 16
listeners_per_domain = 16
connections = 1024
";

/// A stack with one device.
pub struct Stack {
    pub name: String,
    process: Child,
}

impl Stack {
    /// Starts it; its name begins with `kind`. `options` are further ones of `eft up`.
    pub fn start(kind: &str, device: &str, options: &[String]) -> Result<Stack> {
        let topology = format!("{}{LIMITS}", eft_component::topology::DEFAULT);
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), topology)?;
        let name = format!("{kind}-{}", std::process::id());
        let mut process = Command::new(std::env::current_exe()?)
            .args(["up", "--name", &name, "--keep", "0", "--device", &format!("tap:{device}")])
            .arg("--topology")
            .arg(file.path())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().expect("it is piped");
        let stack = Stack { name, process };
        let read = BufReader::new(output).read_line(&mut line);
        match read.is_ok() && line.trim() == "ready" {
            true => Ok(stack),
            false => bail!("the stack did not start"),
        }
    }
}

impl Stack {
    /// Its Ethernet address at the device.
    pub fn mac(&self) -> Result<String> {
        let (answer, _) = operator::ask(&self.name, &json!({ "op": "info" }))?;
        answer["devices"][0]["mac"].as_str().map(String::from).context("the stack has no device")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: a number; the process is ours and not waited for yet.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        let _ = self.process.wait();
    }
}

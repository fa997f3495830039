//! A live stack for a test, undone when dropped.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use eft_linux::operator;
use serde_json::{Value, json};

pub struct Stack {
    child: Child,
    pub name: String,
}

impl Stack {
    /// `net` is the third number of 10.93.NET.2, the stack's address; .1 is its Linux side. Tests of one file run beside
    /// each other, so each has its own.
    pub fn start(kind: &str, net: u8, topology: Option<&Path>) -> Stack {
        let name = format!("{kind}{}", std::process::id());
        let device = format!("tap:eft{net}m{}", std::process::id() % 100_000);
        let mut command = Command::new(eft());
        command
            .args(["up", "--name", &name, "--device", &device, "--address", &format!("10.93.{net}.2/24")])
            .args(["--host-address", &format!("10.93.{net}.1/24")]);
        if let Some(topology) = topology {
            command.arg("--topology").arg(topology);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        let read = child.stdout.take().unwrap().read_exact(&mut ready);
        let stack = Stack { child, name };
        assert!(read.is_ok() && &ready == b"ready\n", "the stack did not start");
        stack
    }

    pub fn ask(&self, request: &Value) -> Value {
        operator::ask(&self.name, request).unwrap().0
    }

    /// One component as `eft ps` has it.
    pub fn component(&self, name: &str) -> Value {
        let answer = self.ask(&json!({ "op": "ps" }));
        answer["components"].as_array().unwrap().iter().find(|c| c["component"] == name).unwrap().clone()
    }

    /// Those that carry packets.
    pub fn components(&self) -> Vec<String> {
        let answer = self.ask(&json!({ "op": "ps" }));
        let all = answer["components"].as_array().unwrap();
        all.iter().map(|c| c["component"].as_str().unwrap().to_string()).filter(|n| n != "cores").collect()
    }

    pub fn place(&self, component: &str, cpu: u32, dedicated: bool) {
        let request = json!({ "op": "place", "component": component, "cpu": cpu, "dedicated": dedicated });
        assert_eq!(self.ask(&request)["cpu"], cpu);
    }

    /// A command of `eft` about this stack.
    pub fn eft(&self, arguments: &[&str]) -> Output {
        Command::new(eft()).args(arguments).args(["--name", &self.name]).output().unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.eft(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The single line of an error.
    pub fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.eft(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?} was accepted");
        assert_eq!(text.trim().lines().count(), 1, "{arguments:?}: {text}");
        text
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that was not reaped yet.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

/// A program that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn eft() -> &'static str {
    env!("CARGO_BIN_EXE_eft")
}

/// The preloaded library lies beside the program; testing this crate alone does not build it, and one that is there may be
/// older than the program.
pub fn build_shim() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "-p", "eft-shim"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    assert!(command.status().unwrap().success(), "the shim cannot be built");
}

/// The first two CPUs. `None`, with a line that says why, where this machine cannot do live tests of placement.
pub fn cpus() -> Option<[u32; 2]> {
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let online: eft_machine::CpuSet = online.trim().parse().unwrap();
    let mut cpus = online.iter();
    match (is_root, cpus.next(), cpus.next()) {
        (true, Some(a), Some(b)) => Some([a.0, b.0]),
        _ => {
            eprintln!("skipped: this needs root and two CPUs");
            None
        }
    }
}

/// Waits for something that must come, however slow the machine is.
pub fn wait_for<T>(what: &str, mut come: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = come() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

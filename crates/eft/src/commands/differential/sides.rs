//! The two sides: a process on the kernel, at one end of a pair of devices in a network of its own, and the same program
//! on a stack.

use crate::commands::packetdrill::Stack;
use anyhow::{Context, Result, bail};
use eft_differential::observation::Observation;
use eft_differential::program::Program;
use eft_differential::serve::{HOST_V4, HOST_V6, ROUTER_V4, ROUTER_V6, Request, serve};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const DEVICE: &str = "differ0";
/// The kernel's devices: its own, and the peer's.
const NEAR: &str = "near";
const FAR: &str = "far";

/// What the kernel is told: eft's settings where they have an equal; nothing is remembered from one program to the
/// next; answers are not limited in number and nothing is sent with a tail loss probe, so that none depends on the time.
const SETTINGS: &[(&str, &str)] = &[
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_invalid_ratelimit", "0"),
    ("net/ipv4/tcp_early_retrans", "0"),
    ("net/ipv4/icmp_ratelimit", "0"),
    ("net/ipv4/icmp_ratemask", "0"),
    ("net/ipv6/icmp/ratelimit", "0"),
    ("net/ipv6/conf/far/disable_ipv6", "1"),
];

#[derive(clap::Args, Debug)]
pub struct SideArguments {
    /// The wire's device and the tested host's Ethernet address there; nothing: the kernel is tested
    wire: Option<String>,
}

/// `eft differential-side`.
pub fn side(arguments: &SideArguments) -> Result<()> {
    match &arguments.wire {
        Some(wire) => serve(wire),
        None => serve(&kernel_wire()?),
    }
}

/// Moves into a network namespace.
pub fn own_network() -> Result<()> {
    // SAFETY: changes the network namespace of this process, which has one thread so far; touches no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        bail!("a comparison wants a network of its own: {error} (run it as root)");
    }
    ip("link set lo up")
}

fn ip(words: &str) -> Result<()> {
    let done = Command::new("ip").args(words.split(' ')).status().context("ip: is iproute2 installed?")?;
    if done.success() { Ok(()) } else { bail!("`ip {words}` failed") }
}

/// Makes the kernel's devices: what the wire is then.
fn kernel_wire() -> Result<String> {
    own_network()?;
    ip(&format!("link add {NEAR} type veth peer name {FAR}"))?;
    for (name, value) in SETTINGS {
        // A kernel may lack some.
        let _ = std::fs::write(format!("/proc/sys/{name}"), value);
    }
    ip(&format!("addr add {HOST_V4}/16 dev {NEAR}"))?;
    ip(&format!("addr add {HOST_V6}/64 dev {NEAR} nodad"))?;
    ip(&format!("link set {NEAR} up"))?;
    ip(&format!("link set {FAR} arp off up"))?;
    ip(&format!("route add default via {ROUTER_V4}"))?;
    ip(&format!("-6 route add default via {ROUTER_V6} dev {NEAR}"))?;
    let mac = std::fs::read_to_string(format!("/sys/class/net/{NEAR}/address"));
    let mac = match mac {
        Ok(mac) => mac.trim().to_string(),
        // /sys may show another network's devices.
        Err(_) => mac_by_ip()?,
    };
    Ok(format!("{FAR},{mac}"))
}

fn mac_by_ip() -> Result<String> {
    let said = Command::new("ip").args(["-o", "link", "show", NEAR]).output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mac = said.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
    mac.map(String::from).context("the device has no address")
}

/// A process that runs programs.
struct Side {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Side {
    fn start(mut command: Command) -> Result<Side> {
        // SAFETY: the child only asks to be told of its parent's end.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        Ok(Side { process, requests, answers })
    }

    fn ask(&mut self, request: &Request) -> Result<Vec<Observation>> {
        writeln!(self.requests, "{}", serde_json::to_string(request)?)?;
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => bail!("the process that ran a program has ended ({:?})", self.process.try_wait()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub struct Sides {
    kernel: Side,
    eft: Side,
    // After the programs that run on it.
    _stack: Stack,
    run: u32,
}

impl Sides {
    pub fn start() -> Result<Sides> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(&program);
        command.arg("differential-side");
        let kernel = Side::start(command)?;
        let options = [
            "--address",
            &format!("{HOST_V4}/16"),
            "--address",
            &format!("{HOST_V6}/64"),
            "--gateway",
            &ROUTER_V4.to_string(),
            "--gateway",
            &ROUTER_V6.to_string(),
            "--tail-probes",
            "off",
        ]
        .map(String::from);
        let stack = Stack::start("differential", DEVICE, &options)?;
        let mut command = Command::new(&program);
        command.args(["run", "--name", &stack.name, "--"]).arg(&program);
        command.args(["differential-side", &format!("{DEVICE},{}", stack.mac()?)]);
        let eft = Side::start(command)?;
        Ok(Sides { kernel, eft, _stack: stack, run: 0 })
    }

    /// Runs a program on the kernel, and then on eft.
    pub fn run(&mut self, program: &Program) -> Result<(Vec<Observation>, Vec<Observation>)> {
        self.run += 1;
        let mut request = Request { run: self.run, program: program.clone(), expected: None };
        let kernel = self.kernel.ask(&request)?;
        request.expected = Some(kernel.clone());
        let eft = self.eft.ask(&request)?;
        Ok((kernel, eft))
    }
}

//! Stacks and kernels for a measurement: over veth, or over wires that lose and delay. All are undone when
//! dropped.

use super::link::Link;
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Address of the stack under test and of its Linux side.
pub const STACK: &str = "10.79.0.2";
pub const HOST: &str = "10.79.0.1";
/// Addresses of the two kernels.
pub const NEAR: &str = "10.79.1.1";
pub const FAR: &str = "10.79.1.2";

/// Kinds of devices as the command line names them.
pub const TAP: &str = "tap";
pub const PLAIN_TAP: &str = "plain-tap";

/// A running stack.
pub struct Stack {
    child: Child,
    pub name: String,
}

impl Stack {
    pub fn start(topology: Option<&Path>) -> Result<Stack> {
        let (device, addresses) = usual(TAP);
        Stack::start_on(&device, &addresses.each_ref().map(String::as_str), topology)
    }

    /// A supervisor of the usual stack that reports to the socket `manager` (sd_notify(3)), and gives a sign of life in time for
    /// a `watchdog`. `kind` is that of its TAP device.
    pub fn start_within(kind: &str, manager: &Path, watchdog: Duration) -> Result<Stack> {
        let (device, addresses) = usual(kind);
        let mut command = Command::new(exe()?);
        command
            .args(["up", "--name", &usual_name(), "--device", &device])
            .args(addresses)
            .env("NOTIFY_SOCKET", manager)
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        Stack::start_by(command, usual_name())
    }

    pub fn start_on(device: &str, addresses: &[&str], topology: Option<&Path>) -> Result<Stack> {
        Stack::start_as(&usual_name(), device, addresses, topology)
    }

    pub fn start_as(name: &str, device: &str, addresses: &[&str], topology: Option<&Path>) -> Result<Stack> {
        let mut command = Command::new(exe()?);
        command.args(["up", "--name", name, "--device", device]).args(addresses);
        if let Some(t) = topology {
            command.arg("--topology").arg(t);
        }
        Stack::start_by(command, name.into())
    }

    fn start_by(mut command: Command, name: String) -> Result<Stack> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a stack")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let stack = Stack { child, name };
        if line.trim() == "ready" { Ok(stack) } else { bail!("the stack did not start") }
    }

    /// The supervisor's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Those of the supervisor and of all servers, as they are now.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let (answer, _) = eft_linux::operator::ask(&self.name, &serde_json::json!({ "op": "ps" }))?;
        let servers = answer["components"].as_array().into_iter().flatten().map(|server| &server["pid"]);
        let mut processes: Vec<u32> = servers
            .chain([&answer["pid"]])
            .filter_map(|pid| pid.as_u64().and_then(|pid| u32::try_from(pid).ok()))
            .collect();
        // Servers may share one.
        processes.sort_unstable();
        processes.dedup();
        Ok(processes)
    }

    /// A command that runs `eft bench peer …` on the stack.
    pub fn peer(&self, arguments: &[&str]) -> Result<Command> {
        peer_on(&self.name, arguments)
    }

    /// A command that runs a program on the stack.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(exe()?);
        command.args(["run", "--name", &self.name, "--", program]).args(arguments);
        Ok(command)
    }

    /// Whether the supervisor has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the supervisor.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs `eft bench peer …` on a stack.
pub fn peer_on(stack: &str, arguments: &[&str]) -> Result<Command> {
    let exe = exe()?;
    let mut command = Command::new(&exe);
    command.args(["run", "--name", stack, "--"]).arg(&exe).args(["bench", "peer"]).args(arguments);
    Ok(command)
}

fn usual_name() -> String {
    format!("bench{}", std::process::id())
}

/// The device of the usual stack, and the options of its addresses.
fn usual(kind: &str) -> (String, [String; 4]) {
    let device = format!("{kind}:eftb{}", std::process::id() % 100_000);
    let addresses = ["--address", &format!("{STACK}/24"), "--host-address", &format!("{HOST}/24")];
    (device, addresses.map(Into::into))
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.has_ended() {
            // SAFETY: a signal to a child that we have not reaped yet.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
            let _ = self.child.wait();
        }
    }
}

/// A network namespace joined to this one by a veth pair.
pub struct Kernels {
    namespace: String,
    pub interface: String,
}

impl Kernels {
    pub fn start() -> Result<Kernels> {
        let id = std::process::id() % 100_000;
        let kernels = Kernels { namespace: format!("eftbench{id}"), interface: format!("eftv{id}") };
        let (ns, near) = (&kernels.namespace, &kernels.interface);
        let far = format!("{near}p");
        ip(&["netns", "add", ns])?;
        ip(&["link", "add", near, "type", "veth", "peer", "name", &far, "netns", ns])?;
        ip(&["addr", "add", &format!("{NEAR}/24"), "dev", near])?;
        ip(&["link", "set", near, "up"])?;
        ip(&["-n", ns, "addr", "add", &format!("{FAR}/24"), "dev", &far])?;
        ip(&["-n", ns, "link", "set", &far, "up"])?;
        Ok(kernels)
    }

    /// A command that runs `eft bench peer …` in the namespace.
    pub fn peer(&self, arguments: &[&str]) -> Result<Command> {
        Ok(self.command(&exe()?.to_string_lossy(), &[&["bench", "peer"], arguments].concat()))
    }

    /// A command that runs a program in the namespace.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]).args(arguments);
        command
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.interface]);
        let _ = ip(&["netns", "del", &self.namespace]);
    }
}

/// The addresses at both ends of a wire.
#[derive(Clone, Copy)]
pub struct Ends {
    pub near: &'static str,
    pub far: &'static str,
}

pub const STACK_ENDS: Ends = Ends { near: "10.79.2.2", far: "10.79.2.1" };
pub const KERNEL_ENDS: Ends = Ends { near: "10.79.3.2", far: "10.79.3.1" };

/// A stack and a kernel, each with a wire of its own to another kernel.
pub struct Impaired {
    // The fields are dropped in this order: the user of a device before the device.
    stack: Stack,
    links: [Link; 2],
    namespaces: Namespaces,
}

/// That of the near kernel, and that of the far one.
struct Namespaces([String; 2]);

impl Namespaces {
    fn make() -> Result<Namespaces> {
        let id = std::process::id() % 100_000;
        let names = Namespaces([format!("eftnear{id}"), format!("eftfar{id}")]);
        names.0.iter().try_for_each(|name| ip(&["netns", "add", name]))?;
        Ok(names)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

impl Impaired {
    pub fn start(topology: Option<&Path>) -> Result<Impaired> {
        let namespaces = Namespaces::make()?;
        let [near, far] = &namespaces.0;
        let id = std::process::id() % 100_000;
        let name = |end: &str| format!("efti{id}{end}");
        let stack_wire = [plain_tap(&name("a"))?, plain_tap(&name("b"))?];
        let kernel_wire = [plain_tap(&name("c"))?, plain_tap(&name("d"))?];
        ip(&["link", "set", &name("a"), "up"])?;
        move_into(far, &name("b"), STACK_ENDS.far)?;
        move_into(near, &name("c"), KERNEL_ENDS.near)?;
        move_into(far, &name("d"), KERNEL_ENDS.far)?;
        let links = [Link::start(stack_wire), Link::start(kernel_wire)];
        let address = format!("{}/24", STACK_ENDS.near);
        let stack = Stack::start_on(&format!("packet:{}", name("a")), &["--address", &address], topology)?;
        Ok(Impaired { stack, links, namespaces })
    }

    pub fn links(&self) -> [&Link; 2] {
        [&self.links[0], &self.links[1]]
    }

    /// A command that runs `eft bench peer …` where `address` is.
    pub fn peer(&self, address: &str, arguments: &[&str]) -> Result<Command> {
        if address == STACK_ENDS.near {
            return self.stack.peer(arguments);
        }
        let [near, far] = &self.namespaces.0;
        let namespace = if address == KERNEL_ENDS.near { near } else { far };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(exe()?).args(["bench", "peer"]).args(arguments);
        Ok(command)
    }
}

/// A TAP device that segments nothing: what it gives are frames as on an Ethernet.
fn plain_tap(name: &str) -> Result<File> {
    Ok(eft_linux::devices::tap::open_plain(name).map(File::from)?)
}

fn move_into(namespace: &str, interface: &str, address: &str) -> Result<()> {
    ip(&["link", "set", interface, "netns", namespace])?;
    ip(&["-n", namespace, "addr", "add", &format!("{address}/24"), "dev", interface])?;
    ip(&["-n", namespace, "link", "set", interface, "up"])
}

pub fn ip(arguments: &[&str]) -> Result<()> {
    let output =
        Command::new("ip").args(arguments).output().map_err(|e| anyhow!("ip: {e}: install iproute2"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim())
}

pub fn exe() -> Result<std::path::PathBuf> {
    std::env::current_exe().context("cannot find eft's own program file")
}

/// A command that runs `eft bench peer …` on this kernel.
pub fn host_peer(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(exe()?);
    command.args(["bench", "peer"]).args(arguments);
    Ok(command)
}

/// A peer that serves, killed when dropped; `listening` was printed before this returns.
pub struct Serving(Child, Option<BufReader<std::process::ChildStdout>>);

impl Serving {
    pub fn start(mut command: Command) -> Result<Serving> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a peer")?;
        let mut out = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        if line.trim() != "listening" {
            let _ = child.kill();
            let _ = child.wait();
            bail!("a peer could not listen");
        }
        Ok(Serving(child, Some(out)))
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }

    /// The next line that the peer prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if let Some(out) = &mut self.1 {
            out.read_line(&mut line)?;
        }
        Ok(line.trim().to_string())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

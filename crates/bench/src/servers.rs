//! `eft bench servers`: nginx under wrk and redis under redis-benchmark, on stacks and on the kernel, in turn.

use super::figure::{Aim, Figure};
use super::report::print;
use super::side::{Setting, chosen};
use super::stack::{FAR, Kernels, Stack};
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct ServersArguments {
    /// Rounds of each setting and of the kernel, in turn; their medians are compared
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each load, about
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// Only loads whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Only settings whose name contains this
    #[arg(long)]
    setting: Option<String>,
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
enum Load {
    /// So many connections of wrk that ask nginx for this file.
    Web { file: &'static str, connections: u32 },
    /// 50 connections of redis-benchmark, with so many requests on their way on each.
    Store { pipeline: u32 },
}

/// Each with its aims beside the kernel, in the order of the settings.
const LOADS: [(&str, Load, [f64; 3]); 8] = [
    ("nginx 10 B x8", Load::Web { file: "10", connections: 8 }, [0.85, 0.95, 1.0]),
    ("nginx 10 B x64", Load::Web { file: "10", connections: 64 }, [0.85, 0.95, 1.0]),
    ("nginx 10 B x1000", Load::Web { file: "10", connections: 1000 }, [0.85, 0.95, 1.0]),
    ("nginx 100 kB x8", Load::Web { file: "100000", connections: 8 }, [0.7, 0.8, 0.9]),
    ("nginx 100 kB x64", Load::Web { file: "100000", connections: 64 }, [0.7, 0.8, 0.9]),
    ("nginx 10 MB x8", Load::Web { file: "10000000", connections: 8 }, [0.9, 0.8, 0.9]),
    ("redis, pipeline 1", Load::Store { pipeline: 1 }, [0.8, 0.85, 1.0]),
    ("redis, pipeline 16", Load::Store { pipeline: 16 }, [0.8, 0.85, 1.0]),
];

const WEB: u16 = 8080;
const STORE: u16 = 6379;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests of redis-benchmark for each second, without a pipeline.
const STORE_RATE: u32 = 50_000;

pub fn run(arguments: &ServersArguments) -> Result<()> {
    super::raise_file_limit();
    let stolen = Stolen::begin(None);
    let settings = chosen(&arguments.setting);
    let is_wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let folder = Folder::make()?;
    let mut sides = Vec::new();
    for (number, _) in &settings {
        sides.push(Side::of_stack(*number, Setting::ALL[*number].topology, &folder.0)?);
    }
    sides.push(Side::of_kernels(&folder.0)?);
    let mut figures = Vec::new();
    for (name, load, aims) in LOADS.iter().filter(|(name, ..)| is_wanted(name)) {
        let mut rates = vec![Vec::new(); sides.len()];
        for _ in 0..arguments.rounds {
            for (side, rates) in sides.iter().zip(&mut rates) {
                rates.push(side.measure(*load, arguments.seconds.max(1)).with_context(|| name.to_string())?);
            }
        }
        let kernel = rates.pop().unwrap_or_default();
        for ((number, setting), rates) in settings.iter().zip(rates) {
            figures.push(
                Figure::new(format!("{setting}: {name}"), "1/s", rates)
                    .beside("two kernels over veth", kernel.clone())
                    .aim(Aim::AtLeast(aims[*number])),
            );
        }
    }
    print("servers", &figures, &[stolen.describe()], arguments.json)
}

/// The files that nginx serves, each named for its length.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Folder> {
        let folder = Folder(std::env::temp_dir().join(format!("eft-bench-servers-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).with_context(|| folder.0.display().to_string())?;
        for (_, load, _) in &LOADS {
            if let Load::Web { file, .. } = load {
                std::fs::write(folder.0.join(file), vec![b'e'; file.parse()?])?;
            }
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that is asked to end when dropped.
struct Server(Child);

impl Server {
    fn start(mut command: Command, address: &str, port: u16) -> Result<Server> {
        let name = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context(name.clone())?;
        let mut server = Server(child);
        let since = Instant::now();
        while TcpStream::connect((address, port)).is_err() {
            if server.0.try_wait()?.is_some() || since.elapsed() > PATIENCE {
                bail!("`{name}` does not serve {address}:{port}: is it installed?");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that we have not reaped yet.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// Both servers on a stack, or in another namespace.
struct Side {
    // Dropped first: servers before what they run on.
    _servers: [Server; 2],
    address: String,
    _stack: Option<Stack>,
    _kernels: Option<Kernels>,
}

impl Side {
    fn of_stack(number: usize, topology: &str, folder: &Path) -> Result<Side> {
        let id = std::process::id();
        let (near, far) = (format!("10.79.{}.1", 20 + number), format!("10.79.{}.2", 20 + number));
        let file = folder.join(format!("{number}.toml"));
        std::fs::write(&file, topology)?;
        let device = format!("tap:eftb{}s{number}", id % 100_000);
        let (own, host) = (format!("{far}/24"), format!("{near}/24"));
        let options = ["--address", &own, "--host-address", &host];
        let stack = Stack::start_as(&format!("servers{id}-{number}"), &device, &options, Some(&file))?;
        let servers = serve(folder, &far, |program, arguments| stack.command(program, arguments))?;
        Ok(Side { _servers: servers, address: far, _stack: Some(stack), _kernels: None })
    }

    fn of_kernels(folder: &Path) -> Result<Side> {
        let kernels = Kernels::start()?;
        let servers = serve(folder, FAR, |program, arguments| Ok(kernels.command(program, arguments)))?;
        Ok(Side { _servers: servers, address: FAR.into(), _stack: None, _kernels: Some(kernels) })
    }

    /// Requests a second.
    fn measure(&self, load: Load, seconds: u32) -> Result<f64> {
        let (address, seconds_text) = (&self.address, format!("{seconds}s"));
        match load {
            Load::Web { file, connections } => {
                let (threads, connections) = (connections.min(2).to_string(), connections.to_string());
                let url = format!("http://{address}:{WEB}/{file}");
                let said = output(
                    "wrk",
                    &["-t", &threads, "-c", &connections, "-d", &seconds_text, "--timeout", "10s", &url],
                )?;
                web_rate(&said)
            }
            Load::Store { pipeline } => {
                let (port, pipe) = (STORE.to_string(), pipeline.to_string());
                let count = (STORE_RATE * seconds * if pipeline > 1 { 8 } else { 1 }).to_string();
                let said = output(
                    "redis-benchmark",
                    &[
                        "-h", address, "-p", &port, "-c", "50", "-n", &count, "-P", &pipe, "-t", "get",
                        "--csv",
                    ],
                )?;
                store_rate(&said)
            }
        }
    }
}

/// Starts nginx, with one worker, and redis, where `command` says.
fn serve(
    folder: &Path,
    address: &str,
    command: impl Fn(&str, &[&str]) -> Result<Command>,
) -> Result<[Server; 2]> {
    let own = folder.join(address);
    std::fs::create_dir_all(&own)?;
    let config = own.join("nginx.conf");
    let (here, files) = (own.display(), folder.display());
    std::fs::write(
        &config,
        format!(
            "user root; worker_processes 1; worker_rlimit_nofile 8192; daemon off; pid {here}/nginx.pid;\n\
             error_log {here}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
             server {{ listen {address}:{WEB}; root {files}; }} }}\n"
        ),
    )?;
    let web = command("nginx", &["-c", &config.to_string_lossy()])?;
    let (port, here) = (STORE.to_string(), own.to_string_lossy().into_owned());
    let store = command(
        "redis-server",
        &["--bind", address, "--port", &port, "--save", "", "--protected-mode", "no", "--dir", &here],
    )?;
    Ok([Server::start(web, address, WEB)?, Server::start(store, address, STORE)?])
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("`{program}` cannot be started: is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(said)
}

/// What wrk says; an answer that is no success is an error.
fn web_rate(said: &str) -> Result<f64> {
    if let Some(line) = said.lines().find(|line| line.contains("Non-2xx") || line.contains("Socket errors")) {
        bail!("wrk: {}", line.trim());
    }
    let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.with_context(|| format!("wrk said `{}`", said.trim()))
}

/// What redis-benchmark says with `--csv`: the second word of the line of GET.
fn store_rate(said: &str) -> Result<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("\"GET\",\""));
    let rate = line.and_then(|line| line.split('"').next()?.parse().ok());
    rate.with_context(|| format!("redis-benchmark said `{}`", said.trim()))
}

#[cfg(test)]
mod tests;

//! `eft bench recovery`: how long it takes from a server's death until its successor is at work, and how long a request waits
//! while servers are replaced, or all but the keeper are killed.

mod engine;
mod replaced;

use super::crowd::{Crowd, PATIENCE};
use super::figure::{Aim, Figure};
use super::report::print;
use super::stack::Stack;
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use eft_component::topology::DEFAULT;
use eft_host::clock;
use eft_linux::operator;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct RecoveryArguments {
    /// Deaths of each component without and with a standby, in turn; medians are compared
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Established connections of each stack
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    connections: usize,
    /// Only these components; may be repeated
    #[arg(long = "component", value_name = "COMPONENT", value_parser = clap::builder::PossibleValuesParser::new(COMPONENTS))]
    components: Vec<String>,
    /// Only deaths of single components: nothing is replaced, and the keeper is never left alone
    #[arg(long)]
    deaths_only: bool,
    /// Only tcp's engine, without processes, whose descriptors limit the connections
    #[arg(long)]
    engine_only: bool,
    #[arg(long)]
    json: bool,
}

impl RecoveryArguments {
    fn components(&self) -> Vec<&str> {
        let asked = |name: &&str| self.components.is_empty() || self.components.iter().any(|c| c == name);
        COMPONENTS.into_iter().filter(asked).collect()
    }
}

const COMPONENTS: [&str; 6] = ["tcp", "ip", "filter", "nic", "udp", "sockets"];
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "not a number from 1 on".into())
}

/// Milliseconds without a standby, and with one, of as many connections at most.
const AIMS: [(usize, [f64; 2]); 2] = [(1000, [5.0, 1.0]), (100_000, [50.0, 50.0])];

const PORT: u16 = 7;
/// The time until every standby exists again and all work after a death is done.
const REST: Duration = Duration::from_millis(300);

/// What a stack is started with, also for the second time.
struct Recipe {
    name: String,
    device: String,
    near: String,
    far: String,
    topology: String,
}

impl Recipe {
    fn start(&self) -> Result<Stack> {
        let file = std::env::temp_dir().join(format!("eft-bench-recovery-{}.toml", self.name));
        std::fs::write(&file, &self.topology).with_context(|| file.display().to_string())?;
        let addresses =
            ["--address", &format!("{}/24", self.far), "--host-address", &format!("{}/24", self.near)];
        let stack = Stack::start_as(&self.name, &self.device, &addresses, Some(&file));
        let _ = std::fs::remove_file(&file);
        stack
    }
}

/// A stack with connections to programs on it.
struct Populated {
    recipe: Recipe,
    stack: Stack,
    /// One of the connections, which is asked all the time.
    one: TcpStream,
    crowd: Crowd,
}

impl Populated {
    fn start(number: usize, topology: &str, connections: usize) -> Result<Populated> {
        let id = std::process::id();
        let recipe = Recipe {
            name: format!("bench{id}-{number}"),
            device: format!("tap:eftb{}r{number}", id % 100_000),
            near: format!("10.79.{}.1", 30 + number),
            far: format!("10.79.{}.2", 30 + number),
            topology: topology.into(),
        };
        let stack = recipe.start()?;
        let crowd = Crowd::start(&stack.name, &recipe.far, PORT, connections.saturating_sub(1).max(1))?;
        let one = TcpStream::connect(format!("{}:{PORT}", recipe.far)).context("a connection")?;
        Ok(Populated { recipe, stack, one, crowd })
    }

    /// What `eft ps` says of a component; of a nic, of the only one.
    fn component(&self, name: &str) -> Result<Value> {
        let (answer, _) = operator::ask(&self.stack.name, &json!({ "op": "ps" }))?;
        let is_it = |c: &&Value| {
            let full = c["component"].as_str().unwrap_or_default();
            full == name || full.split(':').next() == Some(name)
        };
        let found = answer["components"].as_array().into_iter().flatten().find(is_it).cloned();
        found.with_context(|| format!("there is no component `{name}`"))
    }

    /// Kills a component's process; milliseconds until its successor is at work, and the bytes of state that it took over.
    fn kill(&self, name: &str) -> Result<(f64, u64)> {
        let full = self.component(name)?["component"].clone();
        // Its death is not to count toward slower restarts; nothing is broken.
        let (victim, _) = operator::ask(
            &self.stack.name,
            &json!({ "op": "inject", "component": full, "fault": null, "skip": 0 }),
        )?;
        let pid = victim["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
        let died = clock::now();
        kill_process(pid.context("a component without a process")?, Signal::KILL)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            std::thread::sleep(REST);
            let now = self.component(name)?;
            let recovery = &now["recovery"];
            if let (Some(at), Some(bytes)) = (recovery["at_ns"].as_u64(), recovery["state_bytes"].as_u64())
                && now["state"] == "running"
                && at > died.as_nanos()
            {
                return Ok(((at - died.as_nanos()) as f64 / 1e6, bytes));
            }
        }
        bail!("{name} was not at work again after {} s", PATIENCE.as_secs())
    }
}

/// The topology `text` with a standby for each component that is measured.
fn with_standby(text: &str) -> String {
    COMPONENTS.iter().fold(text.to_string(), |text, name| {
        text.replacen(&format!("name = \"{name}\""), &format!("name = \"{name}\"\nstandby = true"), 1)
    })
}

/// Without a standby, and with one.
fn aims(connections: usize) -> Option<[f64; 2]> {
    AIMS.iter().find(|(most, _)| connections <= *most).map(|(_, aims)| *aims)
}

pub fn run(arguments: &RecoveryArguments) -> Result<()> {
    super::raise_file_limit();
    let stolen = Stolen::begin(None);
    let engine = engine::figure(arguments.connections, arguments.rounds)?;
    if arguments.engine_only {
        let notes = [format!("{} connections", arguments.connections), stolen.describe()];
        return print("recovery", &[engine], &notes, arguments.json);
    }
    let mut stacks = [
        Populated::start(0, DEFAULT, arguments.connections)?,
        Populated::start(1, &with_standby(DEFAULT), arguments.connections)?,
    ];
    // Until each standby waits.
    std::thread::sleep(REST * 2);
    let mut figures = vec![engine];
    let mut state = 0;
    for name in arguments.components() {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..arguments.rounds {
            for (stack, times) in stacks.iter_mut().zip(&mut times) {
                let (time, bytes) = stack.kill(name)?;
                times.push(time);
                state = state.max(bytes);
            }
        }
        stacks.iter_mut().try_for_each(|stack| stack.crowd.ask_all())?;
        let aims = aims(arguments.connections);
        let what = |with: &str| format!("{name}, {with}: from its death until its successor works");
        let [without, with] = times;
        let aim = |figure: Figure, n: usize| match aims {
            Some(aims) => figure.aim(Aim::AtMost(aims[n])),
            None => figure,
        };
        figures.push(aim(Figure::new(what("no standby"), "ms", without), 0));
        figures.push(aim(Figure::new(what("standby"), "ms", with), 1));
    }
    if !arguments.deaths_only {
        figures.extend(replaced::figures(&mut stacks[0], &arguments.components(), arguments.rounds)?);
    }
    stacks[0].crowd.ask_all()?;
    let notes = [
        format!("{} connections of each stack, all of which answered afterwards", arguments.connections),
        format!("the largest state that was taken over: {} KiB", state >> 10),
        stolen.describe(),
    ];
    print("recovery", &figures, &notes, arguments.json)
}

#[cfg(test)]
mod tests;

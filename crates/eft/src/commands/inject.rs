//! `eft inject`: breaks a component in a chosen way, for tests of what the others make of it.

use eft_base::Random;
use eft_component::server::counter;
use eft_linux::inject::{self, KINDS, Kind};
use eft_linux::operator;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
pub struct InjectArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    #[arg(required_unless_present = "list")]
    component: Option<String>,
    /// How it breaks; `--list` shows all
    #[arg(required_unless_present = "list")]
    kind: Option<String>,
    /// What is random follows from this number
    #[arg(long)]
    seed: Option<u64>,
    /// Show the kinds of faults
    #[arg(long)]
    list: bool,
    #[arg(long)]
    json: bool,
}

/// Messages that may pass before one is broken, and how long that one is waited for.
const SKIP_MAX: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(2);

pub fn run(arguments: &InjectArguments) -> Result<(), String> {
    if arguments.list {
        let rows: Vec<_> =
            KINDS.iter().map(|(name, _, what)| vec![name.to_string(), what.to_string()]).collect();
        super::print_table(&["KIND", "WHAT BREAKS"], &rows);
        return Ok(());
    }
    let (Some(component), Some(kind)) = (&arguments.component, &arguments.kind) else { return Ok(()) };
    let seed = arguments.seed.unwrap_or_else(|| eft_host::clock::now().as_nanos());
    let injected = inject(&arguments.stack.name, component, Kind::parse(kind)?, seed)?;
    match arguments.json {
        true => println!(
            "{}",
            json!({ "component": component, "kind": kind, "pid": injected.pid, "seed": seed, "what": injected.what })
        ),
        false => println!("{component} (process {}): {} (seed {seed})", injected.pid, injected.what),
    }
    Ok(())
}

/// What was done to whom.
pub struct Injected {
    pub pid: u32,
    pub what: String,
}

/// Tells the supervisor what comes, and does it.
pub fn inject(stack: &str, component: &str, kind: Kind, seed: u64) -> Result<Injected, String> {
    let mut random = Random::new(seed);
    let before = struck(stack, component)?;
    let request = json!({ "op": "inject", "component": component, "fault": kind.fault(), "skip": random.below(SKIP_MAX) });
    let (answer, _) = operator::ask(stack, &request).map_err(|e| e.to_string())?;
    let pid =
        answer["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or("the stack named no process")?;
    let what = match kind.fault() {
        Some(_) => await_strike(stack, component, before, kind)?,
        None => inject::inject(pid, kind, &mut random).map_err(|e| format!("{component}: {e}"))?,
    };
    Ok(Injected { pid, what })
}

/// Messages of the component that were broken so far.
fn struck(stack: &str, component: &str) -> Result<u64, String> {
    let (all, _) = operator::ask(stack, &json!({ "op": "stat" })).map_err(|e| e.to_string())?;
    let of = all["components"].as_array().into_iter().flatten().find(|c| c["component"] == component);
    Ok(of.and_then(|c| c["counters"].get(counter::FAULTS_INJECTED)).and_then(Value::as_u64).unwrap_or(0))
}

fn await_strike(stack: &str, component: &str, before: u64, kind: Kind) -> Result<String, String> {
    let until = Instant::now() + PATIENCE;
    while struck(stack, component)? == before {
        if Instant::now() > until {
            let what = if matches!(kind.name(), "leak" | "double-free") {
                "gave no buffer back"
            } else {
                "sent no message"
            };
            return Err(format!(
                "{component} {what} for {} s: the fault waits for the next one",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(format!("{} of one message", kind.name()))
}

//! Injects a fault into a component of a stack, whose supervisor is informed.

use super::{KINDS, Kind, Strike, payload};
use crate::error::{Result, error};
use crate::operator;
use eft_base::Random;
use eft_component::server::counter;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The name by which the supervisor is broken.
pub const SUPERVISOR: &str = "supervisor";
/// The most messages that pass before one is broken.
const SKIP_MAX: u64 = 16;
/// How long the broken message is awaited.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was done, and to which process.
pub struct Injected {
    pub pid: u32,
    pub strike: Strike,
}

/// Informs the supervisor of the fault, and injects it.
pub fn in_stack(stack: &str, component: &str, kind: Kind, seed: u64) -> Result<Injected> {
    let mut random = Random::new(seed);
    if component == SUPERVISOR {
        return in_supervisor(stack, kind, &mut random);
    }
    let before = struck(stack, component)?;
    let request = json!({
        "op": "inject", "component": component, "fault": kind.fault(), "skip": random.below(SKIP_MAX), "counts": kind.counts(),
    });
    let (answer, _) = operator::ask(stack, &request)?;
    let pid = process(&answer)?;
    let strike = match kind.fault() {
        Some(_) => Strike::now(await_strike(stack, component, before, kind)?),
        None => {
            let struck = match kind {
                Kind::FlipPayload => payload::strike(stack, pid, &mut random),
                _ => super::inject(pid, kind, &mut random),
            };
            struck.map_err(|e| error!(Refused, "{component}: {e}"))?
        }
    };
    Ok(Injected { pid, strike })
}

fn in_supervisor(stack: &str, kind: Kind, random: &mut Random) -> Result<Injected> {
    if !kind.strikes_supervisor() {
        let possible: Vec<&str> =
            KINDS.iter().filter(|(_, kind, _)| kind.strikes_supervisor()).map(|(name, ..)| *name).collect();
        return Err(error!(
            Invalid,
            "the supervisor has nothing that `{}` could break; possible are: {}",
            kind.name(),
            possible.join(", ")
        ));
    }
    let (answer, _) = operator::ask(stack, &json!({ "op": "ps" }))?;
    let pid = process(&answer)?;
    let strike = super::inject(pid, kind, random).map_err(|e| error!(Refused, "{SUPERVISOR}: {e}"))?;
    Ok(Injected { pid, strike })
}

fn process(answer: &Value) -> Result<u32> {
    let pid = answer["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.ok_or_else(|| error!(Protocol, "the stack named no process"))
}

/// How many messages of the component were broken so far.
fn struck(stack: &str, component: &str) -> Result<u64> {
    let (all, _) = operator::ask(stack, &json!({ "op": "stat" }))?;
    let of = all["components"].as_array().into_iter().flatten().find(|c| c["component"] == component);
    Ok(of.and_then(|c| c["counters"].get(counter::FAULTS_INJECTED)).and_then(Value::as_u64).unwrap_or(0))
}

fn await_strike(stack: &str, component: &str, before: u64, kind: Kind) -> Result<String> {
    let until = Instant::now() + PATIENCE;
    while struck(stack, component)? == before {
        if Instant::now() > until {
            let what = if matches!(kind.name(), "leak" | "double-free") {
                "gave no buffer back"
            } else {
                "sent no message"
            };
            return Err(error!(
                Busy,
                "{component} {what} for {} s: the fault waits for the next one",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(format!("{} of one message", kind.name()))
}

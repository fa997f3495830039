//! `eft move`: where a component runs, and in which process.

use anyhow::{Result, anyhow, bail};
use eft_linux::operator;
use serde_json::json;

#[derive(clap::Args, Debug)]
pub struct MoveArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    component: String,
    /// `cpu=N`, or `any`; or `process=NAME`, with the components in the process of that name, or `alone`, in one of its own
    place: String,
    /// `dedicated`: alone on its CPU, so it may poll; `shared` (default): it sleeps at once
    #[arg(value_parser = ["dedicated", "shared"], default_value = "shared")]
    mode: String,
}

pub fn run(arguments: &MoveArguments) -> Result<()> {
    let process = match arguments.place.as_str() {
        "alone" => Some(None),
        place => place.strip_prefix("process=").map(Some),
    };
    if let Some(process) = process {
        return regroup(arguments, process);
    }
    let cpu = match arguments.place.strip_prefix("cpu=") {
        Some(n) => Some(n.parse::<u32>().map_err(|_| anyhow!("`{n}` is no CPU number"))?),
        None if arguments.place == "any" => None,
        None => bail!("`{}`: expected cpu=N, any, process=NAME or alone", arguments.place),
    };
    let dedicated = arguments.mode == "dedicated";
    if dedicated && cpu.is_none() {
        bail!("a dedicated component needs cpu=N");
    }
    let request =
        json!({ "op": "place", "component": arguments.component, "cpu": cpu, "dedicated": dedicated });
    Ok(operator::ask(&arguments.stack.name, &request).map(drop)?)
}

/// The components end and begin again in other processes; connections survive.
fn regroup(arguments: &MoveArguments, process: Option<&str>) -> Result<()> {
    let request = json!({ "op": "regroup", "component": arguments.component, "process": process });
    let answer = operator::ask(&arguments.stack.name, &request)?.0;
    let others: Vec<&str> =
        answer["with"].as_array().into_iter().flatten().filter_map(|v| v.as_str()).collect();
    let beside = if others.is_empty() { "alone".to_string() } else { format!("with {}", others.join(", ")) };
    let pause = answer["pause_ms"].as_f64().unwrap_or_default();
    println!("{} runs {beside} now; it was away for {pause:.1} ms", arguments.component);
    Ok(())
}

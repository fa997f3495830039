//! `eft move`: where a component runs.

use anyhow::{Result, anyhow, bail};
use eft_linux::operator;
use serde_json::json;

#[derive(clap::Args, Debug)]
pub struct MoveArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    component: String,
    /// `cpu=N`, or `any`
    place: String,
    /// `dedicated`: alone on its CPU, so it may poll; `shared` (default): it sleeps at once
    #[arg(value_parser = ["dedicated", "shared"], default_value = "shared")]
    mode: String,
}

pub fn run(arguments: &MoveArguments) -> Result<()> {
    let cpu = match arguments.place.strip_prefix("cpu=") {
        Some(n) => Some(n.parse::<u32>().map_err(|_| anyhow!("`{n}` is no CPU number"))?),
        None if arguments.place == "any" => None,
        None => bail!("`{}`: expected cpu=N or any", arguments.place),
    };
    let dedicated = arguments.mode == "dedicated";
    if dedicated && cpu.is_none() {
        bail!("a dedicated component needs cpu=N");
    }
    let request =
        json!({ "op": "place", "component": arguments.component, "cpu": cpu, "dedicated": dedicated });
    Ok(operator::ask(&arguments.stack.name, &request).map(drop)?)
}

//! `eft kill`: crashes a component on purpose (SIGKILL); the supervisor brings it back.

use anyhow::Result;
use eft_linux::operator;
use serde_json::json;

#[derive(clap::Args, Debug)]
pub struct KillArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    component: String,
}

pub fn run(arguments: &KillArguments) -> Result<()> {
    let request = json!({ "op": "kill", "component": arguments.component });
    let (answer, _) = operator::ask(&arguments.stack.name, &request)?;
    let others: Vec<&str> =
        answer["with"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    if !others.is_empty() {
        println!("killed with what shares its process: {}", others.join(", "));
    }
    Ok(())
}

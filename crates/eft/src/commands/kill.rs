//! `eft kill`: crashes a component on purpose (SIGKILL); the supervisor brings it back.

use eft_linux::operator;
use serde_json::json;

#[derive(clap::Args, Debug)]
pub struct KillArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    component: String,
}

pub fn run(arguments: &KillArguments) -> Result<(), String> {
    let request = json!({ "op": "kill", "component": arguments.component });
    let (answer, _) = operator::ask(&arguments.stack.name, &request).map_err(|e| e.to_string())?;
    let others: Vec<&str> =
        answer["with"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    if !others.is_empty() {
        println!("killed with what shares its process: {}", others.join(", "));
    }
    Ok(())
}

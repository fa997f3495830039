//! `eft ps`: the components of a stack and their state.

use anyhow::Result;
use eft_linux::operator;
use eft_linux::security::{HEADER, Security};
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub struct PsArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Show what each process may do instead: user, capabilities, system calls, namespaces
    #[arg(long)]
    security: bool,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &PsArguments) -> Result<()> {
    let (mut answer, _) =
        operator::ask(&arguments.stack.name, &json!({ "op": "ps", "security": arguments.security }))?;
    if arguments.security {
        add_security(&mut answer);
    }
    if arguments.json {
        println!("{answer}");
        return Ok(());
    }
    let cell = |v: &Value| match v {
        Value::Null => "-".to_string(),
        Value::String(s) => s.clone(),
        v => v.to_string(),
    };
    if arguments.security {
        print_security(&answer);
        return Ok(());
    }
    let rows: Vec<Vec<String>> = answer["components"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| {
            let place = match (&c["cpu"], c["dedicated"].as_bool()) {
                (Value::Null, _) => "any".to_string(),
                (cpu, Some(true)) if c["alone"] == true => format!("{cpu} dedicated"),
                (cpu, Some(true)) => format!("{cpu} shared (wants to be alone)"),
                (cpu, _) => cpu.to_string(),
            };
            let mut row: Vec<String> = ["component", "pid", "state", "mode", "generation", "deaths"]
                .iter()
                .map(|k| cell(&c[*k]))
                .collect();
            row.push(place);
            row.push(cell(&c["cpu_ms"]));
            row
        })
        .collect();
    let header = ["COMPONENT", "PID", "STATE", "WAITS", "GENERATION", "DEATHS", "CPU", "CPU-MS"];
    super::print_table(&header, &rows);
    Ok(())
}

/// Asks the kernel about each component's process. Where it does not tell us, as in a rootless stack, the supervisor's
/// answer stays.
fn add_security(answer: &mut Value) {
    for c in answer["components"].as_array_mut().into_iter().flatten() {
        if let Some(security) = c["pid"].as_u64().and_then(Security::of) {
            c["security"] = json!(security);
        }
    }
}

fn print_security(answer: &Value) {
    let row = |c: &Value| {
        let held: Option<Security> = serde_json::from_value(c["security"].clone()).ok();
        let mut of = held.map_or_else(|| vec!["?".to_string(); HEADER.len()], |held| held.row());
        of.push(if c["landlock"] == true { "landlock" } else { "none" }.into());
        let name = c["component"].as_str().unwrap_or_default().to_string();
        [vec![name, c["pid"].to_string()], of].concat()
    };
    let rows: Vec<Vec<String>> = answer["components"].as_array().into_iter().flatten().map(row).collect();
    super::print_table(&[&["COMPONENT", "PID"], &HEADER[..], &["DOMAIN"]].concat(), &rows);
}

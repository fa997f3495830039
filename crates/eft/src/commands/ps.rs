//! `eft ps`: the components of a stack and how they are.

use eft_linux::operator;
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub struct PsArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &PsArguments) -> Result<(), String> {
    let (answer, _) =
        operator::ask(&arguments.stack.name, &json!({ "op": "ps" })).map_err(|e| e.to_string())?;
    if arguments.json {
        println!("{answer}");
        return Ok(());
    }
    let cell = |v: &Value| match v {
        Value::Null => "-".to_string(),
        Value::String(s) => s.clone(),
        v => v.to_string(),
    };
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

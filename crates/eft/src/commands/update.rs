//! `eft update`: replaces servers by those of another program file while connections go on.

use anyhow::{Context, Result, bail};
use eft_linux::operator;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["component", "all"])))]
pub struct UpdateArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it
    component: Option<String>,
    /// All components in turn, in the order in which data reach them; ends at the first failure
    #[arg(long)]
    all: bool,
    /// The program file to run it from (default: this one)
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &UpdateArguments) -> Result<()> {
    let stack = &arguments.stack.name;
    let path = arguments.binary.clone().unwrap_or_else(|| "/proc/self/exe".into());
    let mut file = File::open(&path).with_context(|| path.display().to_string())?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        bail!("{}: not a program file", path.display());
    }
    let file = OwnedFd::from(file);
    let components = match &arguments.component {
        Some(component) => vec![component.clone()],
        None => in_order(&components(stack)?),
    };
    for component in components {
        let request = json!({ "op": "update", "component": component });
        let (answer, _) = operator::ask_with(stack, &request, &[&file])?;
        let pause = answer["pause_ms"].as_f64().unwrap_or_default();
        println!("{component}: generation {}, replaced within {pause:.1} ms", answer["generation"]);
    }
    Ok(())
}

fn components(stack: &str) -> Result<Vec<String>> {
    let (answer, _) = operator::ask(stack, &json!({ "op": "ps" }))?;
    let names = answer["components"].as_array().into_iter().flatten().map(|c| &c["component"]);
    Ok(names.filter_map(Value::as_str).map(String::from).collect())
}

/// As data arrive, and then those that no data pass.
fn in_order(components: &[String]) -> Vec<String> {
    const ORDER: &[&str] = &["nic", "ip", "filter", "udp", "tcp", "sockets"];
    let place = |name: &String| {
        let role = name.split(':').next().unwrap_or_default();
        ORDER.iter().position(|r| *r == role.trim_end_matches(|c: char| c.is_ascii_digit()))
    };
    let mut sorted = components.to_vec();
    sorted.sort_by_key(|name| place(name).unwrap_or(ORDER.len()));
    sorted
}

#[cfg(test)]
mod tests;

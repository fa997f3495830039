//! `eft inject`: breaks a component in a chosen way, for tests of what the others make of it.

use anyhow::Result;
use eft_linux::inject::{self, KINDS, Kind};
use serde_json::json;

#[derive(clap::Args, Debug)]
pub struct InjectArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The component, as `eft ps` names it, or `supervisor`
    #[arg(required_unless_present = "list")]
    component: Option<String>,
    /// The kind of fault; `--list` shows all
    #[arg(required_unless_present = "list")]
    kind: Option<String>,
    /// Seed of everything random
    #[arg(long)]
    seed: Option<u64>,
    /// List the kinds of faults
    #[arg(long)]
    list: bool,
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &InjectArguments) -> Result<()> {
    if arguments.list {
        let rows: Vec<_> =
            KINDS.iter().map(|(name, _, what)| vec![name.to_string(), what.to_string()]).collect();
        super::print_table(&["KIND", "WHAT BREAKS"], &rows);
        return Ok(());
    }
    let (Some(component), Some(kind)) = (&arguments.component, &arguments.kind) else { return Ok(()) };
    let seed = arguments.seed.unwrap_or_else(|| eft_host::clock::now().as_nanos());
    let injected = inject::in_stack(&arguments.stack.name, component, Kind::parse(kind)?, seed)?;
    match arguments.json {
        true => println!(
            "{}",
            json!({ "component": component, "kind": kind, "pid": injected.pid, "seed": seed, "what": injected.strike.what })
        ),
        false => println!("{component} (process {}): {} (seed {seed})", injected.pid, injected.strike.what),
    }
    Ok(())
}

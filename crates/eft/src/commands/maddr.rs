//! `eft maddr`: the groups that sockets of a stack are members of, read from udp's arena without disturbing it.

use anyhow::Result;
use eft_linux::{memory, operator};
use eft_messages::Role;
use eft_transport::udp::inspect::{Membership, memberships};
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub struct MaddrArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &MaddrArguments) -> Result<()> {
    let (network, _) = operator::ask(&arguments.stack.name, &json!({ "op": "network" }))?;
    let (answer, fds) = operator::ask(&arguments.stack.name, &json!({ "op": "arenas" }))?;
    let mut all = Vec::new();
    for (name, fd) in answer["arenas"].as_array().into_iter().flatten().zip(&fds) {
        if name.as_str().and_then(super::role_of) == Some(Role::Udp) {
            all.extend(memberships(&memory::map(fd, false)?).unwrap_or_default());
        }
    }
    all.sort_by_key(|m| (m.interface, m.group, m.domain.0, m.slot));
    let device = |m: &Membership| network["interfaces"][usize::from(m.interface)]["interface"].clone();
    let mode = |m: &Membership| if m.exclude { "exclude" } else { "include" };
    if arguments.json {
        let value = |m: &Membership| {
            json!({ "interface": device(m), "group": m.group, "mode": mode(m), "sources": m.sources,
                "local": m.local.to_string(), "domain": m.domain.0, "slot": m.slot })
        };
        let all: Vec<Value> = all.iter().map(value).collect();
        println!("{}", json!({ "stack": arguments.stack.name, "memberships": all }));
        return Ok(());
    }
    let row = |m: &Membership| {
        let sources: Vec<String> = m.sources.iter().map(ToString::to_string).collect();
        let sources = if sources.is_empty() { "-".into() } else { sources.join(" ") };
        let device = device(m).as_str().map_or_else(|| m.interface.to_string(), String::from);
        vec![
            device,
            m.group.to_string(),
            mode(m).into(),
            sources,
            m.local.to_string(),
            m.domain.0.to_string(),
        ]
    };
    let columns = ["DEVICE", "GROUP", "MODE", "SOURCES", "LOCAL", "DOMAIN"];
    super::print_table(&columns, &all.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

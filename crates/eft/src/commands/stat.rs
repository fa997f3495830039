//! `eft stat`: counters and traffic indicators of every component.

use anyhow::{Result, bail};
use eft_bench::counters::counters;
use eft_component::Component;
use eft_messages::{ComponentId, Role};
use eft_text::print_table;
use serde_json::Value;

#[derive(clap::Args, Debug)]
pub struct StatArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
    /// Show counters that are zero too
    #[arg(long)]
    all: bool,
    /// Only this component
    component: Option<String>,
}

/// The names of a component's own counters.
pub fn counters_of(peer: ComponentId) -> &'static [&'static str] {
    match peer.role {
        Role::Sockets => eft_sockets::Sockets::COUNTERS,
        Role::Tcp => eft_transport::tcp::Tcp::COUNTERS,
        Role::Udp => eft_transport::udp::Udp::COUNTERS,
        Role::Ip => eft_ip::Ip::COUNTERS,
        Role::Filter => eft_filter::Filter::COUNTERS,
        Role::Nic => <eft_nic::Nic<eft_linux::devices::LiveDevice>>::COUNTERS,
        Role::Cores => eft_cores::engine::Cores::COUNTERS,
    }
}

pub fn run(arguments: &StatArguments) -> Result<()> {
    let mut all = counters(&arguments.stack.name, counters_of)?;
    if let Some(wanted) = &arguments.component {
        let known: Vec<String> = all.keys().cloned().collect();
        all.retain(|name, _| name == wanted);
        if all.is_empty() {
            bail!("there is no component `{wanted}`; there are: {}", known.join(", "));
        }
    }
    if arguments.json {
        println!("{}", Value::Object(all));
        return Ok(());
    }
    let mut rows = Vec::new();
    for (component, values) in &all {
        for (name, value) in values.as_object().into_iter().flatten() {
            if arguments.all || value.as_u64() != Some(0) {
                rows.push(vec![component.clone(), name.clone(), value.to_string()]);
            }
        }
    }
    print_table(&["COMPONENT", "COUNTER", "VALUE"], &rows);
    Ok(())
}

#[cfg(test)]
mod tests;

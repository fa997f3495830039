//! `eft stat`: counters and traffic indicators of every component.

use eft_component::Component;
use eft_component::server::FRAME_COUNTERS;
use eft_linux::operator;
use eft_messages::{ComponentId, Role};
use serde_json::{Map, Value, json};

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
fn engine_counters(component: &str) -> &'static [&'static str] {
    // A NIC is listed under the name of its device.
    counters_of(component.parse().unwrap_or(ComponentId::nic(0)))
}

/// The same by role.
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

/// All counters of a stack: component → name → value.
pub fn counters(stack: &str) -> Result<Map<String, Value>, String> {
    let (answer, _) = operator::ask(stack, &json!({ "op": "stat" })).map_err(|e| e.to_string())?;
    let mut all = Map::new();
    for c in answer["components"].as_array().into_iter().flatten() {
        let name = c["component"].as_str().unwrap_or_default();
        let values = c["counters"].as_array().cloned().unwrap_or_default();
        let names = FRAME_COUNTERS.iter().chain(engine_counters(name));
        let named: Map<String, Value> = names
            .enumerate()
            .map(|(i, n)| (n.to_string(), values.get(i).cloned().unwrap_or(json!(0))))
            .collect();
        all.insert(name.to_string(), Value::Object(named));
    }
    Ok(all)
}

pub fn run(arguments: &StatArguments) -> Result<(), String> {
    let mut all = counters(&arguments.stack.name)?;
    if let Some(wanted) = &arguments.component {
        let known: Vec<String> = all.keys().cloned().collect();
        all.retain(|name, _| name == wanted);
        if all.is_empty() {
            return Err(format!("there is no component `{wanted}`; there are: {}", known.join(", ")));
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
    super::print_table(&["COMPONENT", "COUNTER", "VALUE"], &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_scheduler_finds_all_its_indicators() {
        assert_eq!(eft_linux::stack_sensor::missing_counters(super::counters_of), []);
    }
}

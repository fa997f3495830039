//! The counters of a running stack, by name.

use anyhow::Result;
use eft_component::server::FRAME_COUNTERS;
use eft_linux::operator;
use eft_linux::stack_sensor::CounterNames;
use eft_messages::ComponentId;
use serde_json::{Map, Value, json};

/// All counters of a stack: component → name → value.
pub fn counters(stack: &str, names: CounterNames) -> Result<Map<String, Value>> {
    let (answer, _) = operator::ask(stack, &json!({ "op": "stat" }))?;
    let mut all = Map::new();
    for c in answer["components"].as_array().into_iter().flatten() {
        let name = c["component"].as_str().unwrap_or_default();
        let values = c["counters"].as_array().cloned().unwrap_or_default();
        // A NIC is listed under the name of its device.
        let own = names(name.parse().unwrap_or(ComponentId::nic(0)));
        let named: Map<String, Value> = FRAME_COUNTERS
            .iter()
            .chain(own)
            .enumerate()
            .map(|(i, n)| (n.to_string(), values.get(i).cloned().unwrap_or(json!(0))))
            .collect();
        all.insert(name.to_string(), Value::Object(named));
    }
    Ok(all)
}

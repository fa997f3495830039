//! Components as `eft ps` shows them.

use serde_json::Value;

/// One of those that a fault can strike.
pub struct Component {
    pub name: String,
    pub generation: u64,
    pub runs: bool,
}

impl Component {
    pub fn read(c: &Value) -> Component {
        Component {
            name: c["component"].as_str().unwrap_or_default().into(),
            generation: c["generation"].as_u64().unwrap_or(0),
            runs: c["state"] == "running",
        }
    }

    /// Its name without that of a device.
    pub fn short(&self) -> String {
        self.name.split(':').next().unwrap_or_default().to_string()
    }
}

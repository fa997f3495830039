//! The last decisions, with the readings that caused them: what `eft sched why` prints.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// Decisions that are kept.
const KEPT: usize = 64;
const UNDER_WAY: &str = "under way";

#[derive(Default)]
pub struct History {
    entries: VecDeque<Value>,
    taken: u64,
}

impl History {
    /// Notes why the plan stays.
    pub fn note_only(&mut self, at_ns: u64, policy: &str, reason: &str, readings: Value) {
        self.note(at_ns, policy, reason, Value::Null, readings);
        self.outcome("the plan stays");
    }

    /// Notes what was decided; `outcome` says what became of it.
    pub fn note(&mut self, at_ns: u64, policy: &str, reason: &str, plan: Value, readings: Value) {
        self.taken += 1;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(json!({
            "number": self.taken, "at_ns": at_ns, "policy": policy, "reason": reason, "plan": plan,
            "readings": readings, "outcome": UNDER_WAY,
        }));
    }

    /// What became of the last decision that is not done with.
    pub fn outcome(&mut self, text: &str) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|e| e["outcome"] == UNDER_WAY) {
            entry["outcome"] = text.into();
        }
    }

    /// The latest last, with their age.
    pub fn show(&self, now_ns: u64) -> Value {
        let aged = |entry: &Value| {
            let mut entry = entry.clone();
            let at = entry["at_ns"].as_u64().unwrap_or(now_ns);
            entry["age_s"] = json!(now_ns.saturating_sub(at) as f64 / 1e9);
            entry
        };
        self.entries.iter().map(aged).collect()
    }

    pub fn last(&self) -> Option<&Value> {
        self.entries.back()
    }

    pub fn taken(&self) -> u64 {
        self.taken
    }
}

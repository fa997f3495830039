//! The component's state and history as JSON, for operators.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_base::time::nanos;
use serde_json::{Value, json};

use super::Cores;
use crate::history::{History, Kept};

/// Most decisions in an answer, which has to fit into one message.
const SHOWN: usize = 64;

impl Cores {
    pub(super) fn describe(&self) -> Value {
        let places: Vec<Value> = self
            .members
            .iter()
            .map(|m| {
                json!({ "component": m.name, "cpu": m.cpu, "dedicated": m.dedicated, "alone": m.alone,
                        "running": m.running })
            })
            .collect();
        let spent = &self.spent;
        let us = |all: Duration| {
            if spent.samples > 0 { all.as_secs_f64() * 1e6 / spent.samples as f64 } else { 0.0 }
        };
        json!({
            "scheduling": self.settings,
            "places": places,
            "speeds": self.applied.speeds,
            "parked": self.applied.parked,
            "decisions": self.history.taken(),
            "last": self.history.entries().next_back().map(decision),
            "trouble": self.trouble,
            "quick_samples": spent.quick_samples,
            "samples": spent.samples,
            "sample_us": us(spent.sample),
            "decide_us": us(spent.decide),
            "state": self.scheduler().map(|scheduler| json!({
                "plan": scheduler.plan().to_string(),
                "changes": self.history.changes(),
                "indicators": scheduler.observation().indicators,
                "power": scheduler.power(),
            })),
        })
    }
}

/// The newest decisions with their ages, the newest last.
pub fn decisions(history: &History, now: Instant) -> Vec<Value> {
    let first = history.entries().len().saturating_sub(SHOWN);
    let aged = |kept: &Kept| {
        let mut shown = decision(kept);
        shown["age_s"] = json!(nanos(now.saturating_since(kept.entry.at)) as f64 / 1e9);
        shown
    };
    history.entries().skip(first).map(aged).collect()
}

fn decision(kept: &Kept) -> Value {
    let entry = &kept.entry;
    let readings = entry.readings.as_ref();
    json!({
        "number": kept.number,
        "at_ns": entry.at,
        "policy": entry.policy,
        "reason": entry.reason,
        "plan": entry.plan,
        "readings": readings.map(|r| json!({ "summary": r.to_string(), "values": r })),
        "outcome": kept.outcome.to_string(),
    })
}

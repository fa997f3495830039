//! What operators ask of the scheduler: `eft sched`, `eft sched policy`, `eft sched why`, a sample.

use eft_component::scheduling::Scheduling;
use serde_json::{Value, json};

use super::Cores;
use eft_host::clock;

impl Cores {
    /// Answers one question; `error` says what was wrong with it.
    pub(super) fn asked(&mut self, question: &[u8]) -> Value {
        let Ok(question) = serde_json::from_slice::<Value>(question) else {
            return json!({ "error": "this is no question" });
        };
        match question["what"].as_str() {
            Some("status") => self.describe(),
            Some("why") => json!({ "decisions": self.history.show(clock::now().0) }),
            Some("sample") => {
                self.last = self.sensor.sample(clock::now());
                serde_json::to_value(&self.last).unwrap_or_default()
            }
            Some("policy") => match self.change(&question) {
                Ok(answer) => answer,
                Err(reason) => json!({ "error": reason }),
            },
            _ => json!({ "error": "the scheduler knows the questions status, why, sample and policy" }),
        }
    }

    fn describe(&self) -> Value {
        let places: Vec<Value> = self
            .members
            .iter()
            .map(|m| {
                json!({ "component": m.name, "cpu": m.cpu, "dedicated": m.dedicated, "alone": m.alone,
                        "running": m.running })
            })
            .collect();
        let us = |ns: u64| if self.looks > 0 { ns as f64 / self.looks as f64 / 1e3 } else { 0.0 };
        json!({
            "scheduling": self.settings,
            "places": places,
            "speeds": self.applied.speeds,
            "parked": self.applied.parked,
            "decisions": self.history.taken(),
            "last": self.history.last(),
            "trouble": self.trouble,
            "glances": self.glances,
            "looks": self.looks,
            "look_us": us(self.look_ns),
            "decide_us": us(self.decide_ns),
            "state": self.decider.describe(),
        })
    }

    /// Changes policy, objective or floor; what is not named stays.
    fn change(&mut self, question: &Value) -> Result<Value, String> {
        let mut wanted = serde_json::to_value(&self.settings).map_err(|e| e.to_string())?;
        for key in ["policy", "objective", "floor", "profiles"] {
            if !question[key].is_null() {
                wanted[key] = question[key].clone();
            }
        }
        let settings: Scheduling = serde_json::from_value(wanted).map_err(|e| e.to_string())?;
        settings.check()?;
        // What it learnt may be what its successor reads.
        self.decider.end();
        let ground = super::Ground {
            settings: &settings,
            members: &self.members,
            topology: &self.topology,
            managed: &self.managed,
            applied: &self.applied,
            chosen: true,
        };
        let decider = super::choose::decider(&ground)?;
        self.settings = settings;
        self.decider = decider;
        self.trouble = None;
        self.look();
        Ok(json!({ "scheduling": self.settings, "managed": self.settings.managed }))
    }
}

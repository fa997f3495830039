//! What operators ask of the scheduler: `eft sched`, `eft sched policy`, `eft sched why`, a sample.

use alloc::string::{String, ToString};

use eft_base::Instant;
use eft_component::Outbox;
use serde_json::{Value, json};

use super::choosing::Choice;
use super::{Cores, Effect, Purpose, describe};

impl Cores {
    /// Answers one question, now or when the answer is known; its `error` says what was wrong with the question.
    pub(super) fn asked(&mut self, key: String, question: &[u8], now: Instant, out: &mut Outbox<Effect>) {
        let Ok(question) = serde_json::from_slice::<Value>(question) else {
            return self.answer_error(key, "this is no question", out);
        };
        match question["what"].as_str() {
            Some("status") => self.answer(key, &self.describe(), out),
            Some("why") => {
                self.answer(key, &json!({ "decisions": describe::decisions(&self.history, now) }), out)
            }
            Some("sample") => out.push(Effect::Sample(Purpose::Show { key })),
            Some("policy") => self.choose(Choice::Asked { key, question }, now, out),
            _ => {
                let known = "the scheduler knows the questions status, why, sample and policy";
                self.answer_error(key, known, out)
            }
        }
    }

    /// Tells the operator who chose a policy that it has taken over.
    pub(super) fn chosen(&self, key: Option<String>, out: &mut Outbox<Effect>) {
        if let Some(key) = key {
            let answer = json!({ "scheduling": self.settings, "managed": self.settings.managed });
            self.answer(key, &answer, out);
        }
    }

    fn answer(&self, key: String, answer: &Value, out: &mut Outbox<Effect>) {
        out.push(Effect::Answer { key, value: answer.to_string().into_bytes() });
    }

    pub(super) fn answer_error(&self, key: String, why: &str, out: &mut Outbox<Effect>) {
        self.answer(key, &json!({ "error": why }), out);
    }
}

//! New rules: all or nothing.

use super::{Filter, KEY_RULES};
use crate::counters::Counter;
use crate::edge::ToIp;
use crate::lexer::{Place, SyntaxError};
use crate::parser::parse;
use crate::rule::Ruleset;
use alloc::string::{String, ToString};
use eft_arena::docket::Note;
use eft_component::{Context, Outbox};

impl Filter {
    /// Takes new rules. Connections that the old ones admitted continue.
    pub(crate) fn load(
        &mut self,
        cx: &mut Context,
        text: &[u8],
        out: &mut Outbox<ToIp>,
    ) -> Result<(), String> {
        if !self.docket.enter(Note::setting(KEY_RULES, text)) {
            return self.refuse_fatal_rules(cx, out);
        }
        match read(text) {
            Ok(rules) => {
                cx.count(Counter::RulesLoaded);
                self.last_error = None;
                self.put_in_force(cx, rules, out);
                Ok(())
            }
            Err(e) => self.refuse_rules(cx, e.to_string()),
        }
    }

    pub(super) fn refuse_rules(&mut self, cx: &Context, why: String) -> Result<(), String> {
        cx.count(Counter::RulesRefused);
        self.last_error = Some(why.clone());
        Err(why)
    }

    pub(super) fn put_in_force(&mut self, cx: &mut Context, rules: Ruleset, out: &mut Outbox<ToIp>) {
        cx.gauge(Counter::Rules, rules.rules.len() as u64);
        self.rules = Some(rules);
        self.recall_by_rules(out);
        for (request, packet) in core::mem::take(&mut self.held) {
            self.answer(cx, request, &packet, out);
            self.docket.clear();
        }
        self.say_whether_all_passes(out);
    }
}

fn read(text: &[u8]) -> Result<Ruleset, SyntaxError> {
    core::str::from_utf8(text).map_err(|e| not_utf8(text, e.valid_up_to())).and_then(parse)
}

fn not_utf8(text: &[u8], at: usize) -> SyntaxError {
    let before = &text[..at];
    let line = before.iter().filter(|b| **b == b'\n').count() as u32 + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() as u32 + 1;
    SyntaxError::new(Place { line, column }, "expected UTF-8 text")
}

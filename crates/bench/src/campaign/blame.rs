//! Whether a successor blames the input that ran when its predecessor failed, and is recorded.

use std::path::PathBuf;

use anyhow::{Context, Result};
use eft_arena::docket;
use eft_component::Component;
use eft_filter::Filter;
use eft_ip::Ip;
use eft_linux::inject::{Kind, Strike};
use eft_linux::operator;
use eft_messages::{ComponentId, Role};
use eft_transport::tcp::Tcp;
use eft_transport::udp::Udp;
use serde_json::{Value, json};

use crate::counters::counters;

/// How often a server has blamed an input.
const BLAMED: &str = "blamed_inputs";

/// What became of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// An input ran when the server broke. None does between two of them.
    pub ran: bool,
    /// The successor blames an input.
    pub named: bool,
    /// The successor is recorded; `None`: servers like it never are.
    pub recorded: Option<bool>,
}

impl Blame {
    /// An input that ran was not blamed, or one that did not run was.
    pub fn is_wrong(&self) -> bool {
        self.ran != self.named
    }

    pub fn to_json(self) -> Value {
        json!({ "input_ran": self.ran, "input_blamed": self.named, "successor_recorded": self.recorded })
    }
}

/// Looks at a failure from before it until a successor works.
pub struct Watch {
    stack: String,
    component: String,
    ran: bool,
    /// How often an input was blamed before; `None`: this is no failure.
    before: Option<u64>,
}

impl Watch {
    pub fn begin(stack: &str, component: &str, kind: Kind) -> Result<Watch> {
        let before = if kind.counts() { Some(blamed(stack, component)?) } else { None };
        Ok(Watch { stack: stack.into(), component: component.into(), ran: false, before })
    }

    pub fn struck(&mut self, strike: &Strike) {
        self.ran = strike.durable.as_deref().is_some_and(docket::has_running);
    }

    /// `generation`: the successor's.
    pub fn end(self, generation: u64) -> Result<Option<Blame>> {
        let Some(before) = self.before else { return Ok(None) };
        let named = blamed(&self.stack, &self.component)? > before;
        let recording = recording(&self.stack, &self.component, generation);
        Ok(Some(Blame { ran: self.ran, named, recorded: recording.map(|path| path.exists()) }))
    }
}

fn recording(stack: &str, component: &str, generation: u64) -> Option<PathBuf> {
    let file = format!("crashes/{component}-{generation}.eftrec");
    let role = component.parse::<ComponentId>().ok()?.role;
    let is_recorded = matches!(role, Role::Ip | Role::Filter | Role::Tcp | Role::Udp);
    is_recorded.then(|| operator::stack_dir(stack).join(file))
}

/// How often a component has blamed an input.
fn blamed(stack: &str, component: &str) -> Result<u64> {
    counted(stack, component, BLAMED).context("the blamed inputs")
}

/// What a component has counted so far, its dead predecessors with it.
pub fn counted(stack: &str, component: &str, name: &str) -> Result<u64> {
    let all = counters(stack, names)?;
    Ok(all.get(component).and_then(|c| c.get(name)).and_then(Value::as_u64).unwrap_or(0))
}

/// What all components have counted so far.
pub fn counted_by_all(stack: &str, name: &str) -> Result<u64> {
    let all = counters(stack, names)?;
    Ok(all.values().filter_map(|c| c.get(name)).filter_map(Value::as_u64).sum())
}

/// The counters of a server that names the inputs that run.
fn names(peer: ComponentId) -> &'static [&'static str] {
    match peer.role {
        Role::Tcp => Tcp::COUNTERS,
        Role::Udp => Udp::COUNTERS,
        Role::Filter => Filter::COUNTERS,
        Role::Ip => Ip::COUNTERS,
        _ => &[],
    }
}

#[cfg(test)]
mod tests;

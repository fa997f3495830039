//! The outcome of one fault.

use super::blame::Blame;
use super::checksums::Checksums;
use eft_linux::inject::Kind;
use serde_json::{Value, json};

/// From best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Transparent,
    /// Connections ended.
    Lost,
    /// Nothing went on until a component was replaced by hand.
    RestartNeeded,
    /// A program got bytes that were never sent.
    Damaged,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Transparent => "transparent",
            Outcome::Lost => "connections lost",
            Outcome::RestartNeeded => "restart needed",
            Outcome::Damaged => "data damaged",
        }
    }
}

/// One fault.
#[derive(Clone)]
pub struct Trial {
    pub component: String,
    pub kind: Kind,
    pub checksums: Checksums,
    pub seed: u64,
    pub what: String,
    /// Something was broken; what it broke may never have been used.
    pub struck: bool,
    /// The component died of it.
    pub died: bool,
    pub others_died: u64,
    /// Connections that were open, and that ended, by the load's parts.
    pub established: u64,
    pub lost: Vec<u64>,
    pub lost_parts: Vec<String>,
    pub damaged: u64,
    /// Parts of the load that stood still, and components that were replaced to help them.
    pub stuck: Vec<String>,
    pub helped: u64,
    /// Not even replacing all of them helped: only a new stack does.
    pub is_hopeless: bool,
    /// Of bulk data, in milliseconds.
    pub pause: f64,
    /// Segments that reached tcp with a hole before them: a frame that the device had delivered was lost or overtaken.
    pub holes: u64,
    /// Answers to requests, and late ones.
    pub answers: (u64, u64),
    pub window: Vec<(f64, f64)>,
    /// Of a death that counts as a failure.
    pub blame: Option<Blame>,
    /// Packets whose checksum was found wrong.
    pub found_wrong: u64,
    pub outcome: Outcome,
}

impl Trial {
    pub fn new(component: &str, kind: Kind, seed: u64, established: u64) -> Trial {
        Trial {
            component: component.into(),
            kind,
            checksums: Checksums::Device,
            seed,
            what: String::new(),
            struck: true,
            died: false,
            others_died: 0,
            established,
            lost: Vec::new(),
            lost_parts: Vec::new(),
            damaged: 0,
            stuck: Vec::new(),
            helped: 0,
            is_hopeless: false,
            pause: 0.0,
            holes: 0,
            answers: (0, 0),
            window: Vec::new(),
            blame: None,
            found_wrong: 0,
            outcome: Outcome::Transparent,
        }
    }

    pub fn judge(&mut self) {
        self.outcome = match self {
            _ if self.damaged > 0 => Outcome::Damaged,
            _ if self.helped > 0 => Outcome::RestartNeeded,
            _ if self.lost_total() > 0 => Outcome::Lost,
            _ => Outcome::Transparent,
        };
    }

    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// It damaged payload. A program that is sent other bytes than were written may end its connection, or wait for ever for what a
    /// damaged length promises: that is counted with the damage, and is not the stack's doing.
    pub fn damages_payload(&self) -> bool {
        self.hits_payload() && self.damaged > 0
    }

    /// The connections that the stack lost.
    pub fn lost_by_the_stack(&self) -> u64 {
        if self.damages_payload() { 0 } else { self.lost_total() }
    }

    /// Whether the stack went on only after components were replaced by hand.
    pub fn needed_restart(&self) -> bool {
        self.helped > 0 && !self.damages_payload()
    }

    /// A fault with a visible effect: a component died, a message or call was certainly broken, or a packet's checksum was
    /// found wrong.
    pub fn is_effective(&self) -> bool {
        let certain = self.kind.fault().is_some() || self.kind == Kind::Enomem;
        let seen = self.died || self.found_wrong > 0 || self.outcome != Outcome::Transparent;
        self.struck && (certain || seen)
    }

    /// Its name without that of the device.
    pub fn role(&self) -> &str {
        self.component.split(':').next().unwrap_or_default()
    }

    /// It strikes what programs sent, wherever that lies.
    pub fn hits_payload(&self) -> bool {
        self.kind == Kind::FlipPayload
    }

    /// It strikes the component's own state, which it may then believe.
    pub fn hits_own_state(&self) -> bool {
        let flips = [Kind::FlipCode, Kind::FlipStack, Kind::FlipHeap, Kind::FlipArena, Kind::FlipChannel];
        flips.contains(&self.kind) || self.kind.name() == "flip-message"
    }

    fn until(&self) -> String {
        match self.is_hopeless {
            true => "although all components were replaced".into(),
            false => format!("until {} were replaced", self.helped),
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "component": self.component, "kind": self.kind.name(),
            "software_checksums": self.checksums == Checksums::Software, "seed": self.seed, "what": self.what,
            "struck": self.struck, "died": self.died, "others_died": self.others_died, "lost": self.lost_parts,
            "damaged_bytes": self.damaged, "checksums_found_wrong": self.found_wrong, "stuck": self.stuck, "replaced_by_hand": self.helped, "hopeless": self.is_hopeless,
            "pause_ms": self.pause, "holes": self.holes, "answers": self.answers.0, "late_answers": self.answers.1,
            "failure": self.blame.map(Blame::to_json), "outcome": self.outcome.name(),
        })
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} (seed {}: {}): {}",
            self.component,
            self.kind.name(),
            self.seed,
            self.what,
            self.outcome.name()
        )?;
        if !self.lost_parts.is_empty() {
            write!(f, "; lost {}", self.lost_parts.join(", "))?;
        }
        if !self.stuck.is_empty() {
            write!(f, "; {} stood still {}", self.stuck.join(", "), self.until())?;
        }
        match (self.damaged, self.others_died) {
            (0, 0) => Ok(()),
            (damaged, others) => write!(f, "; {damaged} bytes damaged, {others} others died"),
        }
    }
}

#[cfg(test)]
mod tests;

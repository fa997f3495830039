//! A parameter of a model: its value, source and range.

use eft_base::random::Random;
use serde::Deserialize;
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    Measured,
    Datasheet,
    Fitted,
    Assumed,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub value: u64,
    pub low: Option<u64>,
    pub high: Option<u64>,
    pub tag: Tag,
    pub source: String,
}

/// Why a parameter is invalid; the text follows its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadParameter {
    #[error("has no source or no range")]
    Unfounded,
    #[error("lies outside of its range")]
    OutOfRange,
}

impl Parameter {
    /// Without source or, where it was neither measured nor printed, range it is an error.
    pub fn check(&self) -> Result<(), BadParameter> {
        let ranged = matches!(self.tag, Tag::Fitted | Tag::Assumed);
        let range = (self.low.unwrap_or(self.value), self.high.unwrap_or(self.value));
        if self.source.is_empty() || ranged && (self.low.is_none() || self.high.is_none()) {
            return Err(BadParameter::Unfounded);
        }
        if !(range.0..=range.1).contains(&self.value) {
            return Err(BadParameter::OutOfRange);
        }
        Ok(())
    }

    /// Draws another value within the range, if there is one.
    pub fn draw(&mut self, random: &mut Random) {
        if let (Some(low), Some(high)) = (self.low, self.high) {
            self.value = low + random.below(high - low + 1);
        }
    }
}

#[cfg(test)]
mod tests;

//! Claims, and whether named figures reproduce them.
//!
//! This is the judge of all papers: it knows figures by their names only, and shares no code with what made them.

use std::collections::BTreeMap;

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

/// When a claim holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Within 15% of the paper's figure.
    Near(f64),
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub id: &'static str,
    pub says: &'static str,
    /// What may have been fitted to; all else is held out.
    pub fitted: bool,
    pub rule: Rule,
    pub ours: fn(&Figures) -> Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reproduced,
    Fragile,
    Missed,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Fragile => "fragile",
            Self::Missed => "missed",
        }
    }
}

impl Rule {
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Near(paper) => (value - paper).abs() <= 0.15 * paper.abs(),
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Between(low, high) => (low..=high).contains(&value),
        }
    }

    /// A number, in contrast to an order or a bound.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Near(_))
    }

    pub fn paper(self) -> String {
        match self {
            Self::Near(paper) => format!("{paper}"),
            Self::AtLeast(bound) => format!(">= {bound}"),
            Self::AtMost(bound) => format!("<= {bound}"),
            Self::Between(low, high) => format!("{low}..{high}"),
        }
    }

    /// A number's deviation in percent; for a bound, how far the value is beyond it.
    pub fn deviation(self, value: f64) -> f64 {
        let to = |bound: f64| if bound == 0.0 { value * 100.0 } else { (value / bound - 1.0) * 100.0 };
        match self {
            Self::Near(paper) => to(paper),
            _ if self.holds(value) => 0.0,
            Self::AtLeast(bound) | Self::AtMost(bound) => to(bound),
            Self::Between(low, high) => to(if value < low { low } else { high }),
        }
    }
}

impl Claim {
    pub fn holds(&self, figures: &Figures) -> bool {
        (self.ours)(figures).is_some_and(|value| self.rule.holds(value))
    }

    /// Reproduced if it holds as it stands and in nine of ten draws.
    pub fn verdict(&self, nominal: &Figures, draws: &[Figures]) -> (Verdict, f64) {
        let held = draws.iter().filter(|figures| self.holds(figures)).count() as f64;
        let share = if draws.is_empty() { 1.0 } else { held / draws.len() as f64 };
        match (self.holds(nominal), share >= 0.9) {
            (false, _) => (Verdict::Missed, share),
            (true, true) => (Verdict::Reproduced, share),
            (true, false) => (Verdict::Fragile, share),
        }
    }
}

pub fn claim(id: &'static str, says: &'static str, rule: Rule, ours: fn(&Figures) -> Option<f64>) -> Claim {
    Claim { id, says, fitted: false, rule, ours }
}

/// A claim that may be fitted to, so it is never counted.
pub fn fitted(id: &'static str, says: &'static str, rule: Rule, ours: fn(&Figures) -> Option<f64>) -> Claim {
    Claim { fitted: true, ..claim(id, says, rule, ours) }
}

#[cfg(test)]
mod tests;

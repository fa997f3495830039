//! The few roles of a node, such as one of a cluster: it receives its data, computes, sends its results
//! (`multiserver-scheduling`, section 5). The indicators show its present role; how long each lasts is learnt, since a
//! phase must last longer than the reconfiguration costs.

use core::time::Duration;

use eft_base::Instant;
use eft_machine::Share;

use crate::indicators::Indicators;
use crate::throughput::ByteRate;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Hardly any traffic: the cores are needed elsewhere.
    #[default]
    Computes,
    Receives,
    Sends,
    /// Requests and answers, or both directions at once.
    Serves,
}

const ROLES: usize = 4;
/// A rate below this counts as no traffic.
const TRAFFIC: ByteRate = ByteRate(100e3);
/// A phase must last this much longer than its reconfiguration, or half of the gain is lost on the way.
const PAYS_AFTER: u32 = 2;

impl Role {
    pub fn of(indicators: &Indicators) -> Self {
        if indicators.passed() < TRAFFIC && indicators.segments_per_s < 100.0 {
            return Self::Computes;
        }
        match indicators.received_share {
            share if share >= Share(0.9) => Self::Receives,
            share if share <= Share(0.1) => Self::Sends,
            _ => Self::Serves,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Computes => "computes",
            Self::Receives => "receives",
            Self::Sends => "sends",
            Self::Serves => "serves",
        }
    }
}

/// How long the roles last.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    role: Role,
    since: Instant,
    /// Mean length of each role's finished phases; zero before the first.
    usual: [Duration; ROLES],
}

impl Phases {
    /// Notes the role of a sample; true if it has changed.
    pub fn note(&mut self, time: Instant, role: Role) -> bool {
        if role == self.role {
            return false;
        }
        let length = time.saturating_since(self.since);
        let usual = &mut self.usual[self.role as usize];
        // The first phase may have begun before the first sample.
        *usual = if usual.is_zero() { length } else { *usual / 2 + length / 2 };
        (self.role, self.since) = (role, time);
        true
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether what is left of this phase, as far as is known, is long enough for a reconfiguration.
    pub fn pays(&self, time: Instant, reconfiguration: Duration) -> bool {
        let usual = self.usual[self.role as usize];
        let passed = time.saturating_since(self.since);
        // A phase that outlasts its usual length is of another kind, so the usual length does not apply.
        usual.is_zero() || passed > usual || usual - passed > reconfiguration * PAYS_AFTER
    }
}

#[cfg(test)]
mod tests;

//! The scheduler at work on tier 1: it gets samples of what the servers did, and its plans change the machine while it runs.
//!
//! The scheduler's code is the live one. What it is told of the machine is off; the power and the rate that it is judged by come
//! from the machine and from the programs, and the best fixed configuration from tier 2, which knows nothing of policies.

mod change;
mod job;
pub mod judge;
mod latency;
mod meter;
pub mod placement;
mod profiles;
mod rates;
pub mod run;
pub mod search;
mod sensor;
mod told;

pub use job::Offered;
pub use judge::Judge;
pub use latency::Latency;
pub use rates::Rates;
pub use run::{Experiment, Outcome, Way};

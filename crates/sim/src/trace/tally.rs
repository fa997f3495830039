//! What a trace has in all.

use std::collections::BTreeSet;

use super::{Deed, Trace};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub opens: u64,
    pub closes: u64,
    /// Connections that are open at once, at most.
    pub open_at_once: usize,
    pub requests: u64,
    pub request_bytes: u64,
    pub answer_bytes: u64,
}

impl Trace {
    pub fn tally(&self) -> Tally {
        let (mut tally, mut open) = (Tally::default(), BTreeSet::new());
        for step in self.steps() {
            match step.deed {
                Deed::Open => {
                    tally.opens += 1;
                    open.insert(step.connection);
                    tally.open_at_once = tally.open_at_once.max(open.len());
                }
                Deed::Ask(exchange) => {
                    tally.requests += 1;
                    tally.request_bytes += exchange.request_bytes;
                    tally.answer_bytes += exchange.answer_bytes;
                }
                Deed::Close => {
                    tally.closes += 1;
                    open.remove(&step.connection);
                }
            }
        }
        tally
    }
}

//! Connections whose ordinary packets pass without a question, because the filter has granted them
//! ([`eft_messages::filter`]).
//!
//! Packets of a connection keep their order: those that come while older ones still wait for their verdicts are held
//! until these have come. The filter answers in the order of the questions, so two counters show when.

use crate::pending::Question;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::hash::{Key, Map};
use eft_base::{Instant, RequestId};
use eft_messages::filter::{Flow, IpToFilter, is_ordinary};

/// Beyond this many, the filter is asked about each packet.
const GRANTS_MAX: usize = 1 << 17;
/// How often the filter is told how much has passed, and unused grants by rules are searched for.
const REPORT: Duration = Duration::from_secs(1);
/// A grant by rules that was unused for this long makes room for others.
const UNUSED: Duration = Duration::from_secs(10);

struct Grant {
    /// Given for a grant by rules, which is for packets on this interface; else the grant is by the connection's
    /// state.
    interface: Option<u8>,
    /// When a packet last passed.
    last: Instant,
    /// Nothing passes before this many questions have been answered.
    barrier: u64,
    /// Packets that wait for that, in order.
    held: Vec<RequestId>,
}

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Pass,
    /// It waits with [`Grants::hold`].
    Hold(Flow),
    Ask,
    /// The grant is ended, and then the filter is asked.
    EndAndAsk(Flow),
}

pub(crate) struct Grants {
    grants: Map<Flow, Grant>,
    /// Questions since the filter's birth, and their answers.
    asked: u64,
    answered: u64,
    /// Grants with a barrier that is not reached, in the order of their barriers.
    waiting: VecDeque<(u64, Flow)>,
    /// What passed since the last report.
    passed: u64,
    passed_by_state: u64,
    report_at: Option<Instant>,
    /// The filter has neither rules nor states.
    all: bool,
}

impl Grants {
    /// Peers choose what is hashed, so the key is secret.
    pub fn new(key: [u64; 2]) -> Grants {
        Grants {
            grants: Map::with_hasher(Key(key)),
            asked: 0,
            answered: 0,
            waiting: VecDeque::new(),
            passed: 0,
            passed_by_state: 0,
            report_at: None,
            all: false,
        }
    }

    pub fn len(&self) -> usize {
        self.grants.len()
    }

    /// Everything passes, as soon as no packet waits that would be overtaken.
    pub fn grant_all(&mut self) {
        self.all = true;
    }

    pub fn way(&mut self, now: Instant, q: &Question, interface: u8) -> Way {
        if self.all && self.answered == self.asked {
            self.passed += 1;
            self.report_at.get_or_insert(now + REPORT);
            return Way::Pass;
        }
        let Some(flow) = q.flow() else { return Way::Ask };
        let Some(grant) = self.grants.get_mut(&flow) else { return Way::Ask };
        if !is_ordinary(q.protocol, q.tcp_flags) {
            return Way::EndAndAsk(flow);
        }
        if grant.interface.is_some_and(|i| i != interface) {
            return Way::Ask;
        }
        if self.answered < grant.barrier {
            return Way::Hold(flow);
        }
        grant.last = now;
        self.passed += 1;
        self.passed_by_state += grant.interface.is_none() as u64;
        self.report_at.get_or_insert(now + REPORT);
        Way::Pass
    }

    /// Lets a packet wait for the answers about those before it.
    pub fn hold(&mut self, flow: &Flow, id: RequestId) {
        if let Some(grant) = self.grants.get_mut(flow) {
            grant.held.push(id);
        }
    }

    pub fn count_question(&mut self) {
        self.asked += 1;
    }

    /// Counts an answer of the filter.
    pub fn count_answer(&mut self) {
        self.answered = self.asked.min(self.answered + 1);
    }

    /// The filter grants the connection of a packet that it was asked about.
    pub fn grant(&mut self, now: Instant, q: &Question, by_rules: Option<u8>) {
        // By rules only for connections that send data: else the last acknowledgment of every connection would add a
        // grant.
        let Some(flow) = q.flow().filter(|_| by_rules.is_none() || !q.bare) else { return };
        if self.grants.len() >= GRANTS_MAX || self.grants.contains_key(&flow) {
            return;
        }
        let grant = Grant { interface: by_rules, last: now, barrier: self.asked, held: Vec::new() };
        self.grants.insert(flow, grant);
        self.waiting.push_back((self.asked, flow));
        self.report_at.get_or_insert(now + REPORT);
    }

    /// Packets whose wait is over because of the last answer.
    pub fn take_held(&mut self) -> Vec<RequestId> {
        let mut over = Vec::new();
        while let Some((_, flow)) = self.waiting.pop_front_if(|(barrier, _)| *barrier <= self.answered) {
            // The connection may have got another grant since.
            if let Some(grant) = self.grants.get_mut(&flow).filter(|g| g.barrier <= self.answered) {
                over.append(&mut grant.held);
            }
        }
        over
    }

    /// Ends a grant. Returns the message for the filter, and the packets that it must now be asked about.
    pub fn end(&mut self, flow: &Flow) -> (Option<IpToFilter>, Vec<RequestId>) {
        let used = |at| Some(IpToFilter::Used { flow: *flow, at });
        match self.grants.remove(flow) {
            Some(Grant { interface: Some(_), held, .. }) => (None, held),
            Some(Grant { interface: None, held, last, .. }) => (used(last.as_nanos()), held),
            None => (used(0), Vec::new()),
        }
    }

    /// Ends all grants by rules. Returns the packets that the filter must now be asked about.
    pub fn end_by_rules(&mut self) -> Vec<RequestId> {
        self.all = false;
        let mut held = Vec::new();
        let ended = self.grants.extract_if(|_, grant| grant.interface.is_some());
        ended.for_each(|(_, mut grant)| held.append(&mut grant.held));
        held
    }

    /// Forgets all grants: a new filter knows of none, and is asked again about all waiting packets.
    pub fn clear(&mut self) {
        self.grants.clear();
        self.waiting.clear();
        (self.asked, self.answered, self.all) = (0, 0, false);
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.report_at
    }

    /// The report that is due is left out: the next one tells what this one would have.
    pub fn put_report_off(&mut self) {
        self.report_at = None;
    }

    /// The report to the filter about packets that passed, if one is due and there were any.
    pub fn report(&mut self, now: Instant) -> Option<IpToFilter> {
        self.report_at.take_if(|at| *at <= now)?;
        let unused = |g: &Grant| g.held.is_empty() && now.saturating_since(g.last) >= UNUSED;
        self.grants.retain(|_, g| g.interface.is_none() || !unused(g));
        let (packets, by_state) =
            (core::mem::take(&mut self.passed), core::mem::take(&mut self.passed_by_state));
        if packets > 0 || self.grants.values().any(|g| g.interface.is_some()) {
            self.report_at = Some(now + REPORT);
        }
        (packets > 0).then_some(IpToFilter::Passed { packets, by_state })
    }
}

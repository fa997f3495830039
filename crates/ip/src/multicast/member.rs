//! One group on one interface: what is wanted, what routers were told, and what they are still to be told.

use super::filter::Filter;
use super::wire::{Kind, Record};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::Instant;
use eft_messages::transport::membership::SOURCES_MAX;

/// What is wanted of a group of the host's own: everything.
static EVERYTHING: Filter = Filter { exclude: true, sources: Vec::new() };

/// What one instance of udp wants of a group.
#[derive(Debug)]
struct Wish {
    from: u8,
    filter: Filter,
    /// It has named the group since its list began.
    confirmed: bool,
}

/// A group on an interface.
#[derive(Debug)]
pub(super) struct Member {
    /// What transports want together.
    pub wanted: Filter,
    /// What each of them wants, unless that is nothing.
    wishes: Vec<Wish>,
    /// The host itself is a member.
    pub own: bool,
    /// The filter as of the last change that is being reported.
    told: Filter,
    /// How many more times a change of the filter's mode is reported.
    mode_left: u8,
    /// How many more times each source is reported that is wanted since the last change, or no longer.
    sources_left: Vec<(IpAddr, u8)>,
    /// When to report the change, for the first time or again.
    pub change_at: Option<Instant>,
    /// When to answer a query about this group.
    pub answer_at: Option<Instant>,
    /// The sources that the query was about; empty: about the group.
    asked: Vec<IpAddr>,
    /// No other host has reported the group since we did (RFC 2236 §3).
    pub reported_last: bool,
}

impl Member {
    pub fn new() -> Member {
        Member {
            wanted: Filter::default(),
            wishes: Vec::new(),
            own: false,
            told: Filter::default(),
            mode_left: 0,
            sources_left: Vec::new(),
            change_at: None,
            answer_at: None,
            asked: Vec::new(),
            reported_last: false,
        }
    }

    /// Whether a transport wants something that it has not confirmed.
    pub fn lacks(&self, from: u8) -> bool {
        self.wishes.iter().any(|wish| wish.from == from && !wish.confirmed)
    }

    /// A transport's list begins anew. False: it wanted nothing.
    pub fn doubt(&mut self, from: u8) -> bool {
        let wish = self.wishes.iter_mut().find(|wish| wish.from == from);
        wish.map(|wish| wish.confirmed = false).is_some()
    }

    /// Changes, and so confirms, what a transport wants.
    pub fn change_wish(&mut self, from: u8, f: impl FnOnce(&mut Filter) -> bool) -> bool {
        let mut wish = match self.wishes.iter().position(|wish| wish.from == from) {
            Some(i) => self.wishes.swap_remove(i),
            None => Wish { from, filter: Filter::default(), confirmed: true },
        };
        let fits = f(&mut wish.filter);
        if !wish.filter.is_nothing() {
            self.wishes.push(Wish { confirmed: true, ..wish });
        }
        self.wanted = Filter::of_all(self.wishes.iter().map(|wish| &wish.filter));
        fits
    }

    /// What host and transports want together.
    pub fn filter(&self) -> &Filter {
        if self.own { &EVERYTHING } else { &self.wanted }
    }

    /// Whether nothing is wanted, and routers know.
    pub fn is_over(&self) -> bool {
        self.filter().is_nothing() && self.change_at.is_none()
    }

    /// The link is up again, or its routers may have forgotten: everything is reported as new.
    pub fn forget_reports(&mut self) {
        self.told = Filter::default();
        self.mode_left = 0;
        self.sources_left.clear();
    }

    /// Nothing that is due is said.
    pub fn say_nothing(&mut self) {
        self.told = self.filter().clone();
        self.mode_left = 0;
        self.sources_left.clear();
        self.asked.clear();
        (self.change_at, self.answer_at) = (None, None);
    }

    /// Compares what is wanted with what routers were told last; differences are to be reported `robustness` times (RFC 9776
    /// §5.1).
    fn notice_changes(&mut self, robustness: u8) {
        if *self.filter() == self.told {
            return;
        }
        let now = self.filter().clone();
        let told = core::mem::replace(&mut self.told, now);
        if told.exclude != self.told.exclude {
            // The report of the mode has all sources.
            self.mode_left = robustness;
            self.sources_left.clear();
            return;
        }
        let wanted = &self.told;
        let gone = told.sources.iter().filter(|s| !wanted.lists(**s));
        let new = wanted.sources.iter().filter(|s| !told.lists(**s));
        for source in gone.chain(new) {
            self.sources_left.retain(|(s, _)| s != source);
            self.sources_left.push((*source, robustness));
        }
    }

    /// The records of the next report of a change; afterwards [`Member::is_reported`] says whether it was the last.
    pub fn changes(&mut self, group: IpAddr, robustness: u8) -> Vec<Record> {
        self.notice_changes(robustness);
        if self.mode_left > 0 {
            self.mode_left -= 1;
            let kind = if self.told.exclude { Kind::ToExclude } else { Kind::ToInclude };
            return alloc::vec![Record { kind, group, sources: self.told.sources.clone() }];
        }
        let (mut allowed, mut blocked) = (Vec::new(), Vec::new());
        for (source, left) in &mut self.sources_left {
            *left -= 1;
            let to = if self.told.admits(*source) { &mut allowed } else { &mut blocked };
            to.push(*source);
        }
        self.sources_left.retain(|(_, left)| *left > 0);
        let records = [(Kind::Allow, allowed), (Kind::Block, blocked)];
        let said = records.into_iter().filter(|(_, sources)| !sources.is_empty());
        said.map(|(kind, sources)| Record { kind, group, sources }).collect()
    }

    /// Whether the change has been reported as often as it is to be.
    pub fn is_reported(&self) -> bool {
        self.mode_left == 0 && self.sources_left.is_empty()
    }

    /// How the group stands (RFC 9776 §4.2.12).
    pub fn current(&self, group: IpAddr) -> Option<Record> {
        let wanted = self.filter();
        let kind = if wanted.exclude { Kind::IsExclude } else { Kind::IsInclude };
        let record = Record { kind, group, sources: wanted.sources.clone() };
        (!wanted.is_nothing()).then_some(record)
    }

    /// A query about the group was heard, to be answered at `at` (RFC 9776 §5.2, rules 3 to 5).
    pub fn hear(&mut self, at: Instant, sources: Vec<IpAddr>) {
        self.asked = match self.answer_at {
            Some(_) if self.asked.is_empty() || sources.is_empty() => Vec::new(),
            Some(_) => {
                let mut all = core::mem::take(&mut self.asked);
                all.extend(sources);
                all.sort();
                all.dedup();
                // An answer about the whole group answers them all, and queries cannot make the list grow without end.
                if all.len() > SOURCES_MAX { Vec::new() } else { all }
            }
            None => sources,
        };
        self.answer_at = Some(self.answer_at.map_or(at, |before| before.min(at)));
    }

    /// The answer to the queries that were heard (RFC 9776 §5.2); `None` if there is nothing to say.
    pub fn answer(&mut self, group: IpAddr) -> Option<Record> {
        self.answer_at = None;
        let asked = core::mem::take(&mut self.asked);
        if asked.is_empty() {
            return self.current(group);
        }
        let sources: Vec<IpAddr> = asked.into_iter().filter(|s| self.filter().admits(*s)).collect();
        (!sources.is_empty()).then_some(Record { kind: Kind::IsInclude, group, sources })
    }
}

#[cfg(test)]
mod tests;

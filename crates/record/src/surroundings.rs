//! What is remembered of a life beside its calls, so that a successor can make its last one alone.

use crate::durable::Durable;
use crate::recording::RecordedEvent;
use eft_base::DomainId;
use eft_channel::socket::{ARENA_HEADER_LEN, Geometry};
use eft_messages::ComponentId;
use std::collections::BTreeSet;

/// Pages of programs that are kept: 16 MB.
pub(crate) const PAGES_MAX: usize = 4096;

/// Where the pages lie that the engine has used.
#[derive(Default)]
pub struct UsedPages {
    all: BTreeSet<(DomainId, usize)>,
    latest: Option<(DomainId, usize)>,
}

impl UsedPages {
    pub fn note(&mut self, domain: DomainId, page: usize) {
        let this = (domain, page);
        if self.latest != Some(this) {
            self.latest = Some(this);
            self.all.insert(this);
        }
    }

    /// The most important one first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (DomainId, usize)> + Clone {
        let others = self.all.iter().copied().filter(|page| self.latest != Some(*page));
        self.latest.into_iter().chain(others).take(PAGES_MAX)
    }
}

/// Where the page lies to which an access at this offset of a domain's arena belongs.
pub(crate) fn page_of(geometry: &Geometry, at: usize) -> Option<usize> {
    let slot = at.checked_sub(ARENA_HEADER_LEN)? / geometry.stride();
    Some(geometry.offset_of(slot as u32))
}

/// What an engine was told that a successor is told, too.
#[derive(Default)]
pub struct Surroundings {
    pub(crate) arena: Option<Durable>,
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) peers: Vec<ComponentId>,
}

impl Surroundings {
    pub fn hear(&mut self, event: RecordedEvent) {
        let is_same = |other: &RecordedEvent| match (&event, other) {
            (RecordedEvent::Configure { key, .. }, RecordedEvent::Configure { key: other, .. }) => {
                key == other
            }
            (RecordedEvent::Domain { domain, .. }, RecordedEvent::Domain { domain: other, .. }) => {
                domain == other
            }
            _ => false,
        };
        match self.events.iter_mut().find(|other| is_same(other)) {
            Some(other) => *other = event,
            None if matches!(event, RecordedEvent::Dirty { .. }) => {}
            None => self.events.push(event),
        }
    }

    pub fn meet(&mut self, peer: ComponentId) {
        if !self.peers.contains(&peer) {
            self.peers.push(peer);
        }
    }
}

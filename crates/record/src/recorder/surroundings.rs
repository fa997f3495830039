//! What is remembered of a life beside its calls, so that a successor can make its last one alone.

use crate::recording::{Call, Cut, Image, LastCall, RecordedEvent};
use eft_base::{DomainId, PoolId};
use eft_channel::Memory;
use eft_channel::socket::{ARENA_HEADER_LEN, Geometry, SOCKET_HEADER_LEN};
use eft_messages::ComponentId;
use serde_bytes::ByteBuf;
use std::collections::BTreeSet;

/// Pages of programs that are kept: 16 MB.
const PAGES_MAX: usize = 4096;

/// Where the pages lie that the engine has used.
#[derive(Default)]
pub(super) struct UsedPages {
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
    fn kept(&self) -> impl Iterator<Item = (DomainId, usize)> {
        let others = self.all.iter().copied().filter(|page| self.latest != Some(*page));
        self.latest.into_iter().chain(others).take(PAGES_MAX)
    }
}

/// Where the page lies to which an access at this offset of a domain's arena belongs.
pub(super) fn page_of(geometry: &Geometry, at: usize) -> Option<usize> {
    let slot = at.checked_sub(ARENA_HEADER_LEN)? / geometry.stride();
    Some(geometry.offset_of(slot as u32))
}

/// What an engine was told that a successor is told, too.
#[derive(Default)]
pub(super) struct Surroundings {
    pub arena: Option<Box<dyn Fn() -> Image>>,
    events: Vec<RecordedEvent>,
    peers: Vec<ComponentId>,
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

    /// What is kept of a call that panicked. A domain that has ended is left out.
    pub fn last_call(
        &self,
        call: Call,
        pools: Vec<(PoolId, Cut)>,
        memory: &Memory,
        used: &UsedPages,
    ) -> LastCall {
        let is_here = |event: &&RecordedEvent| match event {
            RecordedEvent::Domain { pool, .. } => memory.view(*pool).is_some(),
            _ => true,
        };
        let events: Vec<RecordedEvent> = self.events.iter().filter(is_here).cloned().collect();
        let pages = |event: &RecordedEvent| match event {
            RecordedEvent::Domain { domain, pool, .. } => {
                Some((*domain, pages(memory, *domain, *pool, used)))
            }
            _ => None,
        };
        LastCall {
            arena: self.arena.as_ref().map(|image| image()).unwrap_or_default(),
            pages: events.iter().filter_map(pages).collect(),
            events,
            peers: self.peers.clone(),
            pools,
            call,
        }
    }
}

fn pages(memory: &Memory, domain: DomainId, pool: PoolId, used: &UsedPages) -> Image {
    let Some(view) = memory.view(pool) else { return Image::new() };
    let of_it = used.kept().filter(|(of, _)| *of == domain);
    let read = |(_, at): (DomainId, usize)| {
        let mut bytes = vec![0; SOCKET_HEADER_LEN];
        view.segment.read(at, &mut bytes).ok()?;
        Some((at, ByteBuf::from(bytes)))
    };
    of_it.filter_map(read).collect()
}

//! Which sources' packets to a group are wanted.

use alloc::vec::Vec;
use core::net::IpAddr;
use eft_messages::transport::membership::SOURCES_MAX;

/// A filter of an interface (RFC 9776 §3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// All sources are wanted but those that are listed; else those alone.
    pub exclude: bool,
    /// Sorted.
    pub sources: Vec<IpAddr>,
}

impl Filter {
    pub fn new(exclude: bool) -> Filter {
        Filter { exclude, sources: Vec::new() }
    }

    /// What several want together (RFC 9776 §3.2).
    pub fn of_all<'a>(filters: impl Iterator<Item = &'a Filter> + Clone) -> Filter {
        let mut excluding = filters.clone().filter(|f| f.exclude);
        let mut all = Filter::new(false);
        match excluding.next() {
            None => filters.flat_map(|f| &f.sources).for_each(|source| {
                all.insert(*source);
            }),
            Some(first) => {
                let nobody_wants = |source: &&IpAddr| filters.clone().all(|f| !f.admits(**source));
                all.exclude = true;
                all.sources = first.sources.iter().filter(nobody_wants).copied().collect();
            }
        }
        all
    }

    /// Nothing is wanted: the interface is not a member.
    pub fn is_nothing(&self) -> bool {
        !self.exclude && self.sources.is_empty()
    }

    pub fn lists(&self, source: IpAddr) -> bool {
        self.sources.binary_search(&source).is_ok()
    }

    pub fn admits(&self, source: IpAddr) -> bool {
        self.lists(source) != self.exclude
    }

    /// False: the list is full.
    pub fn insert(&mut self, source: IpAddr) -> bool {
        if let Err(at) = self.sources.binary_search(&source) {
            if self.sources.len() >= SOURCES_MAX {
                return false;
            }
            self.sources.insert(at, source);
        }
        true
    }

    pub fn remove(&mut self, source: IpAddr) {
        if let Ok(at) = self.sources.binary_search(&source) {
            self.sources.remove(at);
        }
    }
}

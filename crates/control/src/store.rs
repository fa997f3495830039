//! The store: opaque bytes by key, with versions and subscribers.
//!
//! It holds what a restarted component needs and has in no arena: addresses and routes, filter rules. The store never
//! interprets a value.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use eft_messages::ComponentId;

/// Bytes of one value.
pub const VALUE_MAX: usize = 1 << 20;

struct Entry {
    version: u64,
    value: Vec<u8>,
}

/// Keys, values, subscribers.
#[derive(Default)]
pub struct Store {
    entries: BTreeMap<String, Entry>,
    subscribers: BTreeMap<String, Vec<ComponentId>>,
}

impl Store {
    /// `peer` gets the value of `key` at its start and whenever it changes.
    pub fn subscribe(&mut self, key: &str, peer: ComponentId) {
        let peers = self.subscribers.entry(key.into()).or_default();
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }

    /// Sets a value and returns the subscribers to notify. `None`: the value is too large, nothing changed.
    pub fn publish(&mut self, key: &str, value: Vec<u8>) -> Option<Vec<ComponentId>> {
        if value.len() > VALUE_MAX {
            return None;
        }
        let version = self.entries.get(key).map_or(1, |e| e.version + 1);
        self.entries.insert(key.into(), Entry { version, value });
        Some(self.subscribers.get(key).cloned().unwrap_or_default())
    }

    /// Forgets a key; its subscribers stay.
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    pub fn get(&self, key: &str) -> Option<(u64, &[u8])> {
        self.entries.get(key).map(|e| (e.version, e.value.as_slice()))
    }

    /// The values that a newly started `peer` must get.
    pub fn for_peer(&self, peer: ComponentId) -> impl Iterator<Item = (&str, &[u8])> {
        self.subscribers
            .iter()
            .filter(move |(_, peers)| peers.contains(&peer))
            .filter_map(|(key, _)| self.entries.get(key).map(|e| (key.as_str(), e.value.as_slice())))
    }
}

#[cfg(test)]
mod tests;

//! A connection's keys of TCP-AO (RFC 5925 §3.1, there "master key tuples"), what has been made of them, and what they have done.

use super::ao::{AoSigner, Particulars, TrafficKey};
use super::block::Tuple;
use alloc::rc::Rc;
use alloc::vec::Vec;
use eft_channel::socket::{AuthenticationStatus, KeyCounts, SignatureKey};

/// A traffic key, and the initial sequence numbers that it was made for.
type Made = Option<((u32, u32), Rc<TrafficKey>)>;

pub(crate) struct AoKey {
    pub master: SignatureKey,
    pub good: u64,
    pub bad: u64,
    sends: Made,
    receives: Made,
}

/// All that fit the peer.
pub(crate) struct AoKeys {
    pub keys: Vec<AoKey>,
    /// Counts of the connection.
    pub counted: AuthenticationStatus,
}

impl AoKey {
    fn new(master: SignatureKey) -> AoKey {
        AoKey { master, good: 0, bad: 0, sends: None, receives: None }
    }

    /// A segment with its KeyID came. Counts may have begun with any number.
    pub fn count(&mut self, is_good: bool) {
        let count = if is_good { &mut self.good } else { &mut self.bad };
        *count = count.wrapping_add(1);
    }

    /// What a segment with a sequence number of this extension is signed with; `isns`: our own first.
    pub fn signer(&mut self, tuple: &Tuple, isns: (u32, u32), next_id: u8, extension: u32) -> AoSigner {
        let of = Particulars {
            addresses: (tuple.local, tuple.remote),
            ports: (tuple.local_port, tuple.remote_port),
            isns,
        };
        AoSigner {
            key: made(&mut self.sends, &self.master, &of),
            key_id: self.master.send_id,
            next_id,
            mac_len: self.master.mac_len,
            covers_options: self.master.excludes_options == 0,
            extension,
        }
    }

    /// What a segment is verified with; `isns`: the peer's first.
    pub fn verifier(&mut self, tuple: &Tuple, isns: (u32, u32)) -> Rc<TrafficKey> {
        let of = Particulars {
            addresses: (tuple.remote, tuple.local),
            ports: (tuple.remote_port, tuple.local_port),
            isns,
        };
        made(&mut self.receives, &self.master, &of)
    }
}

/// Keys of SYNs are made for one segment, all others once.
fn made(made: &mut Made, master: &SignatureKey, of: &Particulars) -> Rc<TrafficKey> {
    if let Some((isns, key)) = made
        && *isns == of.isns
    {
        return key.clone();
    }
    let key = Rc::new(TrafficKey::derive(master, of));
    *made = Some((of.isns, key.clone()));
    key
}

impl AoKeys {
    pub fn new(masters: Vec<SignatureKey>) -> AoKeys {
        let keys = masters.into_iter().map(AoKey::new).collect();
        AoKeys { keys, counted: AuthenticationStatus::default() }
    }

    /// Takes these instead, and keeps what is known of those that are the same.
    pub fn replace(&mut self, masters: Vec<SignatureKey>) {
        let mut old = core::mem::take(&mut self.keys);
        let kept = |master: SignatureKey| match old.iter().position(|key| key.master == master) {
            Some(place) => old.swap_remove(place),
            None => AoKey::new(master),
        };
        self.keys = masters.into_iter().map(kept).collect();
    }

    /// Keys of a connection from before a crash: continues from counts that a predecessor told.
    pub fn resumed(masters: Vec<SignatureKey>, told: Option<AuthenticationStatus>) -> AoKeys {
        let mut keys = AoKeys::new(masters);
        keys.counted = told.unwrap_or_default();
        for key in &mut keys.keys {
            let ids = (key.master.send_id, key.master.receive_id);
            let counts = keys.counted.keys.iter().find(|counts| (counts.send_id, counts.receive_id) == ids);
            if let Some(counts) = counts {
                (key.good, key.bad) = (counts.good, counts.bad);
            }
        }
        keys
    }

    /// A segment with the KeyID of a key of ours came.
    pub fn count(&mut self, is_good: bool) {
        let count = if is_good { &mut self.counted.good } else { &mut self.counted.bad };
        *count = count.wrapping_add(1);
    }

    pub fn by_send_id(&mut self, id: u8) -> Option<&mut AoKey> {
        self.keys.iter_mut().find(|key| key.master.send_id == id)
    }

    pub fn by_receive_id(&mut self, id: u8) -> Option<&mut AoKey> {
        self.keys.iter_mut().find(|key| key.master.receive_id == id)
    }

    pub fn masters(&self) -> impl Iterator<Item = &SignatureKey> {
        self.keys.iter().map(|key| &key.master)
    }

    /// The counts for the application.
    pub fn status(&self) -> AuthenticationStatus {
        let mut status = self.counted;
        status.keys = [KeyCounts::default(); _];
        status.count = self.keys.len().min(status.keys.len()) as u8;
        for (counts, key) in status.keys.iter_mut().zip(&self.keys) {
            let (send_id, receive_id) = (key.master.send_id, key.master.receive_id);
            *counts = KeyCounts { send_id, receive_id, reserved: [0; 6], good: key.good, bad: key.bad };
        }
        status
    }
}

/// The extension of a sequence number (RFC 5925 §6.2) that lies at `offset` of a stream with this initial sequence number: what the
/// sequence number lacks of one that never wraps.
pub(super) fn extension(isn: u32, offset: i64) -> u32 {
    ((i64::from(isn) + 1 + offset) >> 32) as u32
}

#[cfg(test)]
mod tests;

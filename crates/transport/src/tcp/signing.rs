//! Signed segments (RFC 2385, TCP_MD5SIG; RFC 5925, TCP-AO): who signs, and with which key. What arrives is judged in
//! [`super::verifying`]; the digests are in [`super::signature`].
//!
//! The keys (RFC 2385 §4.5, RFC 5925 §3.1) lie in the pages of the sockets that they were set on: those of a listener are for its
//! connections, each of which keeps those for its peer in its own page. A connection that is signed remains so, after a crash, too:
//! if its keys are not known then, since it has no page any more, it takes nothing, and what it sends the peer drops.
//!
//! No device cuts signed segments, and their data are read here. With RFC 2385 a SYN offers no timestamps, and a SYN-ACK has no room
//! for both timestamps and SACK, as on Linux; TCP-AO leaves room for both.
//!
//! Which of TCP-AO's keys are used is in the block (RFC 5925 §3.3): a connection asks the peer for one and signs with the one that
//! the peer, or its application, has asked for last.

use super::ao::AoSigner;
use super::ao_keys::{AoKeys, extension};
use super::block::{State, bit};
use super::connection::{Connection, View};
use super::engine::Tcp;
use super::options::Authentication;
use super::segment::Segment;
use super::signature::{Signed, Signer};
use crate::page::Keys;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use eft_base::WireAddress;
use eft_base::wire::{TCP_ACK, TCP_SYN};
use eft_channel::socket::{AuthenticationWishes, Opt, SignatureKey, signature_keys};

impl Connection<'_> {
    /// Signs its segments with these keys from now on, or with none.
    pub(super) fn sign(&mut self, keys: Keys) {
        if self.block.has(bit::SIGNED) {
            self.block.clear(bit::AUTHENTICATED);
        }
        let signing = &mut self.live.signing;
        (signing.key, signing.ao) = (None, None);
        match keys {
            Keys::None => {}
            Keys::Md5(key) => {
                self.block.set(bit::SIGNED);
                signing.key = Some(Rc::new(key));
            }
            Keys::Ao(keys) => {
                self.block.set(bit::AUTHENTICATED);
                signing.ao = Some(Box::new(AoKeys::new(keys)));
            }
        }
    }

    /// Takes the keys from the page, if they have changed. A connection that TCP-AO protects keeps to it, and no other gets it.
    pub(super) fn take_signature_keys(&mut self) {
        let Some(page) = &self.live.page else { return };
        let word = page.option(Opt::SignatureKeys);
        let same = core::mem::replace(&mut self.live.signing.seen, word) == word;
        let remote = self.block.tuple.remote;
        if self.block.has(bit::AUTHENTICATED) {
            if !same && let Keys::Ao(keys) = page.keys_for(remote, false) {
                match &mut self.live.signing.ao {
                    Some(ao) => ao.replace(keys),
                    none => *none = Some(Box::new(AoKeys::resumed(keys, page.told_authentication()))),
                }
            }
            return self.take_wishes();
        }
        let keys = if same { return } else { page.keys_for(remote, false) };
        if keys.are_ao() {
            return;
        }
        self.sign(keys);
        if self.block.has(bit::SIGNED | bit::TIMESTAMPS) {
            // There is no room for its blocks, and no later segment of ours may lack timestamps (RFC 7323 §3.2).
            self.block.clear(bit::SACK);
        }
    }

    /// Takes the application's choice of TCP-AO's keys, once.
    fn take_wishes(&mut self) {
        let wishes = self.wishes();
        if wishes.changes == self.cold.ao_changes {
            return;
        }
        self.cold.ao_changes = wishes.changes;
        let Some(ao) = &mut self.live.signing.ao else { return };
        if let Some(id) = wishes.current.filter(|id| ao.by_send_id(*id).is_some()) {
            self.cold.ao_current = id;
        }
        if let Some(id) = wishes.next.filter(|id| ao.by_receive_id(*id).is_some()) {
            self.cold.ao_next = id;
        }
    }

    pub(super) fn wishes(&self) -> AuthenticationWishes {
        self.live.page.as_ref().map(|page| page.authentication_wishes()).unwrap_or_default()
    }

    /// For an active open: the keys that the application has chosen, else the last one that it gave, as on Linux.
    pub(super) fn choose_keys(&mut self) {
        let wishes = self.wishes();
        let Some(last) = self.live.signing.ao.as_ref().and_then(|ao| ao.masters().last()) else { return };
        (self.cold.ao_current, self.cold.ao_next) = (last.send_id, last.receive_id);
        self.cold.ao_changes = wishes.changes.wrapping_sub(1);
        self.take_wishes();
        self.cold.ao_changes = wishes.changes;
    }

    /// For a passive open: the keys that the peer's SYN asks for (RFC 5925 §7.5.1), or the one that signed it.
    pub(super) fn answer_with_keys(&mut self, told: &Authentication) {
        let Some(ao) = &mut self.live.signing.ao else { return };
        self.cold.ao_next = told.key_id;
        if ao.by_send_id(told.next_id).is_some() {
            self.cold.ao_current = told.next_id;
        } else if let Some(key) = ao.by_receive_id(told.key_id) {
            self.cold.ao_current = key.master.send_id;
        }
    }

    /// Leaves room for signatures among the options that were agreed on.
    pub(super) fn make_room_for_signatures(&mut self) {
        if self.block.has(bit::SIGNED | bit::SACK) && !self.block.has(bit::AUTHENTICATED) {
            self.block.clear(bit::TIMESTAMPS);
        }
    }

    /// Publishes what TCP-AO does.
    pub(super) fn tell_authentication(&self) {
        let (Some(ao), Some(page)) = (&self.live.signing.ao, &self.live.page) else { return };
        let mut status = ao.status();
        status.incarnation = self.cold.incarnation;
        (status.current, status.next) = (self.cold.ao_current, self.cold.ao_next);
        status.changes = self.cold.ao_changes;
        page.set_authentication_status(&status);
    }
}

impl View<'_> {
    /// The keys for a peer that were set on this socket.
    fn keys_for(&self, peer: WireAddress) -> Keys {
        let listens = self.block.state() == State::Listen;
        self.live.page.as_ref().map(|page| page.keys_for(peer, listens)).unwrap_or_default()
    }
}

impl Tcp {
    /// The keys for a peer that were set on a socket.
    pub(super) fn keys_for(&self, socket: u32, peer: WireAddress) -> Keys {
        self.view(socket).keys_for(peer)
    }

    /// A socket's page was read, or may be read again: if it has keys, segments are looked at from now on. (A listener's are read
    /// when a SYN comes, too: its application need not have told of them.)
    pub(super) fn note_keys(&mut self, i: u32) {
        let page = self.live[i as usize].page.as_ref();
        self.is_keyed |= page.is_some_and(|page| {
            signature_keys::count(page.option(Opt::SignatureKeys)) > 0 || page.option(Opt::Authentication) > 0
        });
    }

    /// The keys of a signed connection, from its own page or from its listener's, after a crash.
    pub(super) fn recall_keys(&mut self, i: u32) {
        let c = self.view(i);
        let signing = &c.live.signing;
        if !c.block.has(bit::SIGNED) || signing.key.is_some() || signing.ao.is_some() {
            return;
        }
        let (peer, is_ao) = (c.block.tuple.remote, c.block.has(bit::AUTHENTICATED));
        let mut keys = c.keys_for(peer);
        if keys.are_none() {
            keys = self.listener_of(i).map(|listener| self.keys_for(listener, peer)).unwrap_or_default();
        }
        let told = c.live.page.as_ref().and_then(|page| page.told_authentication());
        let signing = &mut self.connection(i).live.signing;
        match keys {
            Keys::Md5(key) if !is_ao => signing.key = Some(Rc::new(key)),
            Keys::Ao(keys) if is_ao => {
                signing.ao = Some(Box::new(AoKeys::resumed(keys, told)));
            }
            _ => {}
        }
    }

    /// The keys that a connection's own page is to have.
    pub(super) fn own_keys(&mut self, i: u32) -> Vec<SignatureKey> {
        self.recall_keys(i);
        let View { cold, live, .. } = self.view(i);
        let signing = &live.signing;
        let mut keys: Vec<SignatureKey> = signing.key.iter().map(|key| **key).collect();
        keys.extend(signing.ao.iter().flat_map(|ao| ao.masters()));
        // Those that are in use first: there may not be room for all.
        keys.sort_by_key(|key| {
            key.is_ao() && key.send_id != cold.ao_current && key.receive_id != cold.ao_next
        });
        keys
    }

    /// What signs a segment of a connection with this sequence number and these flags; `None` if the connection is not signed, or if
    /// its keys were lost in a crash.
    pub(super) fn signer(&mut self, i: u32, seq: u32, flags: u16) -> Option<Signer> {
        if !self.block(i).has(bit::SIGNED) {
            return None;
        }
        self.recall_keys(i);
        let Connection { block, cold, live, .. } = self.connection(i);
        if !block.has(bit::AUTHENTICATED) {
            return live.signing.key.clone().map(Signer::Md5);
        }
        let key = live.signing.ao.as_mut()?.by_send_id(cold.ao_current)?;
        // Of a SYN the receiver's is not known (RFC 5925 §5.2).
        let is_syn = flags & u16::from(TCP_SYN | TCP_ACK) == u16::from(TCP_SYN);
        let isns = (block.iss, if is_syn { 0 } else { block.irs });
        let extension = extension(block.iss, block.acknowledged_offset(seq));
        Some(Signer::Ao(key.signer(&block.tuple, isns, cold.ao_next, extension)))
    }

    /// The signature of a segment with these bytes of the stream.
    pub(super) fn signed(&mut self, i: u32, start: u64, len: usize) -> Option<Signed> {
        let signer = self.signer(i, self.block(i).send_sequence(start), 0)?;
        let mut data = alloc::vec![0; len];
        if let Some(page) = self.view(i).live.page.as_ref().filter(|_| len > 0) {
            page.read_send(start, &mut data);
        }
        Some(Signed { signer, data })
    }

    /// What signs an answer, with this sequence number, to a segment that belongs to no connection, or not to the one that has its
    /// addresses. TCP-AO signs none of no connection: nobody knows which initial sequence numbers it would have.
    pub(super) fn answering_signer(&mut self, segment: &Segment, seq: u32, flags: u8) -> Option<Signer> {
        let tuple = &segment.tuple;
        match self.find(tuple) {
            Some(i) => self.signer(i, seq, flags.into()),
            None => match self.keys_for(self.ports.listener(tuple)?, tuple.remote) {
                Keys::Md5(key) => Some(Signer::Md5(Rc::new(key))),
                _ => None,
            },
        }
    }

    /// What signs a SYN-ACK for which nothing is kept, if the keys are of TCP-AO: as [`Connection::answer_with_keys`] would choose.
    pub(super) fn stateless_signer(syn: &Segment, iss: u32, keys: Vec<SignatureKey>) -> Option<AoSigner> {
        let told = syn.options.authentication?;
        let mut ao = AoKeys::new(keys);
        let id = match ao.by_send_id(told.next_id) {
            Some(key) => key.master.send_id,
            None => ao.by_receive_id(told.key_id)?.master.send_id,
        };
        let key = ao.by_send_id(id)?;
        Some(key.signer(&syn.tuple, (iss, syn.seq), told.key_id, 0))
    }
}

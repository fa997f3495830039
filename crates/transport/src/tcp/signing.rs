//! Signed segments (RFC 2385, TCP_MD5SIG): who signs, and with which key. A segment that is not signed, or not with this key,
//! changes nothing, resets included. The digest is in [`super::signature`].
//!
//! The keys (RFC 2385 §4.5) lie in the pages of the sockets that they were set on: those of a listener are for its connections,
//! each of which keeps the one for its peer in its own page. A connection that is signed remains so, after a crash, too: if its key
//! is not known then, since it has no page any more, it takes nothing, and what it sends the peer drops.
//!
//! No device cuts signed segments, and their data are read here. A SYN offers no timestamps, and a SYN-ACK has no room for
//! both timestamps and SACK, as on Linux.

use super::block::{State, Tuple, bit};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::engine::Tcp;
use super::options::Signature;
use super::segment::{Payload, Segment};
use super::signature::{Signed, are_equal, digest};
use alloc::rc::Rc;
use eft_base::WireAddress;
use eft_base::wire::TCP_SYN;
use eft_channel::socket::{Opt, SignatureKey, signature_keys};
use eft_component::Context;

impl Connection<'_> {
    /// Signs its segments with this key from now on, or with none.
    pub(super) fn sign(&mut self, key: Option<SignatureKey>) {
        match key {
            Some(_) => self.block.set(bit::SIGNED),
            None => self.block.clear(bit::SIGNED),
        }
        self.live.signing.key = key.map(Rc::new);
    }

    /// Takes TCP_MD5SIG from the page, if it has changed.
    pub(super) fn take_signature_keys(&mut self) {
        let Some(page) = &self.live.page else { return };
        let word = page.option(Opt::SignatureKeys);
        if core::mem::replace(&mut self.live.signing.seen, word) == word {
            return;
        }
        let key = page.signature_key(self.block.tuple.remote, false);
        self.sign(key);
        if self.block.has(bit::SIGNED | bit::TIMESTAMPS) {
            // There is no room for its blocks, and no later segment of ours may lack timestamps (RFC 7323 §3.2).
            self.block.clear(bit::SACK);
        }
    }

    /// Leaves room for signatures among the options that were agreed on.
    pub(super) fn make_room_for_signatures(&mut self) {
        if self.block.has(bit::SIGNED | bit::SACK) {
            self.block.clear(bit::TIMESTAMPS);
        }
    }
}

impl View<'_> {
    /// The key for a peer that was set on this socket.
    fn key_for(&self, peer: WireAddress) -> Option<SignatureKey> {
        self.live.page.as_ref()?.signature_key(peer, self.block.state() == State::Listen)
    }
}

impl Tcp {
    /// The key for a peer that was set on a socket.
    pub(super) fn key_for(&self, socket: u32, peer: WireAddress) -> Option<SignatureKey> {
        self.view(socket).key_for(peer)
    }

    /// A socket's page was read, or may be read again: if it has keys, segments are looked at from now on. (A listener's are read
    /// when a SYN comes, too: its application need not have told of them.)
    pub(super) fn note_keys(&mut self, i: u32) {
        let page = self.view(i).live.page.as_ref();
        self.is_keyed |= page.is_some_and(|page| signature_keys::count(page.option(Opt::SignatureKeys)) > 0);
    }

    /// The key of a signed connection; `None` if it is not signed, or if its key was lost in a crash.
    pub(super) fn signing_key(&mut self, i: u32) -> Option<Rc<SignatureKey>> {
        let c = self.view(i);
        if !c.block.has(bit::SIGNED) {
            return None;
        }
        if c.live.signing.key.is_none() {
            let peer = c.block.tuple.remote;
            let of_listener = || self.view(self.listener_of(i)?).key_for(peer);
            let key = c.key_for(peer).or_else(of_listener).map(Rc::new);
            self.connection(i).live.signing.key = key;
        }
        self.view(i).live.signing.key.clone()
    }

    /// The signature of a segment with these bytes of the stream.
    pub(super) fn signed(&mut self, i: u32, start: u64, len: usize) -> Option<Signed> {
        let key = self.signing_key(i)?;
        let mut data = alloc::vec![0; len];
        if let Some(page) = self.view(i).live.page.as_ref().filter(|_| len > 0) {
            page.read_send(start, &mut data);
        }
        Some(Signed { key, data })
    }

    /// The key with which an answer to a segment is signed that belongs to no connection, or not to the one that has its addresses.
    pub(super) fn answering_key(&mut self, tuple: &Tuple) -> Option<Rc<SignatureKey>> {
        match self.find(tuple) {
            Some(i) => self.signing_key(i),
            None => self.key_for(self.ports.listener(tuple)?, tuple.remote).map(Rc::new),
        }
    }

    /// Whether a segment is signed as its receiver wants it (RFC 2385 §2.0). One for nobody is. A verified payload lies in the
    /// scratch buffer from then on: nobody changes it there.
    pub(super) fn is_authentic(&mut self, cx: &Context, segment: &mut Segment) -> bool {
        if !self.is_keyed && segment.options.signature.is_none() && !segment.has(TCP_SYN) {
            return true;
        }
        let (wanted, key) = match self.find(&segment.tuple) {
            Some(i) if self.view(i).block.has(bit::SIGNED) => {
                self.revive_for_message(cx, i);
                (true, self.signing_key(i))
            }
            Some(_) => (false, None),
            None => {
                let Some(listener) = self.ports.listener(&segment.tuple) else { return true };
                let key = self.key_for(listener, segment.tuple.remote).map(Rc::new);
                self.is_keyed |= key.is_some();
                (key.is_some(), key)
            }
        };
        let fault = match (segment.options.signature, key) {
            (None, _) if !wanted => return true,
            (None, _) => Counter::DropUnsigned,
            (Some(_), _) if !wanted => Counter::DropUnexpectedSignature,
            (Some(told), Some(key)) if self.is_signed(cx, segment, &key, &told) => return true,
            _ => Counter::DropSignature,
        };
        cx.count(fault);
        false
    }

    fn is_signed(
        &mut self,
        cx: &Context,
        segment: &mut Segment,
        key: &SignatureKey,
        told: &Signature,
    ) -> bool {
        let len = segment.len as usize;
        let Some(data) = self.scratch.get_mut(..len) else { return false };
        if let Payload::Packet(packet) = segment.payload {
            if cx.memory.read(packet, data).is_none() {
                return false;
            }
            segment.payload = Payload::Scratch;
        }
        let Tuple { local, remote, .. } = segment.tuple;
        let header_len = u32::from(segment.header[12] >> 4) * 4;
        are_equal(&digest(key, (remote, local), &segment.header, header_len + segment.len, data), told)
    }
}

//! Opening without memory: the answer to a SYN for which there is no room, and the acknowledgment of that answer
//! ([`super::syn_cookies`]).

use super::asked::MTU_MIN;
use super::block::{MSS_DEFAULT, NONE, State, Tuple, bit};
use super::connect::scale_for;
use super::counters::Counter;
use super::emit::Outgoing;
use super::engine::Tcp;
use super::live::due;
use super::options::{Builder, Options};
use super::route::fixed_headers;
use super::segment::Segment;
use super::signature::{Signed, Signer};
use super::syn_cookies::{SIZE_MASK, SIZES, agreed, offered, offered_marks, period, size_index, stamp};
use crate::edge::Out;
use crate::page::Keys;
use alloc::rc::Rc;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_CWR, TCP_ECE, TCP_RST, TCP_SYN, TcpHeader};
use eft_component::{Context, Outbox};

impl Tcp {
    /// Whether few blocks are left: the last ones are for completed handshakes. Blocks in TIME-WAIT make room for others.
    pub(super) fn blocks_are_scarce(&self) -> bool {
        let len = self.blocks.capacity();
        len - self.free.used() + self.time_wait.len() <= len / 8
    }

    /// The sequence number of a SYN-ACK, without the index of the MSS.
    fn cookie(&self, tuple: &Tuple, irs: u32, period: u64) -> u32 {
        self.key.hash(b'C', &(tuple.parts(), irs, period)) as u32 & !SIZE_MASK
    }

    /// The MSS that we announce with a cookie: of the path to the peer if it is known, else of the last known path.
    fn cookie_mss(&self, now: Instant, listener: u32, tuple: &Tuple) -> u16 {
        let known = self.routes.get(now, (tuple.local, tuple.remote));
        let mtu = known.map_or(self.cookies.mtu, |path| path.mtu.max(MTU_MIN));
        let mss = match known.map_or(0, |path| path.mss) {
            0 => mtu - fixed_headers(tuple.remote),
            mss => mss,
        };
        mss.min(self.wished_mss(listener))
    }

    /// Answers a SYN without keeping state. If there is no room to send, the answer is lost: the peer asks again.
    pub(super) fn send_cookie(
        &mut self,
        cx: &Context,
        listener: u32,
        segment: &Segment,
        out: &mut Outbox<Out>,
    ) {
        let (tuple, keys) = (segment.tuple, self.keys_for(listener, segment.tuple.remote));
        // Beside a signature of RFC 2385 there is no room for both.
        let sack_permitted = segment.options.sack_permitted && !matches!(keys, Keys::Md5(_));
        let offer = &Options { sack_permitted, ..segment.options };
        let size = size_index(offer.mss.unwrap_or(MSS_DEFAULT));
        let iss = self.cookie(&tuple, segment.seq, period(cx.now)) | size;
        let ring = self.ring_of(listener);
        let mut options = Builder::new();
        options.mss(self.cookie_mss(cx.now, listener, &tuple));
        let mut scale = 0;
        let mut flags = TCP_SYN | TCP_ACK;
        if let Some((value, _)) = offer.timestamps {
            let marks = self.ecn.agrees(segment);
            flags |= if marks { TCP_ECE } else { 0 };
            let own = stamp(cx.now, agreed(offer, marks)).wrapping_add(self.timestamp_offset(&tuple));
            if offer.sack_permitted {
                options.sack_permitted_and_timestamps(own, value);
            } else {
                options.timestamps(own, value);
            }
            if offer.scale.is_some() {
                scale = scale_for(ring);
                options.scale(scale);
            }
        }
        let window = self.first_window(listener, scale) as u16;
        let ack = segment.seq.wrapping_add(1);
        let signer = match keys {
            Keys::None => None,
            Keys::Md5(key) => Some(Signer::Md5(Rc::new(key))),
            Keys::Ao(keys) => Tcp::stateless_signer(segment, iss, keys).map(Signer::Ao),
        };
        let signed = signer.map(Signed::bare);
        let answer = Outgoing { signed, ..Outgoing::bare(tuple, iss, ack, flags, window, options.bytes()) };
        if self.transmit_bare(cx, out, NONE, answer) {
            self.cookies.expect(cx.now);
            cx.count(Counter::SynCookiesSent);
        } else {
            cx.count(Counter::DropSynBacklog);
        }
    }

    /// The MSS in a segment's acknowledgment, if it acknowledges a cookie of ours.
    fn read_cookie(&self, now: Instant, segment: &Segment) -> Option<u16> {
        let (cookie, irs) = (segment.ack.wrapping_sub(1), segment.seq.wrapping_sub(1));
        let current = period(now);
        [current, current.wrapping_sub(1)]
            .into_iter()
            .any(|period| self.cookie(&segment.tuple, irs, period) == cookie & !SIZE_MASK)
            .then_some(SIZES[(cookie & SIZE_MASK) as usize])
    }

    /// Handles a segment of no connection that may complete a handshake with a cookie. False if it does not.
    pub(super) fn receive_cookie(&mut self, cx: &Context, segment: &Segment) -> bool {
        let answers = segment.has(TCP_ACK) && !segment.has(TCP_SYN | TCP_RST);
        if !answers || cx.now > self.cookies.until {
            return false;
        }
        let Some(listener) = self.ports.listener(&segment.tuple) else {
            return false;
        };
        let Some(mss) = self.read_cookie(cx.now, segment) else {
            cx.count(Counter::SynCookiesFailed);
            return false;
        };
        cx.count(Counter::SynCookiesReceived);
        if let Some(refusal) = self.refuse_child(listener) {
            // Dropped as if it had been lost: the peer's next segment brings the cookie again.
            cx.count(refusal);
            return true;
        }
        let mut options = offered(mss, segment.options.timestamps, self.timestamp_offset(&segment.tuple));
        options.authentication = segment.options.authentication;
        let marks = offered_marks(segment.options.timestamps, self.timestamp_offset(&segment.tuple));
        let flags = TCP_SYN | if marks { TCP_ECE | TCP_CWR } else { 0 };
        let header = [0; size_of::<TcpHeader>()];
        let seq = segment.seq.wrapping_sub(1);
        let syn = Segment { seq, flags, len: 0, options, header, ..*segment };
        let Some(i) = self.begin_child(cx, listener, &syn) else {
            return true;
        };
        let known = self.routes.get(cx.now, (segment.tuple.local, segment.tuple.remote));
        let mut c = self.connection(i);
        c.block.iss = segment.ack.wrapping_sub(1);
        c.block.mss = c.block.mss.min(c.cold.peer_mss);
        match known {
            Some(path) => c.set_path(path),
            None => c.mark(due::ROUTE),
        }
        let generation = c.block.generation;
        self.receive_in_syn_received(cx, i, segment);
        let c = self.view(i);
        if c.is_use(generation) && c.block.state() == State::SynReceived {
            // Not accepted after all; nothing is retransmitted for it.
            self.discard_embryonic(cx, i);
        }
        self.connection(i).rearm();
        true
    }

    /// A handshake under way got an acknowledgment of another initial sequence number: perhaps of a cookie that was sent
    /// before there was room. True if so; the cookie's connection has taken its place.
    pub(super) fn replace_by_cookie(&mut self, cx: &Context, i: u32, segment: &Segment) -> bool {
        let block = self.view(i).block;
        let replaceable = block.has(bit::PASSIVE) && block.slot == NONE && cx.now <= self.cookies.until;
        if !replaceable || self.read_cookie(cx.now, segment).is_none() {
            return false;
        }
        self.discard_embryonic(cx, i);
        self.receive_cookie(cx, segment)
    }
}

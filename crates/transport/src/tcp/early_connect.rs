//! TCP Fast Open, the client's side (RFC 7413 §4.2.1): a SYN that carries a server's cookie carries the first data, too.
//!
//! The data in the SYN count as sent but not acknowledged, `snd_nxt` bytes from the beginning of the ring, as after the
//! handshake: so a successor understands whatever the SYN-ACK acknowledges of them. Only the first SYN has the option and
//! data.

use super::asked::Request;
use super::block::{MSS_DEFAULT, State, Tuple, bit};
use super::connection::Connection;
use super::cookie_cache::Offer;
use super::counters::Counter;
use super::emit::Outgoing;
use super::engine::Tcp;
use super::fast_open::{Cookie, FastOpen};
use super::route::path_mss;
use super::segment::Segment;
use crate::edge::Out;
use eft_base::errno::{EAGAIN, EINPROGRESS, EOPNOTSUPP};
use eft_base::{Instant, WireAddress};
use eft_channel::socket::{Opt, early};
use eft_component::{Context, Outbox};

/// Bytes of options in a header (RFC 9293 §3.1).
const OPTIONS_MAX: u64 = 40;

impl Connection<'_> {
    /// Which kind of Fast Open the application asks for, one of [`early`].
    pub(super) fn early_wish(&self) -> u32 {
        self.live.page.as_ref().map_or(early::NONE, |page| page.option(Opt::FastOpenConnect))
    }

    /// Whether the data in the ring must not be read yet: the application was told how much of them was taken, and has not
    /// cleared the option.
    pub(super) fn withholds(&self) -> bool {
        match self.early_wish() {
            early::DATA => self.block.snd_end == 0,
            // It takes back what was not taken.
            early::FITTING => true,
            _ => false,
        }
    }

    /// Takes the data that the application put in before it connected, at most `most` bytes; none if the page is invalid.
    fn take_early_data(&mut self, most: u64) {
        if let Some(page) = &self.live.page
            && page.send_end() <= page.send_len() as u64
        {
            self.block.snd_end = page.send_end().min(most);
        }
    }

    /// How much of a SYN's data the SYN-ACK acknowledges. `None`: it acknowledges data that were not sent, or not the SYN.
    pub(super) fn acknowledged_of_syn(&self, segment: &Segment) -> Option<u64> {
        let acknowledged = self.block.acknowledged_offset(segment.ack);
        let sent = 0..=self.block.snd_nxt as i64;
        sent.contains(&acknowledged).then_some(acknowledged as u64)
    }

    /// The handshake is done: the SYN's data that arrived are acknowledged, the rest is retransmitted at once (RFC 7413
    /// §4.2.1).
    pub(super) fn settle_early_data(&mut self, cx: &Context, acknowledged: u64) {
        let (block, live) = (&mut self.block, &mut *self.live);
        block.clear(bit::COOKIE);
        if block.snd_nxt == 0 {
            return;
        }
        block.snd_una = acknowledged;
        if acknowledged > 0 {
            cx.count(Counter::FastOpenTaken);
        }
        if acknowledged == block.snd_nxt {
            block.set(bit::SYN_DATA);
        }
        if acknowledged < block.snd_nxt {
            live.recovery.lose_all(acknowledged, block.snd_nxt);
        }
        self.release_ring();
    }
}

impl Tcp {
    /// An errno if a connect need not, or cannot, begin yet; else 0.
    pub(super) fn delay_connect(&mut self, now: Instant, i: u32, server: WireAddress) -> i32 {
        let wish = self.connection(i).early_wish();
        let known = matches!(self.early_offer(now, i, server), Offer::Data { .. });
        match wish {
            early::DATA | early::FITTING if !self.fast_open.has(FastOpen::CLIENT) => EOPNOTSUPP,
            early::DEFER if known => EAGAIN,
            _ => 0,
        }
    }

    /// What a SYN to `server` may carry.
    fn early_offer(&self, now: Instant, i: u32, server: WireAddress) -> Offer {
        match self.cookie_cache.offer(now, server) {
            _ if !self.fast_open.has(FastOpen::CLIENT) => Offer::Nothing,
            // Beside a signature there is no room for a cookie.
            _ if !self.keys_for(i, server).are_none() => Offer::Nothing,
            Offer::Data { mss, .. } | Offer::Ask { mss, .. }
                if self.fast_open.has(FastOpen::CLIENT_NO_COOKIE) =>
            {
                Offer::Data { cookie: None, mss }
            }
            offer => offer,
        }
    }

    /// Takes the data that a new connect may send. Returns the errno of its answer: 0, or one that says that no data were
    /// taken.
    pub(super) fn begin_early(&mut self, now: Instant, i: u32) -> i32 {
        let offer = self.early_offer(now, i, self.view(i).block.tuple.remote);
        let wish = self.connection(i).early_wish();
        if wish == early::NONE {
            return 0;
        }
        let room = self.early_room(i, offer);
        let mut c = self.connection(i);
        if matches!(offer, Offer::Data { cookie: Some(_), .. } | Offer::Ask { .. }) {
            c.block.set(bit::COOKIE);
        }
        match (wish, offer) {
            (early::DATA, Offer::Data { .. }) => c.take_early_data(u64::MAX),
            (early::FITTING, Offer::Data { .. }) => c.take_early_data(room),
            _ => {}
        }
        self.answer_begun(i)
    }

    /// The answer to a request for a connect that has begun: an errno if no data were taken that might have been.
    pub(super) fn answer_begun(&mut self, i: u32) -> i32 {
        let c = self.connection(i);
        let wishes = matches!(c.early_wish(), early::DATA | early::FITTING);
        if wishes && c.block.snd_end == 0 { EINPROGRESS } else { 0 }
    }

    /// The cookie in the option of a SYN or SYN-ACK.
    pub(super) fn syn_cookie(&self, now: Instant, i: u32) -> Option<Cookie> {
        let block = self.view(i).block;
        if !block.has(bit::COOKIE) {
            return None;
        }
        match block.state() {
            State::SynSent if self.may_carry(i) => match self.early_offer(now, i, block.tuple.remote) {
                Offer::Data { cookie, .. } => cookie,
                Offer::Ask { experimental, .. } => Some(Cookie::REQUEST.in_option(experimental)),
                Offer::Nothing => None,
            },
            State::SynSent => None,
            // A simultaneous open (RFC 9293 §3.5) is not begun early.
            _ if !block.has(bit::PASSIVE) => None,
            _ => {
                let Tuple { local, remote, .. } = block.tuple;
                let cookie = self.keys_of(self.listener_of(i), now).make(remote, local);
                Some(cookie.in_option(block.has(bit::COOKIE_EXPERIMENTAL)))
            }
        }
    }

    /// Whether a SYN may carry the option and data: only the first does. Later ones go without, since no answer came,
    /// perhaps because of them (RFC 7413 §4.2.1).
    fn may_carry(&self, i: u32) -> bool {
        let block = self.view(i).block;
        block.backoff == 0 && block.snd_nxt == 0
    }

    /// How much data a SYN has room for (RFC 7413 §4.2.1: by the MSS that the server announced last). As on Linux, there is
    /// room left for all options that a header can have.
    fn early_room(&self, i: u32, offer: Offer) -> u64 {
        let (block, cold) = (self.view(i).block, self.view(i).cold);
        let Offer::Data { mss, .. } = offer else {
            return 0;
        };
        let most = path_mss(block, cold.path_mtu).min(mss).min(self.wished_mss(i));
        (most as u64).saturating_sub(OPTIONS_MAX)
    }

    /// How much data goes with the SYN that is due.
    pub(super) fn early_len(&self, now: Instant, i: u32) -> u64 {
        let block = self.view(i).block;
        if block.state() != State::SynSent || !self.may_carry(i) {
            return 0;
        }
        block.snd_end.min(self.early_room(i, self.early_offer(now, i, block.tuple.remote)))
    }

    /// Sends a SYN with the first `len` bytes of the ring. False, and nothing happens, without room.
    pub(super) fn transmit_early(
        &mut self,
        cx: &Context,
        out: &mut Outbox<Out>,
        i: u32,
        syn: Outgoing,
        len: u64,
    ) -> bool {
        let c = self.connection(i);
        let hop = c.hop_options();
        let Connection { block, live, .. } = c;
        let Some(page) = &live.page else {
            return false;
        };
        let payload = page.send_refs(live.pool, block.slot, 0, len as usize);
        let (generation, group) = (block.generation, live.in_flight.add(0, page.send_len()));
        let segment = Outgoing { payload, hop, ..syn };
        let sent = self.transmit(cx, out, &segment, |descriptor| Request::Data {
            block: i,
            generation,
            group,
            end: len,
            descriptor,
        });
        let Connection { mut block, live, .. } = self.connection(i);
        if !sent {
            live.in_flight.remove(group);
            return false;
        }
        block.snd_nxt = len;
        live.early_end = Some(len);
        live.statistics.on_sent(cx.now, len, 1, false);
        cx.add(Counter::SentBytes, len);
        cx.count(Counter::FastOpenSent);
        true
    }

    /// Learns about the server from a SYN-ACK, for later connections.
    pub(super) fn learn_of_server(&mut self, cx: &Context, i: u32, answer: &Segment, acknowledged: u64) {
        let (block, cold) = (self.view(i).block, self.view(i).cold);
        let (asked, sent) = (block.has(bit::COOKIE), block.snd_nxt);
        if !asked && sent == 0 {
            return;
        }
        let server = block.tuple.remote;
        let mss = answer.options.mss.unwrap_or(MSS_DEFAULT);
        // An unsolicited cookie is ignored.
        let told = answer.options.fast_open.filter(|cookie| asked && !cookie.is_request());
        if let Some(cookie) = told {
            self.cookie_cache.learn(cx.now, server, cookie, mss);
        } else if acknowledged > 0 {
            self.cookie_cache.succeed(cx.now, server, mss);
        } else if sent > 0 || cold.retransmits > 0 {
            cx.count(Counter::FastOpenFailed);
            self.cookie_cache.fail(cx.now, server, mss);
        } else {
            self.cookie_cache.refuse(cx.now, server, mss);
        }
    }
}

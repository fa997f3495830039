//! Passive open (RFC 9293 §3.10.7.2) and the accept queue.
//!
//! A connection gets a socket slot, of the listener's domain, only when its handshake is done, so a
//! flood of SYNs takes blocks (bounded per listener) but no domain's memory. The accept queue is the
//! listener's receive ring: each record's place is durable in its connection's block, so after a
//! crash the same record is written to the same place again.
//!
//! A worker may die between taking a record and attaching the connection, while its domain lives on. So every
//! connection in the queue is checked periodically: one that was taken at one check and is not attached at the next is
//! reset. A worker that was only stopped for so long finds that the connection was reset, as if its peer had given up.

use super::acknowledge::promisable;
use super::block::{NONE, State, bit};
use super::connect::scale_for;
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::segment::Segment;
use crate::edge::Out;
use crate::timers::NEVER;
use core::time::Duration;
use eft_base::Instant;
use eft_base::errno::{ECONNABORTED, EINVAL};
use eft_base::wire::{TCP_FIN, TCP_RST};
use eft_channel::socket::{AcceptRecord, Opt, wish};
use eft_component::{Context, Outbox};

pub(super) const RECORD_LEN: u64 = size_of::<AcceptRecord>() as u64;
/// How often an unattached connection is checked. Between taking and attaching lie two messages; a worker that needs
/// longer than this is dead or stopped.
const ATTACH_PATIENCE: Duration = Duration::from_secs(10);
/// Handshakes under way per listener: as many as its backlog, but at least this many.
const EMBRYONIC_MIN: u32 = 128;

impl Connection<'_> {
    /// The connection is in the accept queue, from now on or again: starts the checks.
    pub(super) fn expect_attach(&mut self, now: Instant) {
        self.live.attach_at = now + ATTACH_PATIENCE;
        self.rearm();
    }

    /// For a listener: connections in the accept queue that the application has not taken.
    pub(super) fn waiting(&mut self) -> u64 {
        if let Some(page) = &self.live.page {
            let taken = page.receive_taken();
            if taken > self.block.rcv_taken && taken <= self.block.rcv_nxt {
                self.block.rcv_taken = taken;
            }
        }
        (self.block.rcv_nxt - self.block.rcv_taken).div_ceil(RECORD_LEN)
    }

    /// For a listener.
    fn queue_is_full(&mut self) -> bool {
        let ring = self.live.page.as_ref().map_or(0, |p| p.receive_len() as u64 / RECORD_LEN);
        // As everywhere, a backlog of n lets n + 1 wait.
        let limit = (self.cold.backlog as u64 + 1).min(ring);
        self.waiting() >= limit
    }

    /// For a listener: one handshake under way less.
    fn forget_embryonic(&mut self) {
        self.live.embryonic = self.live.embryonic.saturating_sub(1);
    }

    /// For a listener: a record was written at the end of its queue.
    fn lengthen_queue(&mut self) {
        self.block.rcv_nxt += RECORD_LEN;
        if let Some(page) = &self.live.page {
            page.set_receive_end(self.block.rcv_nxt);
        }
        self.mark_input(due::READABLE);
    }

    /// The connection's record in the accept queue.
    fn record(&self) -> AcceptRecord {
        AcceptRecord {
            slot: self.block.slot,
            incarnation: self.cold.incarnation,
            remote: self.block.tuple.remote,
            local: self.block.tuple.local,
            remote_port: self.block.tuple.remote_port,
            local_port: self.block.tuple.local_port,
            reserved: [0; 20],
        }
    }

    /// Takes what a SYN or SYN-ACK says about the peer (RFC 9293 §3.10.7, RFC 7323, RFC 2018).
    pub(super) fn take_syn(&mut self, now: Instant, segment: &Segment, wished_mss: u16) {
        let options = &segment.options;
        let block = &mut *self.block;
        block.irs = segment.seq;
        block.rcv_nxt = 0;
        block.rcv_acked = 0;
        match options.scale {
            Some(scale) => {
                block.send_scale = scale;
                block.set(bit::SCALED);
            }
            None => {
                block.send_scale = 0;
                block.receive_scale = 0;
            }
        }
        if options.sack_permitted {
            block.set(bit::SACK);
        }
        if let Some((value, _)) = options.timestamps {
            block.set(bit::TIMESTAMPS);
            block.ts_recent = value;
            block.ts_recent_at = now.as_nanos();
        }
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        block.snd_edge = block.snd_una + segment.window as u64;
        block.snd_wl1 = 0;
        block.snd_wl2 = block.snd_una;
        self.cold.peer_mss = options.mss.unwrap_or(super::block::MSS_DEFAULT).max(64).min(wished_mss);
        self.cold.snd_wnd_max = segment.window as u32;
        self.make_room_for_signatures();
    }

    /// The application took this connection and has a descriptor for it.
    fn attach(&mut self) {
        self.block.set(bit::ATTACHED);
        self.block.clear(bit::QUEUED | bit::TAKEN);
    }

    /// A process may have taken the connection without a descriptor; its page says so.
    pub(super) fn look_for_holder(&mut self) {
        let is_held = || self.live.page.as_ref().is_some_and(|page| page.wishes() & wish::HELD != 0);
        if self.block.has(bit::QUEUED) && is_held() {
            self.attach();
        }
    }
}

impl Tcp {
    /// A SYN for a listener.
    pub(super) fn receive_syn(
        &mut self,
        cx: &Context,
        listener: u32,
        segment: &Segment,
        out: &mut Outbox<Out>,
    ) {
        if segment.has(TCP_RST | TCP_FIN) {
            cx.count(Counter::DropMalformed);
            return;
        }
        if let Some(refusal) = self.refuse_child(listener) {
            return cx.count(refusal);
        }
        let parent = self.view(listener);
        let limit = parent.cold.backlog.max(EMBRYONIC_MIN);
        if parent.live.embryonic >= limit || self.blocks_are_scarce() {
            return self.send_cookie(cx, listener, segment, out);
        }
        if let Some(i) = self.begin_child(cx, listener, segment) {
            self.connection(i).mark(due::ROUTE);
            self.open_early(cx, listener, i, segment);
        }
    }

    /// Why a listener cannot have another connection now, as a counter. If the handshake were finished, the peer would
    /// assume that its data will be read.
    pub(super) fn refuse_child(&mut self, listener: u32) -> Option<Counter> {
        let mut parent = self.connection(listener);
        if parent.queue_is_full() {
            return Some(Counter::DropSynBacklog);
        }
        let domain = parent.block.domain;
        let refused = self.domains.may_open(domain, self.config.sockets_per_domain).is_err();
        refused.then_some(Counter::DropNoSlot)
    }

    /// Length of a listener's receive ring; its connections' rings will be as long.
    pub(super) fn ring_of(&self, listener: u32) -> usize {
        self.view(listener).live.page.as_ref().map_or(65535, |p| p.receive_len())
    }

    /// The window of a SYN-ACK (RFC 7323 §2.2): no more than the connection will promise once it has its page, since a
    /// window that was offered is not taken back, and a sender waits for half of the largest one that it saw.
    pub(super) fn first_window(&self, listener: u32, scale: u8) -> u64 {
        let page = self.view(listener).live.page.as_ref();
        page.map_or(65535 - (1 << scale), |page| promisable(page, scale)).min(65535)
    }

    /// Begins a connection from its SYN.
    pub(super) fn begin_child(&mut self, cx: &Context, listener: u32, segment: &Segment) -> Option<u32> {
        let scale = scale_for(self.ring_of(listener));
        let window = self.first_window(listener, scale);
        let parent = self.view(listener).block;
        let (domain, generation) = (parent.domain, parent.generation);
        let reuse = parent.flags & bit::REUSE_ADDRESS;
        let i = self.allocate(cx)?;
        let tuple = segment.tuple;
        let iss = self.initial_sequence(cx.now, &tuple);
        let ts_offset = self.timestamp_offset(&tuple);
        let mut embryo = self.connection(i);
        embryo.cold.listener = listener;
        embryo.cold.listener_generation = generation;
        let block = &mut *embryo.block;
        block.set_state(State::SynReceived);
        block.set(bit::PASSIVE | bit::PORT_USER | reuse);
        block.domain = domain;
        block.tuple = tuple;
        block.iss = iss;
        block.ts_offset = ts_offset;
        block.receive_scale = scale;
        let (wished_mss, ecn) = (self.wished_mss(i), self.ecn);
        let keys = self.keys_for(listener, tuple.remote);
        let mut embryo = self.connection(i);
        embryo.sign(keys);
        segment.options.authentication.iter().for_each(|told| embryo.answer_with_keys(told));
        embryo.take_syn(cx.now, segment, wished_mss);
        embryo.agree_on_marks(ecn, segment);
        embryo.block.rcv_adv = window;
        self.ports.add_user(tuple.local, tuple.local_port, reuse != 0);
        self.table.insert(tuple, i);
        self.connection(listener).live.embryonic += 1;
        Some(i)
    }

    pub(super) fn is_plausible_peer(&self, segment: &Segment) -> bool {
        let remote = core::net::IpAddr::from(segment.tuple.remote);
        let local = core::net::IpAddr::from(segment.tuple.local);
        !remote.is_unspecified()
            && !remote.is_multicast()
            && !local.is_multicast()
            && !self.addresses.is_broadcast(segment.tuple.remote)
            && !self.addresses.is_broadcast(segment.tuple.local)
            && !(segment.tuple.remote == segment.tuple.local
                && segment.tuple.remote_port == segment.tuple.local_port)
    }

    /// The listener of a connection, if it still listens.
    pub(super) fn listener_of(&self, i: u32) -> Option<u32> {
        let cold = self.view(i).cold;
        if cold.listener == NONE || cold.listener as usize >= self.blocks.len() {
            return None;
        }
        let listener = self.view(cold.listener);
        (listener.is_use(cold.listener_generation) && listener.block.state() == State::Listen)
            .then_some(cold.listener)
    }

    /// The handshake of a passive connection is done: gives it a slot and queues it for accept. False if there is no
    /// room now; the peer will try again.
    pub(super) fn promote(&mut self, cx: &Context, i: u32) -> bool {
        let Some(listener) = self.listener_of(i) else {
            // It was closed just before. The peer takes itself for connected, and may say nothing more: Linux resets it, too.
            self.say_reset(i);
            self.discard_embryonic(cx, i);
            return false;
        };
        if self.connection(listener).queue_is_full() {
            cx.count(Counter::DropAcceptQueue);
            return false;
        }
        let domain = self.view(i).block.domain;
        let limit = self.config.sockets_per_domain;
        if self.domains.may_open(domain, limit).is_err() || !self.give_slot(i, domain) {
            cx.count(Counter::DropNoSlot);
            return false;
        }
        self.inherit_options(i, listener);
        self.connection(listener).forget_embryonic();
        let place = self.view(listener).block.rcv_nxt;
        let mut child = self.connection(i);
        child.block.set(bit::QUEUED);
        child.cold.accept_at = place;
        self.write_record(i, listener);
        self.connection(listener).lengthen_queue();
        self.connection(i).expect_attach(cx.now);
        cx.count(Counter::Accepted);
        true
    }

    /// Checks whether a connection was taken from the accept queue and forgotten. True if it was; then it has been
    /// reset.
    pub(super) fn expire_attach(&mut self, cx: &Context, i: u32) -> bool {
        let mut c = self.connection(i);
        c.live.attach_at = NEVER;
        c.look_for_holder();
        if !c.block.has(bit::QUEUED) {
            return false;
        }
        if !c.block.has(bit::TAKEN) {
            let is_taken = self.is_taken(i);
            let mut c = self.connection(i);
            if is_taken {
                c.block.set(bit::TAKEN);
            }
            c.expect_attach(cx.now);
            return false;
        }
        cx.count(Counter::Abandoned);
        self.abandon(cx, i, ECONNABORTED);
        true
    }

    /// Whether a connection's record was taken from its listener's ring. Connections that were in the ring of a closed
    /// listener were reset with it.
    pub(super) fn is_taken(&mut self, i: u32) -> bool {
        let Some(listener) = self.listener_of(i) else {
            return true;
        };
        let place = self.view(i).cold.accept_at;
        let mut listener = self.connection(listener);
        listener.waiting();
        place < listener.block.rcv_taken
    }

    /// Ends a connection that no application has or will have.
    pub(super) fn abandon(&mut self, cx: &Context, i: u32, errno: i32) {
        let mut c = self.connection(i);
        c.block.set(bit::ORPHAN);
        c.block.clear(bit::QUEUED);
        match c.block.state() {
            State::Closed => self.release(cx, i),
            _ => self.reset(cx, i, errno),
        }
    }

    pub(super) fn inherit_options(&mut self, i: u32, listener: u32) {
        let keys = self.own_keys(i);
        let (child, parent) = (self.view(i), self.view(listener));
        if let (Some(page), Some(parent)) = (&child.live.page, &parent.live.page) {
            for option in Opt::INHERITED {
                page.set_option(*option, parent.option(*option));
            }
            if !keys.is_empty() {
                page.set_signature_keys(keys);
            }
            let wishes = parent.authentication_wishes().inherited();
            if wishes != Default::default() {
                page.set_authentication_wishes(&wishes);
            }
            page.set_local(child.block.tuple.local_endpoint());
            page.set_remote(child.block.tuple.remote_endpoint());
        }
    }

    /// Writes a connection's record to its place in the listener's ring.
    pub(super) fn write_record(&mut self, i: u32, listener: u32) {
        let child = self.connection(i);
        let (place, record) = (child.cold.accept_at, child.record());
        if let Some(ring) = &self.connection(listener).live.page {
            ring.put_record(place, zerocopy::transmute!(record));
        }
    }

    /// The application took a connection and has a descriptor for it.
    pub(super) fn request_attached(&mut self, i: u32) -> i32 {
        let mut c = self.connection(i);
        if !c.block.has(bit::PASSIVE) {
            return EINVAL;
        }
        c.attach();
        if let Some(listener) = self.listener_of(i) {
            self.connection(listener).waiting();
        }
        self.connection(i).ring_socket();
        0
    }

    /// Gives up an embryonic connection.
    pub(super) fn discard_embryonic(&mut self, cx: &Context, i: u32) {
        if let Some(listener) = self.listener_of(i) {
            self.connection(listener).forget_embryonic();
        }
        self.release(cx, i);
    }
}

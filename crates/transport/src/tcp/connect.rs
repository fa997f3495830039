//! Active open (RFC 9293 §3.10.1, §3.10.7.3), initial sequence numbers (RFC 6528), ephemeral ports
//! (RFC 6056).

use super::asked::Path;
use super::block::{Block, State, Tuple, bit};
use super::clocks::Timestamps;
use super::congestion::{Congestion, chosen};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::emit::Outgoing;
use super::engine::Tcp;
use super::fast_open::Cookie;
use super::live::due;
use super::options::Builder;
use super::ports::{EPHEMERAL_COUNT, EPHEMERAL_FIRST};
use crate::addresses::is_unspecified;
use crate::edge::Out;
use crate::requests::Transport as _;
use crate::timers::NEVER;
use core::net::IpAddr;
use eft_base::errno::{
    EADDRNOTAVAIL, EALREADY, ECONNREFUSED, EINVAL, EISCONN, EKEYREJECTED, ENETUNREACH, EXDEV,
};
use eft_base::{Instant, RequestId, WireAddress};
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};

impl Connection<'_> {
    /// The handshake is done.
    pub(super) fn establish(&mut self, cx: &Context) {
        let (block, live) = (&mut self.block, &mut *self.live);
        if let Some((_, at)) = live.timing.take()
            && block.backoff == 0
        {
            let rtt = cx.now.saturating_since(at);
            block.rtt.sample(rtt.as_micros() as u32);
        }
        let cwnd = self.view().initial_window();
        let (block, live) = (&mut self.block, &mut *self.live);
        let mss = block.segment_size();
        let algorithm = block.congestion.algorithm;
        block.congestion = Congestion { algorithm, cwnd, ..Congestion::new(mss) };
        if block.backoff > 0 {
            // RFC 6298 §5.7, RFC 5681 §3.1: a lost SYN is a sign of congestion.
            block.congestion.cwnd = mss;
            block.rtt.distrust_handshake();
        }
        block.backoff = 0;
        block.set_state(State::Established);
        live.open = true;
        block.set(bit::CONNECTED);
        live.retransmit_at = NEVER;
        live.last_heard = cx.now;
        if !block.has(bit::UNPROVEN) {
            live.statistics.on_established(cx.now);
        }
        live.due &= !due::SYN;
        self.take_options();
        self.refresh_flags();
        self.mark(due::SEND | due::WRITABLE | due::INFO);
    }

    /// The window shift that makes the whole ring expressible (RFC 7323 §2.3).
    pub(super) fn set_receive_scale(&mut self) {
        let len = self.live.page.as_ref().map_or(65535, |p| p.receive_len());
        self.block.receive_scale = scale_for(len);
    }

    /// Takes the options that matter from the start.
    pub(super) fn take_options(&mut self) {
        if let Some(page) = &self.live.page {
            let algorithm = chosen(page.option(Opt::Congestion), self.live.algorithm);
            if self.block.congestion.algorithm != algorithm {
                self.block.congestion.choose(algorithm);
                self.live.bbr = None;
            }
        }
        self.take_signature_keys();
        self.take_pacing_limit();
    }
}

impl Tcp {
    /// `Connect` of sockets. A repeated request for an attempt under way succeeds, as sockets may have to resubmit it.
    pub(super) fn request_connect(
        &mut self,
        cx: &Context,
        request: RequestId,
        i: u32,
        address: WireAddress,
        port: u16,
        out: &mut Outbox<Out>,
    ) {
        let View { block, live, .. } = self.view(i);
        if live.connect_request == Some(request) {
            // It is repeated while the route is asked for.
            return;
        }
        let begun = live.begun_request == Some(request);
        let same = block.tuple.remote == address && block.tuple.remote_port == port;
        let errno = match block.state() {
            // It is repeated when the connection has ended already: the page tells how.
            State::Closed if begun => self.answer_begun(i),
            State::Closed if block.has(bit::DEAD) && block.has(bit::CONNECTED) => EISCONN,
            // A listener of an earlier stack, whose ring of records is still in use.
            State::Closed if block.rcv_nxt != 0 => EINVAL,
            State::Closed if self.is_elsewhere(block, (address, port)) => EXDEV,
            State::Closed => match refuse_destination(self, address, port) {
                0 => match self.delay_connect(cx.now, i, address) {
                    0 => return self.prepare_connect(i, request, address, port),
                    errno => errno,
                },
                errno => errno,
            },
            State::Listen => EISCONN,
            _ if same => self.answer_begun(i),
            State::SynSent => EALREADY,
            _ => EISCONN,
        };
        self.reply(out, request, errno, self.socket(i), Some(i));
        if errno == ENETUNREACH || errno == EADDRNOTAVAIL {
            cx.count(Counter::FailedConnects);
        }
    }

    /// Whether segments of a connection from where the socket is bound to this peer go to another instance.
    fn is_elsewhere(&self, block: &Block, peer: (WireAddress, u16)) -> bool {
        block.has(bit::BOUND) && !self.ports.share.has_connection(block.tuple.local_port, peer)
    }

    /// Notes the destination and asks for the route; the answer to `Connect` waits for it.
    fn prepare_connect(&mut self, i: u32, request: RequestId, address: WireAddress, port: u16) {
        let mut c = self.connection(i);
        c.block.clear(bit::DEAD | bit::FAILED);
        c.cold.open_request = 0;
        // Data that an earlier attempt sent with its SYN does not count for this one.
        (c.block.snd_nxt, c.block.snd_end) = (0, 0);
        c.block.tuple.remote = address;
        c.block.tuple.remote_port = port;
        c.live.connect_request = Some(request);
        c.live.route_request = None;
        c.mark(due::ROUTE);
    }

    /// The route is known, or there is none.
    pub(super) fn begin_connect(
        &mut self,
        cx: &Context,
        i: u32,
        request: RequestId,
        answer: Result<Path, i32>,
        out: &mut Outbox<Out>,
    ) {
        let socket = self.socket(i);
        let begun = answer.and_then(|path| self.open_actively(cx, i, path));
        let errno = begun.unwrap_or_else(|errno| {
            cx.count(Counter::FailedConnects);
            errno
        });
        self.connection(i).live.begun_request = begun.is_ok().then_some(request);
        self.reply(out, request, errno, socket, Some(i));
    }

    /// Returns the errno of the answer to `Connect`: 0, or one that says that the attempt has begun without the data in the
    /// ring.
    fn open_actively(&mut self, cx: &Context, i: u32, path: Path) -> Result<i32, i32> {
        let mut tuple = self.view(i).block.tuple;
        if is_unspecified(tuple.local) {
            tuple.local = path.source;
        }
        let keys = self.keys_for(i, tuple.remote);
        if !keys.are_ao() && self.connection(i).wishes().required {
            return Err(EKEYREJECTED);
        }
        if self.view(i).block.has(bit::BOUND) {
            if !self.vacate(cx, &tuple) {
                return Err(EADDRNOTAVAIL);
            }
        } else {
            tuple.local_port = self.choose_port(cx, &tuple).ok_or(EADDRNOTAVAIL)?;
            self.ports.add_user(tuple.local, tuple.local_port, true);
            // The socket shares its ephemeral port with connections to other destinations.
            self.connection(i).block.set(bit::PORT_USER | bit::REUSE_ADDRESS);
        }
        self.table.insert(tuple, i);
        let iss = self.initial_sequence(cx.now, &tuple);
        let ts_offset = self.timestamp_offset(&tuple);
        let ecn = self.ecn;
        self.is_keyed |= !keys.are_none();
        let mut c = self.connection(i);
        c.sign(keys);
        c.choose_keys();
        c.block.tuple = tuple;
        c.block.iss = iss;
        c.block.ts_offset = ts_offset;
        c.block.set_state(State::SynSent);
        c.set_path(path);
        c.set_receive_scale();
        c.take_options();
        c.ask_for_marks(ecn);
        cx.count(Counter::Outbound);
        if let Some(page) = &c.live.page {
            page.set_local(tuple.local_endpoint());
            page.set_remote(tuple.remote_endpoint());
        }
        c.refresh_flags();
        c.mark(due::SYN);
        Ok(self.begin_early(cx.now, i))
    }

    /// Sends the SYN, or the SYN-ACK, that is due (§3.5; options as in RFC 7323 and RFC 2018), with the data that a SYN may
    /// carry (RFC 7413 §4.2.1).
    pub(super) fn send_syn(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        if !self.has_room(out) {
            return;
        }
        let (own_mss, cookie, clocks) = (self.own_mss(i), self.syn_cookie(cx.now, i), self.clocks);
        let mut c = self.connection(i);
        let flags = c.syn_flags();
        if !c.is_unproven() {
            c.promise_first_window();
        }
        let Connection { block, .. } = c;
        let active = block.state() == State::SynSent;
        let crowded = block.has(bit::SIGNED) && !block.has(bit::AUTHENTICATED);
        let clocks = if crowded { Timestamps::Off } else { clocks };
        let options = syn_options(&block, active.then_some(clocks), own_mss, cx.now, cookie);
        let window = (block.rcv_adv - block.rcv_nxt).min(65535) as u16;
        let ack = if active { 0 } else { block.acknowledgment() };
        let segment = Outgoing::bare(block.tuple, block.iss, ack, flags, window, options.bytes());
        let sent = match self.early_len(cx.now, i) {
            0 => self.transmit_bare(cx, out, i, segment),
            len => self.transmit_early(cx, out, i, segment, len),
        };
        if !sent {
            return;
        }
        let mut c = self.connection(i);
        c.on_acknowledged();
        let Connection { block, live, .. } = c;
        live.due &= !due::SYN;
        live.timing = (block.backoff == 0).then_some((0, cx.now));
        live.retransmit_at = cx.now + block.rtt.backed_off(block.backoff as u32);
        live.last_sent = cx.now;
        live.stuck_since = cx.now;
    }

    /// A port such that the connection is unique: a keyed hash of the destination as a start, and a
    /// counter (RFC 6056 §3.3.3).
    fn choose_port(&mut self, cx: &Context, tuple: &Tuple) -> Option<u16> {
        let start =
            self.key.hash(b'P', &(tuple.local, tuple.remote, tuple.remote_port)) as u32 % EPHEMERAL_COUNT;
        for _ in 0..EPHEMERAL_COUNT {
            self.port_turn = self.port_turn.wrapping_add(1);
            let n = (start + self.port_turn % EPHEMERAL_COUNT) % EPHEMERAL_COUNT;
            let port = EPHEMERAL_FIRST + n as u16;
            let candidate = Tuple { local_port: port, ..*tuple };
            if self.ports.is_unbound(port) && self.vacate(cx, &candidate) {
                return Some(port);
            }
        }
        None
    }

    /// A port that nothing uses, for a bind to port 0.
    pub(super) fn choose_unused_port(&mut self, cx: &mut Context) -> Option<u16> {
        let start = cx.random.below(EPHEMERAL_COUNT as u64) as u32;
        (0..EPHEMERAL_COUNT)
            .map(|n| EPHEMERAL_FIRST + ((start + n) % EPHEMERAL_COUNT) as u16)
            .find(|port| self.ports.is_unused(*port))
    }

    /// RFC 9293 §3.4.1, RFC 6528 §3: a clock of 4 µs plus a keyed hash of the connection.
    pub(super) fn initial_sequence(&self, now: Instant, tuple: &Tuple) -> u32 {
        let clock = (now.as_micros() / 4) as u32;
        clock.wrapping_add(self.key.hash(b'I', &tuple.parts()) as u32)
    }

    /// One clock per pair of hosts, so that timestamps of successive connections rise.
    pub(super) fn timestamp_offset(&self, tuple: &Tuple) -> u32 {
        self.key.hash(b'T', &(tuple.local, tuple.remote)) as u32
    }
}

/// The options of a SYN, or of the SYN-ACK that answers what was offered (RFC 9293 §3.7.1, RFC 7323, RFC 2018).
/// Of a SYN `offer` says whether timestamps are among them.
fn syn_options(
    block: &Block,
    offer: Option<Timestamps>,
    own_mss: u16,
    now: Instant,
    cookie: Option<Cookie>,
) -> Builder {
    let active = offer.is_some();
    let mut options = Builder::beside(block.signature_len());
    options.mss(own_mss);
    let clocks = (block.timestamp(now), block.ts_recent);
    match (active || block.has(bit::SACK), offer == Some(Timestamps::On) || block.has(bit::TIMESTAMPS)) {
        (true, true) => options.sack_permitted_and_timestamps(clocks.0, clocks.1),
        (true, false) => options.sack_permitted(),
        (false, true) => options.timestamps(clocks.0, clocks.1),
        (false, false) => {}
    }
    if active || block.has(bit::SCALED) {
        options.scale(block.receive_scale);
    }
    if let Some(cookie) = cookie {
        options.fast_open(&cookie);
    }
    // Something on the way may drop what it does not know: again it goes without (RFC 9768 §3.2.3.2.2).
    if !active && block.has(bit::ACCURATE) && block.backoff == 0 {
        options.byte_counts([0; 3], 0, usize::MAX);
    }
    options
}

/// Smallest shift with which 16 bits cover a ring of `len` less the shift's granularity.
pub(super) fn scale_for(len: usize) -> u8 {
    (0..super::options::SCALE_MAX)
        .find(|s| (len - (1 << s)) >> s <= 65535)
        .unwrap_or(super::options::SCALE_MAX)
}

/// An errno if TCP cannot reach this destination.
fn refuse_destination(tcp: &Tcp, address: WireAddress, port: u16) -> i32 {
    let ip = IpAddr::from(address);
    if ip.is_unspecified() {
        EADDRNOTAVAIL
    } else if ip.is_multicast() || tcp.addresses.is_broadcast(address) {
        ENETUNREACH
    } else if port == 0 {
        ECONNREFUSED
    } else {
        0
    }
}

#[cfg(test)]
mod tests;

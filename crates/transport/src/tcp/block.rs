//! The transmission control block (RFC 9293 §3.3.1): durable, plain, without pointers.
//!
//! Positions are offsets of the stream in 64 bits, 0 being the first byte after the SYN, so nothing
//! wraps and nothing is compared modulo 2³²; only [`Block::send_sequence`] and its like know
//! sequence numbers. A FIN takes the offset after the last byte.

pub use super::state::State;

use super::congestion::Congestion;
use super::rtt::Rtt;
use core::hash::{Hash, Hasher};
use eft_base::{DomainId, Endpoint, Instant, WireAddress};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `slot` of a block without socket page; also "none" for indices.
pub const NONE: u32 = crate::domains::NONE;
/// An offset that is never reached.
pub const NOWHERE: u64 = u64::MAX;

/// Bits of [`Block::flags`].
pub mod bit {
    /// The application has a descriptor (or had, see [`ORPHAN`]).
    pub const ATTACHED: u32 = 1;
    /// The application's last descriptor is gone.
    pub const ORPHAN: u32 = 2;
    /// Timestamps were agreed on (RFC 7323).
    pub const TIMESTAMPS: u32 = 4;
    /// SACK was agreed on.
    pub const SACK: u32 = 8;
    /// The application bound it, or it got a permanent port.
    pub const BOUND: u32 = 16;
    /// Bound to port 0: the port was chosen by us.
    pub const ANY_PORT: u32 = 32;
    pub const REUSE_ADDRESS: u32 = 64;
    pub const REUSE_PORT: u32 = 128;
    /// Came from a listener.
    pub const PASSIVE: u32 = 256;
    /// In its listener's ring.
    pub const QUEUED: u32 = 512;
    /// The connection ended; the socket is still there.
    pub const DEAD: u32 = 1024;
    /// The peer's FIN was received in order.
    pub const RECEIVED_FIN: u32 = 2048;
    /// It was established once.
    pub const CONNECTED: u32 = 4096;
    /// The destination is this host.
    pub const LOCAL: u32 = 8192;
    /// Holds a place among the users of its port (not bound itself).
    pub const PORT_USER: u32 = 16384;
    /// Only waits for its unanswered sends before its slot is free.
    pub const DRAINING: u32 = 32768;
    /// The path is known (MTU, segmentation).
    pub const ROUTED: u32 = 65536;
    /// The connection ended by an error.
    pub const FAILED: u32 = 1 << 17;
    /// Window scaling was agreed on.
    pub const SCALED: u32 = 1 << 18;
    /// Seen to be taken from its listener's ring, and not attached yet.
    pub const TAKEN: u32 = 1 << 19;
    /// ECN was agreed on (RFC 3168); in SYN-SENT: asked for.
    pub const ECN: u32 = 1 << 20;
    /// A mark came, and the peer has not confirmed our echo yet.
    pub const ECN_ECHO: u32 = 1 << 21;
    /// The peer is to be told that our window was reduced.
    pub const ECN_REDUCED: u32 = 1 << 22;
    /// The peer's packets may be marked.
    pub const ECN_SEEN: u32 = 1 << 23;
    /// Open although the peer has not acknowledged our SYN-ACK (RFC 7413 §4.2.2).
    pub const UNPROVEN: u32 = 1 << 24;
    /// The SYN-ACK carries a cookie; in SYN-SENT: the SYN carries the option.
    pub const COOKIE: u32 = 1 << 25;
    /// Data came with the SYN, or went with it and were accepted.
    pub const SYN_DATA: u32 = 1 << 26;
    /// Bound as IPV6_V6ONLY.
    pub const V6ONLY: u32 = 1 << 27;
    /// The cookie is in the experimental option (RFC 6994).
    pub const COOKIE_EXPERIMENTAL: u32 = 1 << 28;
    /// Segments are signed (RFC 2385), in both directions.
    pub const SIGNED: u32 = 1 << 29;
    /// Both bits: they are signed by TCP-AO (RFC 5925) instead. Beside a signature no option has room for a cookie.
    pub const AUTHENTICATED: u32 = SIGNED | COOKIE_EXPERIMENTAL;
    /// Accurate ECN was agreed on (RFC 9768), and [`ECN`] was not; in SYN-SENT: asked for. Then [`ECN_ECHO`], [`ECN_REDUCED`] and
    /// [`ACCURATE_AE`] are a count of marked packets.
    pub const ACCURATE: u32 = 1 << 30;
    pub const ACCURATE_AE: u32 = 1 << 31;
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Tuple {
    pub local: WireAddress,
    pub remote: WireAddress,
    pub local_port: u16,
    pub remote_port: u16,
}

/// All at once: field by field it takes as long again, for each segment that comes.
impl Hash for Tuple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
    }
}

impl Tuple {
    /// What goes into hashes that another life of tcp must find again, perhaps of another version of eft.
    pub fn parts(&self) -> (WireAddress, WireAddress, u16, u16) {
        (self.local, self.remote, self.local_port, self.remote_port)
    }

    pub fn local_endpoint(&self) -> Endpoint {
        Endpoint::new(self.local.into(), self.local_port)
    }

    pub fn remote_endpoint(&self) -> Endpoint {
        Endpoint::new(self.remote.into(), self.remote_port)
    }
}

/// One socket: a connection, a listener, or neither yet. Holds what every segment touches; the rest is in [`Cold`]
/// and, for out-of-order ranges, in [`super::reassembly`], each in a table of its own at the same index.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Block {
    /// A [`State`].
    pub state: u8,
    /// Shift of the peer's window.
    pub send_scale: u8,
    /// Shift of ours.
    pub receive_scale: u8,
    /// Expiries of the retransmission timer in a row.
    pub backoff: u8,
    pub flags: u32,
    pub domain: DomainId,
    /// Payload of a full segment before options: the smaller of the peer's MSS and the path's.
    pub mss: u16,
    pub slot: u32,
    /// Counts the uses of this block.
    pub generation: u32,
    pub iss: u32,
    pub irs: u32,
    pub tuple: Tuple,
    pub snd_una: u64,
    /// One beyond the highest offset ever sent.
    pub snd_nxt: u64,
    /// Bytes that the application has put in.
    pub snd_end: u64,
    /// Right edge of the peer's window.
    pub snd_edge: u64,
    /// Offset and acknowledgment of the last window update (SND.WL1, SND.WL2).
    pub snd_wl1: u64,
    pub snd_wl2: u64,
    /// End of the last segment sent that was not full (Nagle).
    pub snd_small: u64,
    /// Ring space given back to the application.
    pub snd_released: u64,
    /// Where the FIN lies; [`NOWHERE`] until the application is done.
    pub fin_at: u64,
    /// Bytes received in order.
    pub rcv_nxt: u64,
    /// Right edge of the window that we advertised.
    pub rcv_adv: u64,
    /// Bytes that the application has taken.
    pub rcv_taken: u64,
    /// `rcv_nxt` when we last acknowledged (RFC 7323 Last.ACK.sent).
    pub rcv_acked: u64,
    /// Where the peer's FIN lies, if it was seen.
    pub rcv_fin_at: u64,
    pub ts_recent: u32,
    pub ts_offset: u32,
    /// When `ts_recent` was taken.
    pub ts_recent_at: u64,
    pub congestion: Congestion,
    pub rtt: Rtt,
}

/// The part of a socket that is used less often.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Cold {
    /// The largest window that the peer ever offered.
    pub snd_wnd_max: u32,
    pub path_mtu: u16,
    pub peer_mss: u16,
    /// Largest payload of one `Send`.
    pub segment_max: u32,
    pub listener: u32,
    pub listener_generation: u32,
    pub backlog: u32,
    /// For a connection that came from a listener: where its record lies in the listener's ring.
    pub accept_at: u64,
    /// The request that opened the socket, for its resubmission.
    pub open_request: u64,
    /// When TIME-WAIT, or an orphan's time limit, ends.
    pub close_at: u64,
    pub retransmits: u32,
    /// Window probes or keepalive probes without answer.
    pub probes: u8,
    /// TCP-AO, 0 in arenas of releases that did not know it: SendID of the key that signs, RecvID of the key that the peer is asked
    /// for, and which of the application's changes of the two has been made.
    pub ao_current: u8,
    pub ao_next: u8,
    pub ao_changes: u8,
    /// The error that the application gets if the connection times out.
    pub soft_error: i32,
    /// Path MTU that ICMP reported; 0: none did. ip's answers about its own link do not override it.
    pub learned_mtu: u16,
    /// Segments of the initial window, as the route says; 0: those of RFC 6928, and in arenas of releases that knew none.
    pub initial_segments: u16,
    /// The incarnation of its slot, as requests and accept records name it.
    pub incarnation: u32,
    /// Where the peer's urgent byte ends ([`super::urgent`]); 0: there is none, as in arenas of releases that knew none.
    pub urgent: u32,
}

// A commit copies and sums these cache lines.
const _: () = assert!(size_of::<Block>() == 256 && size_of::<Cold>() <= 128);

impl Cold {
    /// The cold part of an unused block.
    pub fn free() -> Cold {
        Cold {
            snd_wnd_max: 0,
            path_mtu: 0,
            peer_mss: MSS_DEFAULT,
            segment_max: 0,
            listener: NONE,
            listener_generation: 0,
            backlog: 0,
            accept_at: 0,
            open_request: 0,
            close_at: NOWHERE,
            retransmits: 0,
            probes: 0,
            ao_current: 0,
            ao_next: 0,
            ao_changes: 0,
            soft_error: 0,
            learned_mtu: 0,
            initial_segments: 0,
            incarnation: 0,
            urgent: 0,
        }
    }
}

impl Block {
    /// An unused block that has had `generation` uses.
    pub fn free(generation: u32) -> Block {
        Block {
            state: State::Free as u8,
            send_scale: 0,
            receive_scale: 0,
            backoff: 0,
            flags: 0,
            domain: DomainId(0),
            mss: MSS_DEFAULT,
            slot: NONE,
            generation,
            iss: 0,
            irs: 0,
            tuple: Tuple::default(),
            snd_una: 0,
            snd_nxt: 0,
            snd_end: 0,
            snd_edge: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            snd_small: 0,
            snd_released: 0,
            fin_at: NOWHERE,
            rcv_nxt: 0,
            rcv_adv: 0,
            rcv_taken: 0,
            rcv_acked: 0,
            rcv_fin_at: NOWHERE,
            ts_recent: 0,
            ts_offset: 0,
            ts_recent_at: 0,
            congestion: Congestion::new(MSS_DEFAULT as u32),
            rtt: Rtt::new(),
        }
    }

    pub fn state(&self) -> State {
        // Numbers are checked when the arena is opened; afterwards only this crate writes them.
        State::from_number(self.state).unwrap_or(State::Free)
    }

    pub fn set_state(&mut self, state: State) {
        self.state = state as u8;
    }

    pub fn has(&self, bits: u32) -> bool {
        self.flags & bits == bits
    }

    pub fn set(&mut self, bits: u32) {
        self.flags |= bits;
    }

    pub fn clear(&mut self, bits: u32) {
        self.flags &= !bits;
    }

    /// The sequence number of an offset of ours.
    pub fn send_sequence(&self, offset: u64) -> u32 {
        self.iss.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// The sequence number of an offset of the peer's.
    pub fn receive_sequence(&self, offset: u64) -> u32 {
        self.irs.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// What we expect next, a received FIN counted.
    pub fn acknowledgment(&self) -> u32 {
        self.receive_sequence(self.rcv_nxt + self.has(bit::RECEIVED_FIN) as u64)
    }

    /// The offset, relative to `snd_una`, of a received acknowledgment number.
    pub fn acknowledged_offset(&self, ack: u32) -> i64 {
        let distance = ack.wrapping_sub(self.send_sequence(self.snd_una)) as i32;
        self.snd_una as i64 + distance as i64
    }

    /// Whether an acknowledgment number may be the peer's: it acknowledges bytes that were sent, and is not older
    /// than the largest window that the peer ever offered, `window_max` (RFC 5961 §5.2).
    pub fn may_acknowledge(&self, ack: u32, window_max: u32) -> bool {
        let offset = self.acknowledged_offset(ack);
        offset <= self.snd_nxt as i64 && offset >= self.snd_una as i64 - window_max as i64
    }

    /// Whether a sequence number of ours is in flight (RFC 5927 §4.1), a bare acknowledgement's included.
    pub fn has_in_flight(&self, seq: u32) -> bool {
        match self.state() {
            State::SynSent | State::SynReceived => seq == self.iss,
            _ => {
                let offset = self.acknowledged_offset(seq);
                // Before its first byte lies a SYN-ACK that is not acknowledged yet.
                let first = self.snd_una as i64 - self.has(bit::UNPROVEN) as i64;
                (first..=self.snd_nxt as i64).contains(&offset)
            }
        }
    }

    /// The offset of a received sequence number.
    pub fn received_offset(&self, seq: u32) -> i64 {
        let expected = self.rcv_nxt + self.has(bit::RECEIVED_FIN) as u64;
        let distance = seq.wrapping_sub(self.receive_sequence(expected)) as i32;
        expected as i64 + distance as i64
    }

    /// Payload of a full segment with the options that every segment carries.
    pub fn segment_size(&self) -> u32 {
        let timestamps = if self.has(bit::TIMESTAMPS) { super::options::TIMESTAMPS_LEN as u32 } else { 0 };
        (self.mss as u32).saturating_sub(timestamps + self.signature_len() as u32).max(1)
    }

    /// Bytes of options that a signature takes in every segment.
    pub fn signature_len(&self) -> usize {
        match (self.has(bit::SIGNED), self.has(bit::AUTHENTICATED)) {
            (false, _) => 0,
            (true, false) => super::options::SIGNATURE_LEN,
            (true, true) => super::options::AUTHENTICATION_LEN,
        }
    }

    /// Bytes, SYN and FIN that were sent and are not acknowledged (FlightSize of RFC 5681 §2).
    pub fn flight_size(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// Bytes of the peer's window that are not used yet.
    pub fn send_window(&self) -> u64 {
        self.snd_edge.saturating_sub(self.snd_nxt)
    }

    pub fn fin_acknowledged(&self) -> bool {
        self.snd_una > self.fin_at
    }

    /// Bytes acknowledged, the FIN not counted.
    pub fn bytes_acknowledged(&self) -> u64 {
        self.snd_una.min(self.fin_at)
    }

    /// Our timestamp clock: milliseconds, shifted per pair of hosts (RFC 7323 §5.4).
    pub fn timestamp(&self, now: Instant) -> u32 {
        clock(now, self.ts_offset)
    }
}

/// The timestamp clock of a pair of hosts.
pub fn clock(now: Instant, offset: u32) -> u32 {
    (now.as_millis() as u32).wrapping_add(offset)
}

/// RFC 9293 §3.7.1
pub const MSS_DEFAULT: u16 = 536;

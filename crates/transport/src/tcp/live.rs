//! Derived state of a block: lost in a crash, then rebuilt.

use super::accurate::Accurate;
use super::congestion::Algorithm;
use super::congestion::bbr::Bbr;
use super::congestion::hystart::{HyStart, SlowStart};
use super::idle::SlowStartAfterIdle;
use super::min_rtt::MinRtt;
use super::mtu_search::MtuSearch;
use super::out_of_order::OutOfOrder;
use super::pacing::Pace;
use super::rate::Rate;
use super::records::Records;
use super::recovery::Recovery;
use super::scoreboard::Range;
use super::signature::Signing;
use super::stamps::Stamps;
use super::statistics::Statistics;
use super::tail_probe::TailProbes;
use super::usage::Usage;
use crate::in_flight::InFlight;
use crate::page::Page;
use crate::timers::NEVER;
use alloc::boxed::Box;
use eft_base::{Instant, PoolId, RequestId};

/// Bits of [`Live::due`]: what the next `flush` has to do for a connection.
pub mod due {
    /// An acknowledgement is owed.
    pub const ACK: u32 = 2;
    pub const READABLE: u32 = 4;
    /// Check whether the write plug can be pulled.
    pub const WRITABLE: u32 = 8;
    pub const END_OF_STREAM: u32 = 16;
    pub const HANG_UP: u32 = 32;
    /// The route to the destination must be asked for.
    pub const ROUTE: u32 = 64;
    /// A SYN or SYN-ACK is to be sent.
    pub const SYN: u32 = 128;
    /// A segment with an old sequence number is to be sent, so that the peer answers.
    pub const PROBE: u32 = 256;
    /// The part that the window allows is to be sent although it is small.
    pub const OVERRIDE: u32 = 512;
    /// Check what may be sent.
    pub const SEND: u32 = 1024;
    /// The page's numbers are stale.
    pub const INFO: u32 = 2048;
    /// The page is to be read as if the application had rung.
    pub const LOOK: u32 = 4096;
    /// The delay of a notification is over.
    pub const TELL: u32 = 8192;
    /// The part that the windows allow is to be sent although a larger piece would be cheaper.
    pub const PIECE: u32 = 1 << 14;
    /// The application waits for the page's numbers.
    pub const ASKED: u32 = 1 << 15;
    /// It is from before the crash, and not revived yet.
    pub const REVIVE: u32 = 1 << 16;
    /// Urgent data were announced.
    pub const URGENT: u32 = 1 << 17;
    /// A reset, behind what may still be sent at once.
    pub const RESET: u32 = 1 << 18;
}

/// Derived state of one block.
pub(crate) struct Live {
    /// The socket's page, once its domain's arena is open.
    pub page: Option<Page>,
    pub pool: PoolId,
    pub due: u32,
    pub in_flight: InFlight,
    pub recovery: Recovery,
    /// What arrived out of order.
    pub out_of_order: OutOfOrder,
    /// The segment that is being timed: the offset that acknowledges it, and when it was sent. [`super::block::NOWHERE`]: something was
    /// sent again since, so that only a block can tell that this arrived, or what was sent after it.
    pub timing: Option<(u64, Instant)>,
    /// Retransmission, or window probe if nothing is in flight, or SYN again.
    pub retransmit_at: Instant,
    /// When late segments are considered lost (RFC 8985 §6.3).
    pub reorder_at: Instant,
    /// When a tail loss probe is sent (RFC 8985 §7.2).
    pub probe_at: Instant,
    pub ack_at: Instant,
    pub keepalive_at: Instant,
    pub cork_at: Instant,
    /// When sending no longer waits for a larger piece.
    pub piece_at: Instant,
    pub pace: Pace,
    pub mtu: MtuSearch,
    /// The MSS that we announce, as the route says; 0: what the MTU leaves room for.
    pub route_mss: u16,
    /// When a delayed notification is sent.
    pub tell_at: Instant,
    /// Bytes that came in order without a pause, and when the last of them did.
    pub run_bytes: u64,
    pub run_at: Instant,
    /// When to check whether a connection in the accept queue was taken and forgotten.
    pub attach_at: Instant,
    pub last_sent: Instant,
    pub last_heard: Instant,
    /// When the oldest byte in flight was first sent, for the user timeout.
    pub stuck_since: Instant,
    /// Text came behind the SYN.
    pub heard_text: bool,
    /// Wire segments received in order and not acknowledged yet.
    pub unacked_segments: u32,
    /// Acknowledgements still to be sent at once, at the start of a connection.
    pub quick_acks: u32,
    /// Duplicate acknowledgements owed (RFC 5681 §4.2), without SACK.
    pub duplicate_acks: u32,
    /// The segment that came twice, to be reported (RFC 2883).
    pub duplicate: Option<Range>,
    pub usage: Usage,
    pub records: Records,
    /// A handshake whose last acknowledgment has come and waits for data ([`super::defer`]).
    pub deferred: bool,
    /// Where the application's last urgent byte ends; 0: it has sent none.
    pub urgent_end: u64,
    pub stamps: Stamps,
    pub signing: Signing,
    /// Up to here MSG_MORE holds nothing back any more.
    pub more_released: u64,
    /// Where the data end that went with the SYN: they were pushed, and go again by themselves.
    pub early_end: Option<u64>,
    /// Highest offset sent when the window was last reduced, with ECN, until more is acknowledged.
    pub reduced_at: Option<u64>,
    pub accurate: Accurate,
    pub hystart: HyStart,
    /// Used by connections that choose none; as configured when they were established.
    pub algorithm: Algorithm,
    pub bbr: Option<Box<Bbr>>,
    pub rate: Rate,
    pub min_rtt: MinRtt,
    /// As configured when slow start began.
    pub slow_start: SlowStart,
    /// As configured when the connection was established.
    pub after_idle: SlowStartAfterIdle,
    /// The same.
    pub tail_probes: TailProbes,
    pub statistics: Statistics,
    /// Path errors that came, modulo 256.
    pub soft_errors: u8,
    /// Since when the window has not been full.
    pub unused_since: Option<Instant>,
    /// When an unacceptable segment was last answered.
    pub stray_answered_at: Option<Instant>,
    /// When the page's numbers were written, and when they are to be written again.
    pub info_published: Option<Instant>,
    pub info_at: Instant,
    /// `Opt::ZeroCopySends` when the application was last woken for it.
    pub completions: u32,
    /// `Connect` to be answered when the route is known.
    pub connect_request: Option<RequestId>,
    /// The last `Connect` that was answered with success; sockets may repeat it.
    pub begun_request: Option<RequestId>,
    /// `Route` asked and not answered.
    pub route_request: Option<RequestId>,
    /// It counts as an open connection.
    pub open: bool,
    /// For a listener: its connections that are not established yet.
    pub embryonic: u32,
    /// And those that were opened before their handshake was done (RFC 7413 §5.1), including those reset recently.
    pub unproven: u32,
}

impl Live {
    pub fn new() -> Live {
        Live {
            page: None,
            pool: PoolId(0),
            due: 0,
            in_flight: InFlight::default(),
            recovery: Recovery::default(),
            out_of_order: OutOfOrder::default(),
            timing: None,
            retransmit_at: NEVER,
            reorder_at: NEVER,
            probe_at: NEVER,
            ack_at: NEVER,
            keepalive_at: NEVER,
            cork_at: NEVER,
            piece_at: NEVER,
            pace: Pace::default(),
            mtu: MtuSearch::default(),
            route_mss: 0,
            tell_at: NEVER,
            run_bytes: 0,
            run_at: Instant::ZERO,
            attach_at: NEVER,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            stuck_since: Instant::ZERO,
            heard_text: false,
            unacked_segments: 0,
            quick_acks: 16,
            duplicate_acks: 0,
            duplicate: None,
            usage: Usage::default(),
            records: Records::default(),
            deferred: false,
            urgent_end: 0,
            stamps: Stamps::default(),
            signing: Signing::default(),
            more_released: 0,
            early_end: None,
            reduced_at: None,
            accurate: Accurate::default(),
            hystart: HyStart::default(),
            algorithm: Algorithm::default(),
            bbr: None,
            rate: Rate::default(),
            min_rtt: MinRtt::default(),
            slow_start: SlowStart::default(),
            after_idle: SlowStartAfterIdle::default(),
            tail_probes: TailProbes::default(),
            statistics: Statistics::default(),
            soft_errors: 0,
            unused_since: None,
            stray_answered_at: None,
            info_published: None,
            info_at: NEVER,
            completions: 0,
            connect_request: None,
            begun_request: None,
            route_request: None,
            open: false,
            embryonic: 0,
            unproven: 0,
        }
    }

    pub fn is_due(&self, bits: u32) -> bool {
        self.due & bits != 0
    }

    /// The earliest deadline.
    pub fn deadline(&self, close_at: u64) -> Instant {
        let timers = [
            self.retransmit_at,
            self.reorder_at,
            self.probe_at,
            self.ack_at,
            self.keepalive_at,
            self.cork_at,
            self.piece_at,
            self.pace.resume_at,
            self.tell_at,
            self.attach_at,
            self.info_at,
        ];
        timers.into_iter().fold(Instant(close_at), Instant::min)
    }

    /// Stops the timers of the connection, except the one of its place in the accept queue.
    pub fn stop_timers(&mut self) {
        self.retransmit_at = NEVER;
        self.reorder_at = NEVER;
        self.probe_at = NEVER;
        self.ack_at = NEVER;
        self.keepalive_at = NEVER;
        self.cork_at = NEVER;
        self.piece_at = NEVER;
        self.pace.resume_at = NEVER;
        self.tell_at = NEVER;
        self.info_at = NEVER;
    }
}

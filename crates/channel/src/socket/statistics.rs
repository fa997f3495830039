//! The numbers of `TCP_INFO`, and what it reports about a stream beyond [`super::SocketInfo`], which lies where a datagram socket has its error queue.

use super::page::INFO;
use super::{SOCKET_HEADER_LEN, SocketInfo, SocketPage};
use core::mem::offset_of;
use core::sync::atomic::Ordering;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words by which the application asks for numbers of now, and the transport answers.
const INFO_ANSWERED: usize = 56;
const INFO_ASKED: usize = 76;
const STATISTICS: usize = 1024;
/// How many bytes of the statistics lie there; [`super::AuthenticationStatus`] follows them. Those that were added after it lie
/// behind it: nothing moves within a layout's version.
const FIRST_LEN: usize = offset_of!(SocketStatistics, receive_rtt_us);
pub(super) const FIRST_END: usize = STATISTICS + FIRST_LEN;
pub(super) const LATER: usize = 1440;
pub(super) const LATER_END: usize = LATER + size_of::<SocketStatistics>() - FIRST_LEN;
const _: () = assert!(FIRST_END == 1272 && LATER_END <= SOCKET_HEADER_LEN);

/// Numbers of one stream, written by the transport when the application asks, and else at most every 100 ms; RFC 4898 has most of them.
///
/// "Segments" are those of the wire; where a peer or a device merges them, as many as the bytes fill. Counts wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SocketStatistics {
    /// The incarnation that these numbers belong to; for any other they mean nothing.
    pub incarnation: u32,
    /// What the sender thinks of the network, as Linux numbers it: 0 open, 1 disorder, 2 congestion marked, 3 recovery, 4 loss.
    pub phase: u8,
    /// Expiries of the retransmission timer in a row.
    pub timeouts: u8,
    /// Probes of the window, or of an idle peer, without answer.
    pub probes: u8,
    /// By how much the timeout is doubled.
    pub backoff: u8,
    /// Nanoseconds of the monotonic clock; 0: never.
    pub data_sent_at: u64,
    pub data_received_at: u64,
    pub heard_at: u64,
    /// Bytes, SYN and FIN.
    pub bytes_acked: u64,
    pub bytes_received: u64,
    /// Payload, retransmissions included.
    pub bytes_sent: u64,
    pub bytes_sent_again: u64,
    /// Bytes per second, over the last round trip that the network limited, or the fastest since.
    pub delivery_rate: u64,
    /// Microseconds with something to send: all, and those limited by the peer's window, by our ring. One of them grows on from
    /// `told_at`; `busy` says which.
    pub busy_us: u64,
    pub window_limited_us: u64,
    pub ring_limited_us: u64,
    /// Bytes in flight: selectively acknowledged, lost (until they arrive, even if they were sent again), retransmitted.
    pub sacked_bytes: u32,
    pub lost_bytes: u32,
    pub again_bytes: u32,
    /// Bytes that were never sent.
    pub unsent_bytes: u32,
    pub path_mtu: u32,
    /// The MSS that we announced, less the options that every segment has, as Linux reports it.
    pub advertised_mss: u32,
    /// The largest segment that came.
    pub received_mss: u32,
    /// Bytes that the window offers: at most, and now.
    pub window_max: u32,
    pub window: u32,
    pub segments_out: u32,
    pub segments_in: u32,
    pub data_segments_out: u32,
    pub data_segments_in: u32,
    /// Segments delivered to the peer, by whichever kind of acknowledgment.
    pub delivered: u32,
    pub min_rtt_us: u32,
    /// Acknowledgments that reported a duplicate (RFC 2883).
    pub duplicates_reported: u32,
    /// Acknowledgments that proved reordering.
    pub reorderings: u32,
    pub out_of_order: u32,
    /// Expiries of the retransmission timer; recoveries that began with one; milliseconds spent in these.
    pub timeouts_total: u32,
    pub timeout_recoveries: u32,
    pub timeout_recovery_ms: u32,
    /// Of a listener: how many connections may wait.
    pub backlog: u32,
    /// The application, not the network, limited the delivery rate (0 or 1).
    pub application_limited: u32,
    /// 0 idle, 1 sending, 2 waiting for the peer's window, 3 waiting for room in the ring.
    pub busy: u32,
    /// Nanoseconds of the monotonic clock.
    pub told_at: u64,
    /// Delivered segments whose acknowledgment signalled congestion (RFC 3168).
    pub delivered_marked: u32,
    /// The most segments by which one came late.
    pub reordering: u32,
    /// SO_MAX_PACING_RATE, and the rate at which the stream is or would be paced: bytes per second, with all bits flipped, so that
    /// 0 is no limit.
    pub pacing_limit: u64,
    pub pacing_rate: u64,
    /// What BBR knows of the path: bytes per second, the shortest round trip in microseconds; and by how much of it the rate and the
    /// window are larger at the moment, in 256ths.
    pub path_bandwidth: u64,
    pub path_rtt_us: u32,
    pub pacing_gain: u32,
    pub window_gain: u32,
    /// The algorithm of congestion control, as in [`super::Opt::Congestion`]; 0: not known.
    pub congestion: u32,
    /// The round trip in microseconds as the receiver sees it, and the most bytes that its reader took in one.
    pub receive_rtt_us: u32,
    pub receive_space: u32,
    /// Segments that came marked (RFC 3168), and bytes that came in packets with ECT(1), with ECT(0) and marked.
    pub received_marked: u32,
    pub received_bytes_by_mark: [u32; 3],
    /// Of the bytes that the peer has, how many came in such packets, as it tells (RFC 9768 §3.2.3).
    pub delivered_bytes_by_mark: [u32; 3],
    /// What has become of the peer's options that tell this, and what of accurate ECN has failed: as Linux's
    /// `tcpi_accecn_opt_seen` and `tcpi_accecn_fail_mode`.
    pub accurate_seen: u16,
    pub accurate_failures: u16,
}

impl SocketPage {
    pub fn info(&self) -> SocketInfo {
        let mut info = SocketInfo::default();
        self.read_bytes(INFO, info.as_mut_bytes());
        info
    }

    pub fn set_info(&self, info: &SocketInfo) {
        self.write_bytes(INFO, info.as_bytes())
    }

    /// Application: asks for fresh numbers of `TCP_INFO`. They are there when [`SocketPage::info_answered`] is what this returns.
    /// The caller tells the transport that the socket has changed.
    pub fn ask_info(&self) -> u32 {
        self.u32_at(INFO_ASKED).fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Transport: how often the application has asked.
    pub fn info_asked(&self) -> u32 {
        self.load_u32(INFO_ASKED)
    }

    /// Which question the last numbers answer.
    pub fn info_answered(&self) -> u32 {
        self.load_u32(INFO_ANSWERED)
    }

    /// Transport: the numbers answer this question.
    pub fn set_info_answered(&self, question: u32) {
        self.store_u32(INFO_ANSWERED, question)
    }

    /// The statistics of the slot's present incarnation; `None` if the transport has not written any.
    pub fn statistics(&self) -> Option<SocketStatistics> {
        let mut statistics = SocketStatistics::default();
        let (first, later) = statistics.as_mut_bytes().split_at_mut(FIRST_LEN);
        self.read_bytes(STATISTICS, first);
        self.read_bytes(LATER, later);
        (statistics.incarnation == self.incarnation()).then_some(statistics)
    }

    /// Transport: publishes them for the incarnation that they name.
    pub fn set_statistics(&self, statistics: &SocketStatistics) {
        let (first, later) = statistics.as_bytes().split_at(FIRST_LEN);
        self.write_bytes(STATISTICS, first);
        self.write_bytes(LATER, later);
    }
}

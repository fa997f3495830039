//! `TCP_INFO`, from the numbers that the transport writes into the page.
//!
//! The transport is asked for them; if it does not answer within [`PATIENCE`], since it dies just now, they are those of a
//! moment ago (100 ms, while it lives). Counts of segments are computed from bytes. Receive buffers do not grow: `tcpi_rcv_ssthresh` is
//! the largest window. Fields that Linux does not fill in are 0 here, too.

use crate::socket::{Socket, bit};
use crate::{beside, domain, sys};
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use eft_channel::socket::{SocketInfo, SocketStatistics};

const TCP_LISTEN: u8 = 10;
const TCP_CLOSE: u8 = 7;
const TCP_TIME_WAIT: u32 = 6;
/// `struct tcp_info` of Linux 6.18.
pub const LEN: usize = 280;
/// A delayed acknowledgement waits as long as Linux's shortest.
const DELAY_US: u32 = 40_000;
/// Linux's `TCP_INIT_CWND` and `sysctl_tcp_reordering`.
const INITIAL_WINDOW: u32 = 10;
const REORDERING: u32 = 3;
const UNLIMITED: u64 = u64::MAX;
/// How long to wait for fresh numbers, and how long between two checks.
const PATIENCE: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_micros(50);
/// Checks before the first nap: a transport that is awake answers within microseconds.
const CHECKS: u32 = 200;

/// The kernel's `struct tcp_info`; programs get as much as they ask for.
pub fn bytes(socket: &Socket) -> [u8; LEN] {
    let page = &socket.page;
    if !socket.has(bit::LISTENING) {
        refresh(socket);
    }
    let snapshot =
        Snapshot { info: page.info(), statistics: page.statistics().unwrap_or_default(), now: monotonic() };
    match socket.has(bit::LISTENING) {
        true => of_listener(beside::all(socket).map(Socket::waiting).sum(), snapshot.statistics.backlog),
        false => snapshot.of_stream(),
    }
}

/// The kernel's `struct tcp_bbr_info`, if the stream uses BBR.
pub fn of_congestion(socket: &Socket) -> Option<[u8; 20]> {
    const BBR: u32 = 3;
    if socket.has(bit::LISTENING) {
        return None;
    }
    refresh(socket);
    let known = socket.page.statistics().filter(|known| known.congestion == BBR)?;
    let (low, high) = (known.path_bandwidth as u32, (known.path_bandwidth >> 32) as u32);
    let mut bytes = [0; 20];
    for (i, word) in
        [low, high, known.path_rtt_us, known.pacing_gain, known.window_gain].into_iter().enumerate()
    {
        bytes[i * 4..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    Some(bytes)
}

/// Asks the transport for fresh numbers, and waits for them.
pub fn refresh(socket: &Socket) {
    let page = &socket.page;
    if !socket.is_stream() || socket.has(bit::ORPHAN) {
        return;
    }
    let (incarnation, question) = (page.incarnation(), page.ask_info());
    domain::notify(socket);
    // Of two threads that ask at the same time, the later question may be answered first.
    let is_over =
        || (page.info_answered().wrapping_sub(question) as i32) >= 0 || page.incarnation() != incarnation;
    let begun = monotonic();
    let mut checks = 0;
    while !is_over() && monotonic() - begun < PATIENCE.as_nanos() as u64 {
        checks += 1;
        if checks < CHECKS {
            core::hint::spin_loop();
        } else {
            // No one wakes this word: it is a nap that a process with a filter may take, too.
            let word = AtomicU32::new(0);
            let _ = sys::futex_wait(word.as_ptr(), 0, NAP);
        }
    }
}

/// The fields of a listener as on Linux: its queue, and the defaults of a new socket.
fn of_listener(waiting: u32, backlog: u32) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[0] = TCP_LISTEN;
    put(&mut bytes, [(24, waiting), (28, backlog), (80, INITIAL_WINDOW), (88, REORDERING)]);
    put_long(&mut bytes, [(104, UNLIMITED), (112, UNLIMITED)]);
    bytes
}

/// The transport's numbers, and the time of the call (CLOCK_MONOTONIC, nanoseconds).
struct Snapshot {
    info: SocketInfo,
    statistics: SocketStatistics,
    now: u64,
}

impl Snapshot {
    fn of_stream(&self) -> [u8; LEN] {
        let (info, more) = (&self.info, &self.statistics);
        let mss = info.mss.max(1);
        let segments = |bytes: u32| bytes.div_ceil(mss);
        let mut bytes = [0; LEN];
        bytes[0] = match info.tcp_state {
            // On Linux the connection is no longer the socket's then.
            0 | TCP_TIME_WAIT => TCP_CLOSE,
            state => state as u8,
        };
        bytes[1..6].copy_from_slice(&[more.phase, more.timeouts, more.probes, more.backoff, info.options]);
        bytes[6] = info.send_scale & 15 | info.receive_scale << 4;
        // Until a rate is measured Linux, too, says that the application limits it.
        bytes[7] = (more.application_limited != 0 || more.delivery_rate == 0) as u8;
        put(
            &mut bytes,
            [
                (8, info.rto_us),
                (12, if more.data_segments_in == 0 { 0 } else { DELAY_US }),
                (16, info.mss),
                (20, more.received_mss),
                (24, segments(info.unacked_bytes)),
                (28, segments(more.sacked_bytes)),
                (32, segments(more.lost_bytes)),
                (36, segments(more.again_bytes)),
                (44, self.milliseconds_since(more.data_sent_at)),
                (52, self.milliseconds_since(more.data_received_at)),
                (56, self.milliseconds_since(more.heard_at)),
                (60, more.path_mtu),
                (64, more.window_max),
                (68, info.rtt_us),
                (72, info.rttvar_us),
                (76, threshold(info.ssthresh_bytes, mss)),
                (80, info.cwnd_bytes / mss),
                (84, more.advertised_mss),
                (88, more.reordering.max(REORDERING)),
                (92, more.receive_rtt_us),
                (96, more.receive_space),
                (100, info.retransmits),
            ],
        );
        put_long(
            &mut bytes,
            [
                (104, !more.pacing_rate),
                (112, !more.pacing_limit),
                (120, more.bytes_acked),
                (128, more.bytes_received),
                (160, more.delivery_rate),
                (168, more.busy_us.wrapping_add(self.since_told_if(|busy| busy != 0))),
                (176, more.window_limited_us.wrapping_add(self.since_told_if(|busy| busy == 2))),
                (184, more.ring_limited_us.wrapping_add(self.since_told_if(|busy| busy == 3))),
                (200, more.bytes_sent),
                (208, more.bytes_sent_again),
            ],
        );
        put(
            &mut bytes,
            [
                (136, more.segments_out),
                (140, more.segments_in),
                (144, more.unsent_bytes),
                // Until one is measured Linux reports the largest value.
                (148, if more.min_rtt_us == 0 { u32::MAX } else { more.min_rtt_us }),
                (152, more.data_segments_in),
                (156, more.data_segments_out),
                (192, more.delivered),
                (196, more.delivered_marked),
                (216, more.duplicates_reported),
                (220, more.reorderings),
                (224, more.out_of_order),
                (228, info.peer_window),
                (232, more.window),
                (244, more.timeout_recovery_ms),
                (248, more.received_marked),
                (252, more.delivered_bytes_by_mark[0]),
                (256, more.delivered_bytes_by_mark[1]),
                (260, more.delivered_bytes_by_mark[2]),
                (264, more.received_bytes_by_mark[0]),
                (268, more.received_bytes_by_mark[1]),
                (272, more.received_bytes_by_mark[2]),
            ],
        );
        bytes[240..242].copy_from_slice(&short(more.timeouts_total));
        bytes[242..244].copy_from_slice(&short(more.timeout_recoveries));
        bytes[276..278].copy_from_slice(&more.accurate_failures.to_ne_bytes());
        bytes[278..280].copy_from_slice(&more.accurate_seen.to_ne_bytes());
        bytes
    }

    /// Microseconds since the numbers were published, if the condition still holds.
    fn since_told_if(&self, goes_on: impl Fn(u32) -> bool) -> u64 {
        match goes_on(self.statistics.busy) {
            true => self.now.saturating_sub(self.statistics.told_at) / 1000,
            false => 0,
        }
    }

    fn milliseconds_since(&self, at: u64) -> u32 {
        if at == 0 { 0 } else { (self.now.saturating_sub(at) / 1_000_000) as u32 }
    }
}

fn short(count: u32) -> [u8; 2] {
    (count.min(u16::MAX as u32) as u16).to_ne_bytes()
}

fn put<const N: usize>(bytes: &mut [u8; LEN], words: [(usize, u32); N]) {
    for (offset, word) in words {
        bytes[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
    }
}

fn put_long<const N: usize>(bytes: &mut [u8; LEN], words: [(usize, u64); N]) {
    for (offset, word) in words {
        bytes[offset..offset + 8].copy_from_slice(&word.to_ne_bytes());
    }
}

/// The slow start threshold in segments. Without one (`u32::MAX` bytes) Linux reports `TCP_INFINITE_SSTHRESH`.
fn threshold(bytes: u32, mss: u32) -> u32 {
    const INFINITE: u32 = 0x7fff_ffff;
    if bytes == u32::MAX { INFINITE } else { bytes / mss }
}

/// The transport's clock.
fn monotonic() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain call with a valid out pointer; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests;

use super::*;

#[test]
fn no_threshold_reads_as_on_linux() {
    assert_eq!(threshold(u32::MAX, 1448), 0x7fff_ffff);
    assert_eq!(threshold(14480, 1448), 10);
}

fn word(bytes: &[u8; LEN], offset: usize) -> u32 {
    u32::from_ne_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn long(bytes: &[u8; LEN], offset: usize) -> u64 {
    u64::from_ne_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

/// Each number is where `struct tcp_info` has its field, as libc declares it.
#[test]
fn fields_lie_where_the_system_declares_them() {
    let info =
        SocketInfo { tcp_state: 1, mss: 100, unacked_bytes: 250, retransmits: 9, ..SocketInfo::default() };
    let statistics = SocketStatistics {
        phase: 3,
        sacked_bytes: 100,
        lost_bytes: 150,
        path_mtu: 140,
        delivery_rate: 5,
        min_rtt_us: 6,
        delivered: 7,
        bytes_sent: 8,
        window: 9,
        timeouts_total: 1 << 20,
        ..SocketStatistics::default()
    };
    let bytes = Snapshot { info, statistics, now: 0 }.of_stream();
    assert_eq!(size_of::<libc::tcp_info>(), LEN);
    // SAFETY: plain numbers, and enough bytes.
    let d: libc::tcp_info = unsafe { core::ptr::read_unaligned(bytes.as_ptr().cast()) };
    assert_eq!((d.tcpi_state, d.tcpi_ca_state, d.tcpi_unacked, d.tcpi_sacked), (1, 3, 3, 1));
    assert_eq!((d.tcpi_lost, d.tcpi_pmtu, d.tcpi_total_retrans), (2, 140, 9));
    assert_eq!((d.tcpi_delivery_rate, d.tcpi_min_rtt, d.tcpi_delivered), (5, 6, 7));
    assert_eq!((d.tcpi_bytes_sent, d.tcpi_rcv_wnd, d.tcpi_total_rto), (8, 9, u16::MAX));
}

#[test]
fn a_socket_without_a_connection_is_closed() {
    let state = |tcp_state| {
        let info = SocketInfo { tcp_state, ..SocketInfo::default() };
        Snapshot { info, statistics: SocketStatistics::default(), now: 0 }.of_stream()[0]
    };
    assert_eq!([0, 1, 5, 6, 7, 8].map(state), [7, 1, 5, 7, 7, 8]);
}

#[test]
fn a_rate_is_limited_by_the_application_until_one_is_measured() {
    let limited = |delivery_rate, application_limited| {
        let statistics =
            SocketStatistics { delivery_rate, application_limited, ..SocketStatistics::default() };
        Snapshot { info: SocketInfo::default(), statistics, now: 0 }.of_stream()[7]
    };
    assert_eq!((limited(0, 0), limited(7, 0), limited(7, 1)), (1, 0, 1));
}

#[test]
fn times_are_ages_and_zero_for_events_that_never_happened() {
    let statistics = SocketStatistics { heard_at: 5_000_000, ..SocketStatistics::default() };
    let bytes = Snapshot { info: SocketInfo::default(), statistics, now: 12_000_000 }.of_stream();
    assert_eq!((word(&bytes, 44), word(&bytes, 52), word(&bytes, 56)), (0, 0, 7));
}

#[test]
fn a_listener_reports_its_queue_and_a_new_sockets_defaults() {
    let bytes = of_listener(2, 128);
    assert_eq!((bytes[0], word(&bytes, 24), word(&bytes, 28)), (10, 2, 128));
    assert_eq!((word(&bytes, 80), long(&bytes, 104)), (10, u64::MAX));
}

#[test]
fn time_limited_by_a_window_grows_until_it_is_read() {
    let statistics =
        SocketStatistics { busy: 2, told_at: 1_000_000, busy_us: 70, ..SocketStatistics::default() };
    let bytes = Snapshot { info: SocketInfo::default(), statistics, now: 3_000_000 }.of_stream();
    assert_eq!((long(&bytes, 168), long(&bytes, 176), long(&bytes, 184)), (2070, 2000, 0));
}

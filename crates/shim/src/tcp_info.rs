//! `TCP_INFO`, from the numbers that the transport writes into the page.

use crate::socket::{Socket, bit};

const TCP_LISTEN: u8 = 10;
const TCP_CLOSE: u8 = 7;
/// `struct tcp_info` up to and including `tcpi_total_retrans`.
const LEN: usize = 104;

/// The head of the kernel's `struct tcp_info`; programs get as much as they ask for.
pub fn bytes(socket: &Socket) -> [u8; LEN] {
    let info = socket.page.info();
    let listening = socket.has(bit::LISTENING);
    let mut bytes = [0u8; LEN];
    bytes[0] = match (listening, info.tcp_state) {
        (true, _) => TCP_LISTEN,
        (false, 0) => TCP_CLOSE,
        (false, state) => state as u8,
    };
    bytes[5] = info.options;
    bytes[6] = info.send_scale & 15 | info.receive_scale << 4;
    let mss = info.mss.max(1);
    let (unacked, sacked) = match listening {
        true => (socket.waiting(), socket.page.receive_len() as u32 / 64),
        false => (info.unacked_bytes.div_ceil(mss), 0),
    };
    let words = [
        (8, info.rto_us),
        (12, 40_000),
        (16, info.mss),
        (20, info.mss),
        (24, unacked),
        (28, sacked),
        (60, 1500),
        (68, info.rtt_us),
        (72, info.rttvar_us),
        (76, threshold(info.ssthresh_bytes, mss)),
        (80, info.cwnd_bytes / mss),
        (84, info.mss),
        (88, 3),
        (100, info.retransmits),
    ];
    for (offset, word) in words {
        bytes[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The slow start threshold in segments. Without one (`u32::MAX` bytes) Linux says
/// `TCP_INFINITE_SSTHRESH`.
fn threshold(bytes: u32, mss: u32) -> u32 {
    const INFINITE: u32 = 0x7fff_ffff;
    if bytes == u32::MAX { INFINITE } else { bytes / mss }
}

#[cfg(test)]
mod tests;

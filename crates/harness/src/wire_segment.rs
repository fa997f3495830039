//! A TCP segment in an IPv4 packet, as it arrives from a wire.

use eft_base::WireAddress;
use eft_base::checksum::Checksum;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const TCP: u8 = 6;

/// What a segment says beside its payload.
#[derive(Clone, Copy, Debug)]
pub struct WireSegment<'a> {
    pub from: (WireAddress, u16),
    pub to: (WireAddress, u16),
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// A multiple of four bytes.
    pub options: &'a [u8],
}

impl WireSegment<'_> {
    /// The whole packet, both checksums included.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; IP_HEADER + TCP_HEADER];
        let header_len = TCP_HEADER + self.options.len();
        let (from, to) = (self.from, self.to);
        bytes[0] = 0x45;
        let total = (IP_HEADER + header_len + payload.len()) as u16;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[9] = TCP;
        bytes[12..16].copy_from_slice(&from.0.0[12..]);
        bytes[16..20].copy_from_slice(&to.0.0[12..]);
        bytes[20..22].copy_from_slice(&from.1.to_be_bytes());
        bytes[22..24].copy_from_slice(&to.1.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.seq.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.ack.to_be_bytes());
        bytes[32] = (header_len as u8 / 4) << 4;
        bytes[33] = self.flags;
        bytes[34..36].copy_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(self.options);
        bytes.extend_from_slice(payload);
        let sum = Checksum::new()
            .add_pseudo_header(from.0.into(), to.0.into(), TCP, (header_len + payload.len()) as u32)
            .add_bytes(&bytes[IP_HEADER..])
            .finish();
        bytes[36..38].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}

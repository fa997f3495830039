//! TCP options: MSS (RFC 9293 §3.7.1), window scale and timestamps (RFC 7323), SACK (RFC 2018 §2, §3), Fast Open (RFC 7413
//! §4.1.1), also in an experimental option (RFC 6994 §3), signatures (RFC 2385 §3.0,
//! RFC 5925 §2.2), counts of marked bytes (RFC 9768 §3.2.3, [`super::byte_counts`]).

use super::byte_counts::{self, ByteCounts};
use super::fast_open::Cookie;
use super::scoreboard::Range;
use eft_channel::socket::signature_keys::MAC_MAX;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const SIGNATURE: u8 = 19;
const AUTHENTICATION: u8 = 29;
const FAST_OPEN: u8 = 34;
const EXPERIMENTAL: u8 = 254;
/// Names Fast Open in the experimental option (RFC 6994 §3; IANA: TCP Experimental Option Experiment Identifiers).
const EXPERIMENT_FAST_OPEN: [u8; 2] = [0xf9, 0x89];

/// Bytes of options that a header can carry.
pub const OPTIONS_MAX: usize = 40;
/// RFC 7323 §2.3
pub const SCALE_MAX: u8 = 14;
/// Bytes of SACK, padded: without blocks, and of one.
const SACK_HEAD: usize = 4;
const SACK_BLOCK: usize = 8;
/// Bytes that timestamps take in every segment.
pub const TIMESTAMPS_LEN: usize = 12;
/// Bytes that a signature takes in every segment: the option, padded.
pub const SIGNATURE_LEN: usize = 20;
/// Bytes that TCP-AO's option takes in every segment, with the longest code.
pub const AUTHENTICATION_LEN: usize = 4 + MAC_MAX;
/// An MD5 digest.
pub type Signature = [u8; 16];

/// TCP-AO's option (RFC 5925 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication {
    pub key_id: u8,
    /// RNextKeyID: the key that the sender asks for.
    pub next_id: u8,
    /// More than [`MAC_MAX`] if it is longer, or if there are several options: then no key has made it.
    pub mac_len: u8,
    pub mac: [u8; MAC_MAX],
}

impl Authentication {
    fn parse(data: &[u8]) -> Option<Authentication> {
        let [key_id, next_id, code @ ..] = data else { return None };
        let mut mac = [0; MAC_MAX];
        let len = code.len().min(MAC_MAX);
        mac[..len].copy_from_slice(&code[..len]);
        Some(Authentication { key_id: *key_id, next_id: *next_id, mac_len: code.len() as u8, mac })
    }
}

/// What a segment's options say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    /// TSval, TSecr
    pub timestamps: Option<(u32, u32)>,
    pub sack: [(u32, u32); 4],
    pub sack_count: u8,
    pub fast_open: Option<Cookie>,
    pub signature: Option<Signature>,
    pub authentication: Option<Authentication>,
    pub byte_counts: Option<ByteCounts>,
}

fn be32(b: &[u8]) -> u32 {
    u32::from_be_bytes([b[0], b[1], b[2], b[3]])
}

impl Options {
    /// Whether its sender has signed it in some way.
    pub fn are_signed(&self) -> bool {
        self.signature.is_some() || self.authentication.is_some()
    }

    /// Reads options. Unknown ones are skipped; a length that makes no sense ends the list
    /// (RFC 9293 §3.1: MUST-7), which is what every stack does.
    pub fn parse(mut bytes: &[u8]) -> Options {
        let mut o = Options::default();
        while let [kind, rest @ ..] = bytes {
            match *kind {
                END => break,
                NOP => bytes = rest,
                kind => {
                    let Some(&len) = rest.first() else { break };
                    let len = len as usize;
                    if len < 2 || len > bytes.len() {
                        break;
                    }
                    o.take(kind, &bytes[2..len]);
                    bytes = &bytes[len..];
                }
            }
        }
        o
    }

    fn take(&mut self, kind: u8, data: &[u8]) {
        match (kind, data.len()) {
            (MSS, 2) => self.mss = Some(u16::from_be_bytes([data[0], data[1]])),
            (WINDOW_SCALE, 1) => self.scale = Some(data[0].min(SCALE_MAX)),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (TIMESTAMPS, 8) => self.timestamps = Some((be32(data), be32(&data[4..]))),
            (SIGNATURE, 16) => self.signature = data.try_into().ok(),
            (AUTHENTICATION, _) if self.authentication.is_none() => {
                self.authentication = Authentication::parse(data);
            }
            // RFC 5925 §2.2: at most one.
            (AUTHENTICATION, _) => self.authentication.iter_mut().for_each(|a| a.mac_len = u8::MAX),
            (FAST_OPEN, _) => self.fast_open = Cookie::parse(data).or(self.fast_open),
            (EXPERIMENTAL, _) => {
                if let Some(data) = data.strip_prefix(&EXPERIMENT_FAST_OPEN) {
                    self.fast_open = Cookie::parse(data).map(|c| c.in_option(true)).or(self.fast_open);
                }
            }
            (SACK, n) if n % 8 == 0 && n <= 32 => {
                self.sack_count = (n / 8) as u8;
                for (to, from) in self.sack.iter_mut().zip(data.chunks_exact(8)) {
                    *to = (be32(from), be32(&from[4..]));
                }
            }
            _ => self.byte_counts = ByteCounts::parse(kind, data).or(self.byte_counts),
        }
    }

    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sack[..self.sack_count as usize]
    }
}

/// Builds options, padded to words.
pub struct Builder {
    bytes: [u8; OPTIONS_MAX],
    len: usize,
    /// Bytes that are left for a signature.
    reserved: usize,
}

impl Builder {
    pub fn new() -> Builder {
        Builder::beside(0)
    }

    /// Options beside `reserved` bytes of a signature.
    pub fn beside(reserved: usize) -> Builder {
        Builder { bytes: [NOP; OPTIONS_MAX], len: 0, reserved }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub fn mss(&mut self, mss: u16) {
        let [a, b] = mss.to_be_bytes();
        self.put(&[MSS, 4, a, b]);
    }

    pub fn scale(&mut self, scale: u8) {
        self.put(&[NOP, WINDOW_SCALE, 3, scale]);
    }

    pub fn sack_permitted(&mut self) {
        self.put(&[NOP, NOP, SACK_PERMITTED, 2]);
    }

    /// The layout of RFC 7323 appendix A.
    pub fn timestamps(&mut self, value: u32, echo: u32) {
        self.put(&[NOP, NOP, TIMESTAMPS, 10]);
        self.put(&value.to_be_bytes());
        self.put(&echo.to_be_bytes());
    }

    /// Both in a SYN: SACK-permitted fills the padding of the timestamps.
    pub fn sack_permitted_and_timestamps(&mut self, value: u32, echo: u32) {
        self.put(&[SACK_PERMITTED, 2, TIMESTAMPS, 10]);
        self.put(&value.to_be_bytes());
        self.put(&echo.to_be_bytes());
    }

    /// Fast Open, of an even length, so that the padding is whole words.
    pub fn fast_open(&mut self, cookie: &Cookie) {
        let data = cookie.bytes();
        let len = 2 + data.len() as u8;
        if cookie.experimental {
            self.put(&[EXPERIMENTAL, len + 2]);
            self.put(&EXPERIMENT_FAST_OPEN);
        } else {
            self.put(&[FAST_OPEN, len]);
        }
        self.put(data);
        self.len = self.len.next_multiple_of(4);
    }

    /// Bytes that still fit.
    fn room(&self) -> usize {
        OPTIONS_MAX.saturating_sub(self.len + self.reserved)
    }

    /// How many SACK blocks still fit.
    pub fn sack_room(&self) -> usize {
        self.room().saturating_sub(SACK_HEAD) / SACK_BLOCK
    }

    /// Counts of bytes, as many as fit beside so many SACK blocks and within `most` bytes. False if none do.
    pub fn byte_counts(&mut self, bytes: [u32; 3], sack_blocks: usize, most: usize) -> bool {
        let sack = if sack_blocks > 0 { SACK_HEAD + SACK_BLOCK * sack_blocks } else { 0 };
        let fields = byte_counts::fitting(self.room().saturating_sub(sack).min(most));
        if fields > 0 {
            let (option, len) = byte_counts::option(bytes, fields);
            self.put(&option[..len]);
        }
        fields > 0
    }

    /// `sequence` turns an offset of the stream into a sequence number.
    pub fn sack(&mut self, ranges: &[Range], sequence: impl Fn(u64) -> u32) {
        if ranges.is_empty() {
            return;
        }
        self.put(&[NOP, NOP, SACK, 2 + 8 * ranges.len() as u8]);
        for r in ranges {
            self.put(&sequence(r.start).to_be_bytes());
            self.put(&sequence(r.end).to_be_bytes());
        }
    }

    /// The option in front of the others, as Linux has it.
    pub fn authentication(
        key_id: u8,
        next_id: u8,
        mac_len: u8,
        mac: &[u8; MAC_MAX],
    ) -> [u8; AUTHENTICATION_LEN] {
        let mut bytes = [NOP; AUTHENTICATION_LEN];
        let len = mac_len.min(MAC_MAX as u8);
        bytes[..4].copy_from_slice(&[AUTHENTICATION, 4 + len, key_id, next_id]);
        bytes[4..4 + len as usize].copy_from_slice(&mac[..len as usize]);
        bytes
    }

    /// The same for an MD5 digest.
    pub fn signature(digest: &Signature) -> [u8; SIGNATURE_LEN] {
        let mut bytes = [NOP; SIGNATURE_LEN];
        bytes[2..4].copy_from_slice(&[SIGNATURE, SIGNATURE_LEN as u8 - 2]);
        bytes[4..].copy_from_slice(digest);
        bytes
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Where the code lies in options that [`Options::parse`] has found TCP-AO's in.
pub fn mac_range(options: &[u8]) -> Option<core::ops::Range<usize>> {
    let mut at = 0;
    loop {
        match options.get(at..)? {
            [END, ..] | [] => return None,
            [NOP, ..] => at += 1,
            [kind, len, ..] => {
                let end = at + (*len as usize).max(2);
                if *kind == AUTHENTICATION {
                    return (at + 4 <= end && end <= options.len()).then_some(at + 4..end);
                }
                at = end;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;

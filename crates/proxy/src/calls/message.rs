//! `struct msghdr`, `struct iovec` and `struct mmsghdr` in the program's memory.

use crate::label::CONTROL_MAX;
use crate::sys::{Errno, Result};
use crate::target::Call;
use libc::c_int;

/// The kernel's limit.
pub const PARTS_MAX: usize = 1024;
pub const MESSAGES_MAX: usize = 1024;
/// Longer than any datagram.
pub const BYTES_MAX: usize = 1 << 16;

pub const HEADER: usize = 56;
/// Bytes of a `struct mmsghdr`: a header and the length of its message.
pub const ENTRY: usize = 64;

/// A decoded `struct msghdr`.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub at: u64,
    pub name: u64,
    pub name_len: c_int,
    pub parts: u64,
    pub count: usize,
    pub control: u64,
    pub control_len: usize,
}

pub fn decode(at: u64, bytes: &[u8; HEADER]) -> Header {
    let word = |i: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[i..i + 8]);
        u64::from_ne_bytes(word)
    };
    Header {
        at,
        name: word(0),
        name_len: word(8) as c_int,
        parts: word(16),
        count: word(24) as usize,
        control: word(32),
        control_len: word(40) as usize,
    }
}

/// The address and length of each part of a scattered buffer, as far as a datagram may reach.
pub type Parts = Vec<(u64, usize)>;

impl Call<'_> {
    pub fn read_header(&self, at: u64) -> Result<Header> {
        let mut bytes = [0; HEADER];
        self.read_into(at, &mut bytes)?;
        Ok(decode(at, &bytes))
    }

    pub fn read_parts(&self, header: &Header) -> Result<Parts> {
        if header.count > PARTS_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        let bytes = self.read(header.parts, header.count * 16)?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i: usize| word[i])))
            .collect();
        parts_of(&words)
    }

    /// The content of the parts, one after the other.
    pub fn gather(&self, parts: &Parts) -> Result<Vec<u8>> {
        let len: usize = parts.iter().map(|(_, len)| len).sum();
        if len > BYTES_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        let mut all = vec![0; len];
        let mut at = 0;
        for &(from, len) in parts {
            self.read_into(from, &mut all[at..at + len])?;
            at += len;
        }
        Ok(all)
    }

    /// The control messages that a call sends.
    pub fn read_control(&self, header: &Header) -> Result<Vec<u8>> {
        if header.control_len > CONTROL_MAX {
            return Err(Errno(libc::ENOBUFS));
        }
        self.read(header.control, header.control_len)
    }
}

/// Decodes pairs of address and length. A length, or a sum of lengths, beyond `ssize_t` is refused.
pub fn parts_of(words: &[u64]) -> Result<Parts> {
    let mut sum = 0u64;
    let mut parts = Parts::new();
    for part in words.chunks_exact(2) {
        sum = sum.checked_add(part[1]).filter(|sum| *sum <= i64::MAX as u64).ok_or(Errno(libc::EINVAL))?;
        parts.push((part[0], part[1] as usize));
    }
    Ok(parts)
}

/// Spreads bytes over parts: returns the address and content of each piece.
pub fn scatter<'a>(mut bytes: &'a [u8], parts: &Parts) -> Vec<(u64, &'a [u8])> {
    let mut pieces = Vec::new();
    for &(to, len) in parts {
        let (piece, rest) = bytes.split_at(len.min(bytes.len()));
        pieces.push((to, piece));
        bytes = rest;
    }
    pieces
}

#[cfg(test)]
mod tests;

//! SO_MAX_PACING_RATE, which is 32 or 64 bits long, as the caller likes.

use super::{copy, int_of};
use crate::sys::Result;
use core::ffi::c_int;
use eft_channel::socket::{SocketPage, pacing};

pub fn set(page: &SocketPage, level: c_int, value: &[u8]) -> Result<()> {
    let limit = match value.first_chunk() {
        Some(bytes) => u64::from_ne_bytes(*bytes),
        None => match int_of(level, value)? as u32 {
            u32::MAX => u64::MAX,
            limit => limit as u64,
        },
    };
    pacing::words(limit).into_iter().for_each(|(option, word)| page.set_option(option, word));
    Ok(())
}

/// As many bits as there is room for.
pub fn get(page: &SocketPage, to: &mut [u8]) -> usize {
    let limit = pacing::limit(|option| page.option(option));
    match to.len() {
        8.. => copy(&limit.to_ne_bytes(), to),
        _ => copy(&(limit.min(u32::MAX as u64) as u32).to_ne_bytes(), to),
    }
}

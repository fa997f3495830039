//! Algorithms of congestion control, by name.

use crate::interfaces;
use crate::sys::{Errno, Result};
use eft_channel::socket::{Opt, SocketPage};

/// The transport's word for an algorithm.
pub fn number(name: &[u8]) -> Result<u32> {
    match name.split(|&b| b == 0).next().unwrap_or(&[]) {
        b"cubic" => Ok(1),
        b"reno" | b"newreno" => Ok(2),
        b"bbr" => Ok(3),
        _ => Err(Errno(libc::ENOENT)),
    }
}

/// The name of the one that a socket uses, as `getsockopt` returns it.
pub fn name(page: &SocketPage) -> [u8; 16] {
    let chosen = match page.option(Opt::Congestion) {
        0 => interfaces::default_congestion(),
        chosen => chosen,
    };
    let name: &[u8] = match chosen {
        2 => b"reno",
        3 => b"bbr",
        _ => b"cubic",
    };
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name);
    padded
}

//! Who verifies what a stack under faults sends and gets.

use super::blame::counted_by_all;
use crate::stack::{PLAIN_TAP, TAP};
use anyhow::{Context, Result};

/// Who computes and verifies the checksums of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    Device,
    /// The stack itself: what changes in its memory between a sum and its verification is found.
    Software,
}

impl Checksums {
    /// The kind of device with which it is so.
    pub fn device(self) -> &'static str {
        match self {
            Checksums::Device => TAP,
            Checksums::Software => PLAIN_TAP,
        }
    }
}

/// Packets so far whose checksum was found wrong, by the stack and by the host that it speaks to.
pub fn found_wrong(stack: &str) -> Result<u64> {
    let own = counted_by_all(stack, "drop_checksum")? + counted_by_all(stack, "drop_header_checksum")?;
    let host = std::fs::read_to_string("/proc/self/net/snmp").context("the host's counters")?;
    Ok(own + found_by_host(&host))
}

/// `snmp`: the text of /proc/net/snmp, two lines for each protocol, its counters' names and their values.
fn found_by_host(snmp: &str) -> u64 {
    let lines: Vec<Vec<&str>> = snmp.lines().map(|line| line.split_whitespace().collect()).collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].iter().zip(&pair[1]));
    pairs
        .filter(|(name, _)| **name == "InCsumErrors")
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests;

//! Who verifies what a stack under faults sends and gets.

use crate::stack::{PLAIN_TAP, TAP};

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

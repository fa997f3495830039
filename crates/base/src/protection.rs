//! Whether this process protects what it does against faults. It always does, except to measure what that costs.
//!
//! A setting of the whole process: it is made before the process has any work, and what compares, sums or repeats asks for it
//! where it does so. To ask takes one load from memory and a branch that always goes the same way.

use core::str::FromStr;
use core::sync::atomic::{AtomicU32, Ordering};

/// The value of `eft up --protection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    #[default]
    On,
    /// No state is saved, summed or named, and nothing is compared: a death loses every connection that has changed since, and a
    /// changed bit goes unnoticed.
    Off,
}

/// [`OFF`] in a process that does not protect what it does; anything else, so that no changed bit ends the protection.
static STATE: AtomicU32 = AtomicU32::new(0);
const OFF: u32 = 0x6f66_6621;

/// Whether this process protects what it does.
#[inline(always)]
pub fn is_on() -> bool {
    STATE.load(Ordering::Relaxed) != OFF
}

/// Switches it off in this process if a setting of the stack says so.
pub fn heed(key: &str, value: &[u8]) {
    if key == Protection::KEY && Protection::of(value) == Protection::Off {
        switch_off();
    }
}

/// From now on this process does not.
pub fn switch_off() {
    STATE.store(OFF, Ordering::Relaxed);
}

impl Protection {
    /// The store's key. It has no value while servers protect what they do.
    pub const KEY: &str = "protection";

    pub fn name(self) -> &'static str {
        match self {
            Protection::On => "on",
            Protection::Off => "off",
        }
    }

    /// Reads the value of the store.
    pub fn of(value: &[u8]) -> Protection {
        if value == Protection::Off.name().as_bytes() { Protection::Off } else { Protection::On }
    }
}

impl FromStr for Protection {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Protection, &'static str> {
        let all = [Protection::On, Protection::Off];
        all.into_iter().find(|protection| protection.name() == text).ok_or("is none of on and off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_bit_ends_the_protection() {
        for bit in 0..u32::BITS {
            STATE.store(1 << bit, Ordering::Relaxed);
            assert!(is_on(), "{bit}");
        }
        STATE.store(0, Ordering::Relaxed);
    }
}

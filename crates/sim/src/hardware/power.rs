//! Power of a chip, in milliwatts.
//!
//! Voltage is assumed to follow the clock, so switching power grows with the clock's cube; the rest is static: leakage
//! and uncore. Both come from the two ends of a chip's ACPI table. A duty cycle saves switching power, not voltage.

use super::clock::{Clock, DUTY_STEPS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The two ends: clock in kHz and power with all cores busy, mW.
    pub lowest: (u64, u64),
    pub highest: (u64, u64),
    pub cores: u64,
}

fn cubed_mhz(khz: u64) -> u64 {
    (khz / 1000).pow(3)
}

impl Chip {
    /// Switching power of all cores.
    fn switching_mw(&self, khz: u64) -> u64 {
        let (from, to) = (cubed_mhz(self.lowest.0), cubed_mhz(self.highest.0));
        let rise_mw = u128::from(self.highest.1 - self.lowest.1);
        (u128::from(cubed_mhz(khz)) * rise_mw / u128::from((to - from).max(1))) as u64
    }

    pub fn static_mw(&self) -> u64 {
        self.highest.1.saturating_sub(self.switching_mw(self.highest.0))
    }

    /// Power with all cores busy at this clock.
    pub fn busy_mw(&self, khz: u64) -> u64 {
        self.static_mw() + self.switching_mw(khz)
    }

    /// Power of a core at this clock that is busy for `busy_ppm` of the time, without the static share.
    pub fn core_mw(&self, clock: Clock, busy_ppm: u64) -> u64 {
        let full = self.switching_mw(clock.khz) / self.cores.max(1);
        full * clock.duty / DUTY_STEPS * busy_ppm / 1_000_000
    }
}

#[cfg(test)]
mod tests;

//! Points in time, as engines see them.
//!
//! An [`Instant`] counts nanoseconds from an origin that only the world knows (boot of the machine
//! or start of the simulation). Engines get `now` as an argument; none reads a clock.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Nanoseconds since the world's origin. Good for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Instant(pub u64);

impl Instant {
    pub const ZERO: Instant = Instant(0);

    pub const fn from_micros(us: u64) -> Self {
        Instant(us * 1_000)
    }

    pub const fn from_millis(ms: u64) -> Self {
        Instant(ms * 1_000_000)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Time passed since `earlier`; zero if `earlier` lies ahead.
    pub fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time passed since `earlier`; `None` if `earlier` lies ahead: a clock went back.
    pub fn checked_since(self, earlier: Instant) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }
}

/// Whole nanoseconds, as counters in shared memory, files and the kernel have them; at most 584 years.
pub fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A length of time with a sign, in whole nanoseconds: what is owed or overdrawn, or a correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeDelta(pub i64);

impl TimeDelta {
    pub const ZERO: TimeDelta = TimeDelta(0);
}

/// The longest that it holds, of what is longer.
impl From<Duration> for TimeDelta {
    fn from(length: Duration) -> Self {
        TimeDelta(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.as_nanos() as u64))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_since(earlier)
    }
}

/// How files and answers hold durations: as whole numbers of the unit that the field's name there states, as
/// in `#[serde(rename = "period_ns", with = "nanos")]`.
macro_rules! whole_units {
    ($unit:ident, $nanos:expr) => {
        pub mod $unit {
            use core::time::Duration;
            use serde::{Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(super::nanos(*length) / $nanos)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
                u64::deserialize(deserializer).map(|count| Duration::from_nanos(count.saturating_mul($nanos)))
            }

            /// The same where there may be none.
            pub mod option {
                use super::{Deserialize, Deserializer, Duration, Serializer};

                pub fn serialize<S: Serializer>(
                    length: &Option<Duration>,
                    serializer: S,
                ) -> Result<S::Ok, S::Error> {
                    match length {
                        Some(length) => serializer.serialize_some(&(super::super::nanos(*length) / $nanos)),
                        None => serializer.serialize_none(),
                    }
                }

                pub fn deserialize<'de, D: Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Option<Duration>, D::Error> {
                    let count = Option::<u64>::deserialize(deserializer)?;
                    Ok(count.map(|count| Duration::from_nanos(count.saturating_mul($nanos))))
                }
            }
        }
    };
}

whole_units!(nanos, 1);
whole_units!(micros, 1_000);
whole_units!(millis, 1_000_000);

#[cfg(test)]
mod tests;

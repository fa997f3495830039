//! Why a sample, or a part of it, is not credible.

use alloc::string::String;
use core::time::Duration;

use eft_base::time;
use eft_machine::{Microjoules, Share};
use serde::{Serialize, Serializer};
use thiserror::Error;

use super::PARTS_MAX;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Doubt {
    #[error("it lists more than {PARTS_MAX} components or CPUs")]
    TooManyParts,
    #[error("it is the first, with nothing to compare")]
    First,
    #[error("its time went back")]
    TimeWentBack,
    #[error("it is stale: time did not advance")]
    Stale,
    #[error("{seconds} s passed since the previous one")]
    TooLate { seconds: u64 },
    #[error("was reborn (generation {now} after {before})")]
    Reborn { now: u32, before: u32 },
    #[error("{what} went back from {before} to {now}")]
    WentBack { what: String, before: u64, now: u64 },
    #[error("is stale: its heartbeat stands still while it takes CPU time")]
    HeartbeatStandsStill,
    #[error("has only begun its account: nothing to compare with yet")]
    AccountBegun,
    #[error("accounts for time that has not come yet")]
    AccountAhead,
    #[error("accounts for less time than before")]
    AccountWentBack,
    #[error("was busy or polling for {:.0}% of the time", share.percent())]
    MoreThanAll { share: Share },
    #[error("a queue of {capacity} holds {held} messages")]
    QueueOverfull { capacity: u32, held: u32 },
    #[error("is missing from the sample")]
    Missing,
    #[error("is not running")]
    NotRunning,
    #[error("is new: nothing to compare with yet")]
    New,
    #[error("is stale: its account stands still")]
    AccountStandsStill,
    #[error("the meter went from {} to {now}", before.0)]
    Meter { before: Microjoules, now: Microjoules },
    #[error("vanished")]
    Vanished,
    #[error("its speed reads {0}")]
    Speed(Share),
    #[error("went offline, and eft did not park it")]
    WentOffline,
}

impl Doubt {
    /// `now - before` of a counter that only grows.
    pub fn since(what: &str, now: u64, before: u64) -> Result<u64, Doubt> {
        now.checked_sub(before).ok_or_else(|| Doubt::WentBack { what: what.into(), before, now })
    }

    /// The same for a time; the error is in nanoseconds.
    pub fn time_since(what: &str, now: Duration, before: Duration) -> Result<Duration, Doubt> {
        Self::since(what, time::nanos(now), time::nanos(before)).map(Duration::from_nanos)
    }
}

/// Serialized as its message.
impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

//! Whether the window shrinks after the application was silent for longer than a retransmission timeout (RFC 5681 §4.1); how far says
//! [`super::congestion::Congestion::on_idle`].

use super::block::Block;
use core::str::FromStr;
use core::time::Duration;

/// As `eft up --slow-start-after-idle` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartAfterIdle {
    /// It is halved for each further timeout, down to an initial window, and slow start brings most of it back.
    #[default]
    On,
    /// It stays, as with Linux's `tcp_slow_start_after_idle=0`: for exchanges with pauses over paths that have room.
    Off,
}

impl SlowStartAfterIdle {
    pub fn name(self) -> &'static str {
        match self {
            SlowStartAfterIdle::On => "on",
            SlowStartAfterIdle::Off => "off",
        }
    }
}

impl FromStr for SlowStartAfterIdle {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<SlowStartAfterIdle, &'static str> {
        let all = [SlowStartAfterIdle::On, SlowStartAfterIdle::Off];
        all.into_iter().find(|choice| choice.name() == text).ok_or("is neither on nor off")
    }
}

/// Whether the window is to shrink before more is sent; `silence`: the time since something was.
pub(super) fn has_expired(block: &Block, choice: SlowStartAfterIdle, silence: Duration) -> bool {
    choice == SlowStartAfterIdle::On && block.flight_size() == 0 && silence > block.rtt.rto()
}

#[cfg(test)]
mod tests;

//! Whether connections have timestamps (RFC 7323 §3).

use core::str::FromStr;

/// As `eft up --timestamps` says; as Linux's `net.ipv4.tcp_timestamps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// Neither do our SYNs offer them, nor is an offer taken.
    Off,
    #[default]
    On,
}

impl Timestamps {
    pub fn name(self) -> &'static str {
        match self {
            Timestamps::Off => "off",
            Timestamps::On => "on",
        }
    }
}

impl FromStr for Timestamps {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Timestamps, &'static str> {
        [Timestamps::Off, Timestamps::On]
            .into_iter()
            .find(|t| t.name() == text)
            .ok_or("is neither on nor off")
    }
}

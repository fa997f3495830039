//! Whether connections have explicit congestion notification (RFC 3168 §6.1.1); what they do with it is in [`super::ecn`].

use super::segment::Segment;
use core::str::FromStr;
use eft_base::wire::{TCP_ACK, TCP_CWR, TCP_ECE, TCP_SYN};

/// As `eft up --ecn` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    Off,
    /// If the peer asks.
    #[default]
    Answer,
    /// Our SYNs ask, too.
    Ask,
}

impl Ecn {
    pub fn name(self) -> &'static str {
        match self {
            Ecn::Off => "off",
            Ecn::Answer => "answer",
            Ecn::Ask => "ask",
        }
    }

    /// A SYN that asks, and may be answered.
    pub(super) fn agrees(self, syn: &Segment) -> bool {
        self != Ecn::Off && asks(syn)
    }
}

impl FromStr for Ecn {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Ecn, &'static str> {
        let all = [Ecn::Off, Ecn::Answer, Ecn::Ask];
        all.into_iter().find(|ecn| ecn.name() == text).ok_or("is none of off, answer and ask")
    }
}

/// A SYN that asks for it (RFC 3168 §6.1.1).
pub(super) fn asks(segment: &Segment) -> bool {
    segment.flags & (TCP_SYN | TCP_ACK | TCP_ECE | TCP_CWR) == TCP_SYN | TCP_ECE | TCP_CWR
}

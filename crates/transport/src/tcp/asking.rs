//! Negotiation of explicit congestion notification (RFC 3168 §6.1.1); its use is in [`super::ecn`].

use super::segment::Segment;
use core::str::FromStr;
use eft_base::wire::{TCP_ACK, TCP_CWR, TCP_ECE, TCP_SYN};
use thiserror::Error;

/// As `eft up --ecn` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    Off,
    /// Used if the peer asks.
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

    /// Whether `syn` asks for it, and we may agree.
    pub(super) fn agrees(self, syn: &Segment) -> bool {
        self != Ecn::Off && asks(syn)
    }
}

impl FromStr for Ecn {
    type Err = UnknownEcn;

    fn from_str(text: &str) -> Result<Ecn, UnknownEcn> {
        let all = [Ecn::Off, Ecn::Answer, Ecn::Ask];
        all.into_iter().find(|ecn| ecn.name() == text).ok_or(UnknownEcn)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not one of off, answer and ask")]
pub struct UnknownEcn;

/// Whether a SYN asks for it (RFC 3168 §6.1.1).
pub(super) fn asks(segment: &Segment) -> bool {
    segment.flags & (TCP_SYN | TCP_ACK | TCP_ECE | TCP_CWR) == TCP_SYN | TCP_ECE | TCP_CWR
}

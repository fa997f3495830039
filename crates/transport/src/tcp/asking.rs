//! Negotiation of explicit congestion notification (RFC 3168 §6.1.1), and of its accurate kind (RFC 9768 §3.1); their use is in
//! [`super::ecn`] and [`super::accurate`].

use super::accurate;
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
    /// Our SYNs ask for accurate feedback, and we agree to it, or to what the peer has.
    Accurate,
    /// As `Ask`, and we agree to accurate feedback.
    AccurateAsk,
    /// As `Answer`, and we agree to accurate feedback.
    AccurateAnswer,
}

impl Ecn {
    pub fn name(self) -> &'static str {
        match self {
            Ecn::Off => "off",
            Ecn::Answer => "answer",
            Ecn::Ask => "ask",
            Ecn::Accurate => "accurate",
            Ecn::AccurateAsk => "accurate-ask",
            Ecn::AccurateAnswer => "accurate-answer",
        }
    }

    /// Whether `syn` asks for it, and we may agree.
    pub(super) fn agrees(self, syn: &Segment) -> bool {
        self != Ecn::Off && asks(syn)
    }

    /// Whether `syn` asks for accurate feedback, and we may agree.
    pub(super) fn agrees_accurately(self, syn: &Segment) -> bool {
        matches!(self, Ecn::Accurate | Ecn::AccurateAsk | Ecn::AccurateAnswer) && accurate::asks(syn)
    }
}

impl FromStr for Ecn {
    type Err = UnknownEcn;

    fn from_str(text: &str) -> Result<Ecn, UnknownEcn> {
        let accurate = [Ecn::Accurate, Ecn::AccurateAsk, Ecn::AccurateAnswer];
        let all = [Ecn::Off, Ecn::Answer, Ecn::Ask].into_iter().chain(accurate);
        let mut all = all;
        all.find(|ecn| ecn.name() == text).ok_or(UnknownEcn)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not one of off, answer, ask, accurate, accurate-ask and accurate-answer")]
pub struct UnknownEcn;

/// Whether a SYN asks for it (RFC 3168 §6.1.1).
pub(super) fn asks(segment: &Segment) -> bool {
    segment.flags & (TCP_SYN | TCP_ACK | TCP_ECE | TCP_CWR) == TCP_SYN | TCP_ECE | TCP_CWR
}

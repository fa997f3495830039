//! What the connections do.

use std::fmt;

/// As the stack sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Bulk from the stack to its peer.
    Out,
    /// Bulk from the peer.
    In,
    /// The peer asks on each connection as soon as it has the last answer.
    Requests,
}

/// Bytes of a request, and of an answer.
pub const REQUEST_BYTES: u64 = 64;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Out => "bulk out",
            Self::In => "bulk in",
            Self::Requests => "requests",
        })
    }
}

//! What is staged of a page.

use super::RECORD_MAX;
use alloc::vec::Vec;
use eft_base::{ComponentId, Endpoint};
use eft_channel::socket::{AuthenticationStatus, Opt, SignatureKey, SocketInfo, SocketStatistics};

/// Bits of the staged words.
pub(super) mod word {
    pub const RECEIVE_END: u32 = 1;
    pub const SEND_RELEASED: u32 = 2;
    pub const RECEIVE_NOTIFY: u32 = 4;
    /// After the notify word is written, the application's position is read once more.
    pub const ARMED: u32 = 8;
    pub const FLAGS: u32 = 16;
    /// Something in [`super::Seldom`].
    pub const SELDOM: u32 = 32;
    pub const SEND_SENT: u32 = 64;
    pub const ERRORS_END: u32 = 128;
    pub const INFO_ANSWERED: u32 = 256;
    pub const RECEIVED_AT: u32 = 512;
    pub const URGENT: u32 = 1024;
    pub const SEND_ROOM: u32 = 2048;
}

/// Words that are staged less often.
#[derive(Default)]
pub(super) struct Seldom {
    /// The slot is reset for a new socket: its owner and incarnation.
    pub reset: Option<(ComponentId, u32)>,
    pub freed: bool,
    pub options: Vec<(Opt, u32)>,
    pub local: Option<Endpoint>,
    pub remote: Option<Endpoint>,
    pub info: Option<SocketInfo>,
    pub statistics: Option<SocketStatistics>,
    pub error: Option<i32>,
    /// The keys of a connection that came from a listener: these and no others.
    pub signature_keys: Vec<SignatureKey>,
    pub authentication: Option<AuthenticationStatus>,
    /// Offset in the receive ring.
    pub records: Vec<(u64, [u8; RECORD_MAX])>,
}

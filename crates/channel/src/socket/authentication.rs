//! TCP-AO (RFC 5925) as the application sees it (Linux's TCP_AO_INFO and TCP_AO_GET_KEYS): what it wishes, in the word of
//! [`Opt::Authentication`], and what the transport tells of it. The keys are in [`super::signature_keys`].

use super::signature_keys::FIRST_KEYS;
use super::statistics::{FIRST_END, LATER};
use super::{Opt, SocketPage};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Among the statistics, in space that no version has used before.
const STATUS: usize = FIRST_END;
const _: () = assert!(STATUS.is_multiple_of(8) && STATUS + size_of::<AuthenticationStatus>() <= LATER);

const REQUIRED: u32 = 1;
const ACCEPTS_ICMP: u32 = 2;
const CURRENT: u32 = 4;
const NEXT: u32 = 8;
/// Changes of the two keys, modulo 16.
const CHANGES_SHIFT: u32 = 4;
const CHANGES_MASK: u32 = 15;

/// What the application wishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationWishes {
    /// Nobody may do without, not even peers that there is no key for.
    pub required: bool,
    /// ICMP errors may end a connection (RFC 5925 §7.8).
    pub accepts_icmp: bool,
    /// SendID of the key to sign with (Current_key of RFC 5925 §3.3), and RecvID of the one that the peer is asked for (RNext_key).
    /// They count once, when [`AuthenticationWishes::changes`] has changed: later the peer may ask for another.
    pub current: Option<u8>,
    pub next: Option<u8>,
    /// Counts changes of the two, modulo 16.
    pub changes: u8,
}

impl AuthenticationWishes {
    pub fn from_word(word: u32) -> AuthenticationWishes {
        let key = |bit, shift: u32| (word & bit != 0).then_some((word >> shift) as u8);
        AuthenticationWishes {
            required: word & REQUIRED != 0,
            accepts_icmp: word & ACCEPTS_ICMP != 0,
            current: key(CURRENT, 8),
            next: key(NEXT, 16),
            changes: ((word >> CHANGES_SHIFT) & CHANGES_MASK) as u8,
        }
    }

    pub fn word(&self) -> u32 {
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let key = |key: Option<u8>, bit, shift: u32| key.map_or(0, |id| bit | (u32::from(id) << shift));
        flag(self.required, REQUIRED)
            | flag(self.accepts_icmp, ACCEPTS_ICMP)
            | key(self.current, CURRENT, 8)
            | key(self.next, NEXT, 16)
            | ((u32::from(self.changes) & CHANGES_MASK) << CHANGES_SHIFT)
    }

    /// Wishes for other keys; `None` leaves one as it is.
    pub fn choose(&mut self, current: Option<u8>, next: Option<u8>) {
        if current.is_some() || next.is_some() {
            self.changes = (self.changes + 1) & CHANGES_MASK as u8;
            (self.current, self.next) = (current, next);
        }
    }

    /// What a listener's connections get of its wishes.
    pub fn inherited(self) -> AuthenticationWishes {
        AuthenticationWishes { current: None, next: None, changes: 0, ..self }
    }
}

/// Segments that came with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct KeyCounts {
    pub send_id: u8,
    pub receive_id: u8,
    pub reserved: [u8; 6],
    /// Segments whose code was right, and those whose code was not.
    pub good: u64,
    pub bad: u64,
}

/// A connection's state, published with its statistics. Counts are of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AuthenticationStatus {
    /// The incarnation that this belongs to; for any other it means nothing.
    pub incarnation: u32,
    /// SendID of the key that signs, and RecvID of the one that the peer is asked for.
    pub current: u8,
    pub next: u8,
    /// Which of the application's changes has been made: [`AuthenticationWishes::changes`].
    pub changes: u8,
    /// How many of [`AuthenticationStatus::keys`] there are.
    pub count: u8,
    pub good: u64,
    pub bad: u64,
    /// With a KeyID of no key of ours.
    pub unknown: u64,
    pub unsigned: u64,
    /// ICMP errors that were ignored.
    pub icmp: u64,
    pub keys: [KeyCounts; FIRST_KEYS],
}

impl SocketPage {
    pub fn authentication_wishes(&self) -> AuthenticationWishes {
        AuthenticationWishes::from_word(self.option(Opt::Authentication))
    }

    pub fn set_authentication_wishes(&self, wishes: &AuthenticationWishes) {
        self.set_option(Opt::Authentication, wishes.word());
    }

    /// The state of the slot's present incarnation; `None` if the transport has not told any.
    pub fn authentication_status(&self) -> Option<AuthenticationStatus> {
        let mut status = AuthenticationStatus::default();
        self.read_bytes(STATUS, status.as_mut_bytes());
        (status.incarnation == self.incarnation()).then_some(status)
    }

    /// Transport: publishes it for the incarnation that it names.
    pub fn set_authentication_status(&self, status: &AuthenticationStatus) {
        self.write_bytes(STATUS, status.as_bytes())
    }
}

#[cfg(test)]
mod tests;

//! Messages that come before a (re)born ip knows its addresses and devices.
//!
//! After a crash of ip the transports resubmit and the NICs deliver again at once, in no particular
//! order. Refusing or dropping these messages would lose what the crash did not, so they are held until
//! the configuration and every configured device's `Link` are here, or until a time-out.

use crate::pending::FromPeer;
use alloc::collections::VecDeque;
use core::time::Duration;
use eft_base::{Instant, PoolId};
use eft_messages::ComponentId;
use eft_messages::nic::NicToIp;

const HELD_MAX: usize = 16384;
/// Shorter than TCP's least retransmission timeout: a dead NIC must not delay the traffic of another
/// for longer than that.
const PATIENCE: Duration = Duration::from_millis(150);

pub(crate) struct Gate {
    pub configured: bool,
    opened: Option<Instant>,
    /// When it opens in any case.
    until: Option<Instant>,
    held: VecDeque<(ComponentId, FromPeer)>,
}

impl Gate {
    pub fn new() -> Gate {
        Gate { configured: false, opened: None, until: None, held: VecDeque::new() }
    }

    pub fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether it opened, and not longer than `span` ago.
    pub fn opened_within(&self, now: Instant, span: Duration) -> bool {
        self.opened.is_some_and(|opened| now < opened + span)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.until
    }

    pub fn may_open(&self, now: Instant, links_known: bool) -> bool {
        !self.is_open() && ((self.configured && links_known) || self.until.is_some_and(|until| until <= now))
    }

    /// Opens; the caller handles what was held, in order.
    pub fn open(&mut self, now: Instant) -> VecDeque<(ComponentId, FromPeer)> {
        self.opened = Some(now);
        self.until = None;
        core::mem::take(&mut self.held)
    }

    /// False: too much is held already.
    pub fn hold(&mut self, now: Instant, peer: ComponentId, message: FromPeer) -> bool {
        self.until.get_or_insert(now + PATIENCE);
        if self.held.len() >= HELD_MAX {
            return false;
        }
        self.held.push_back((peer, message));
        true
    }

    /// What a dead transport asked no longer matters.
    pub fn forget(&mut self, peer: ComponentId) {
        self.held.retain(|(p, _)| *p != peer);
    }

    pub fn uses(&self, pool: PoolId) -> bool {
        self.held
            .iter()
            .any(|(_, m)| matches!(m, FromPeer::Nic(NicToIp::Received { packet, .. }) if packet.pool == pool))
    }
}

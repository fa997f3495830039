//! The client's states (RFC 8415 §18.2), and what it sends in each.

use super::lease::{Address, Lease, lease_of};
use super::message::{ADDRESSES_MAX, Kind, Message, NO_BINDING, NOT_ON_LINK, Reply, SUCCESS, parse};
use crate::identity::Identity;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;
use eft_base::{Instant, Random};

/// RFC 8415 §7.6: the longest wait before a first message, and before the confirmation of a lease.
const DELAY_MAX_MS: u64 = 1000;
const CONFIRM_MAX: Duration = Duration::from_secs(10);
/// How long settings that came without addresses hold if the server does not say (§21.23).
const REFRESH: Duration = Duration::from_secs(86400);
/// Of its kind, no server's word is better (§18.2.1).
const BEST_PREFERENCE: u8 = 255;

/// What the network wants of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Nothing,
    /// Settings without addresses.
    Information,
    Addresses,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Off,
    Soliciting { best: Option<Reply> },
    Requesting { offer: Reply },
    Confirming { until: Instant },
    Bound,
    Renewing,
    Rebinding,
    Declining { address: Ipv6Addr, server: Vec<u8> },
    Informing,
    Informed,
}

/// How a message is repeated (§15): the first wait, the longest, and how often (0: without end).
#[derive(Clone, Copy, Debug)]
struct Repeats {
    first: Duration,
    longest: Duration,
    count: u8,
}

const fn repeats(first_s: u64, longest_s: u64, count: u8) -> Repeats {
    Repeats { first: Duration::from_secs(first_s), longest: Duration::from_secs(longest_s), count }
}

pub struct Client {
    duid: Vec<u8>,
    iaid: u32,
    mode: Mode,
    state: State,
    /// The one in force.
    pub lease: Option<Lease>,
    xid: u32,
    since: Instant,
    next: Option<Instant>,
    /// The last wait; zero: nothing was sent yet.
    waited: Duration,
    sent: u8,
    solicit_max: Duration,
}

impl Client {
    /// `lease`: what a predecessor had.
    pub fn new(interface: &str, identity: &Identity, lease: Option<Lease>) -> Client {
        Client {
            duid: identity.duid(),
            iaid: identity.iaid(interface),
            mode: Mode::Nothing,
            state: State::Off,
            lease,
            xid: 0,
            since: Instant::ZERO,
            next: None,
            waited: Duration::ZERO,
            sent: 0,
            solicit_max: Duration::from_secs(3600),
        }
    }

    /// The link came up. A successor goes on with its predecessor's lease; after that, the link may lead to another network, so
    /// the lease is confirmed (§18.2.3).
    pub fn start(&mut self, now: Instant, random: &mut Random) {
        self.drop_expired(now);
        match (&self.lease, &self.state) {
            (Some(lease), State::Off) => {
                self.next = lease.renew;
                self.state = if lease.addresses.is_empty() { State::Informed } else { State::Bound };
            }
            (Some(lease), _) if !lease.addresses.is_empty() => {
                self.begin(State::Confirming { until: now + CONFIRM_MAX }, now, random);
            }
            _ => self.begin_anew(now, random),
        }
    }

    /// What a router, or the configuration, says. A lease lives on.
    pub fn set_mode(&mut self, now: Instant, mode: Mode, random: &mut Random) {
        if core::mem::replace(&mut self.mode, mode) == mode {
            return;
        }
        let has_addresses = self.lease.as_ref().is_some_and(|lease| !lease.addresses.is_empty());
        if !has_addresses {
            self.begin_anew(now, random);
        }
    }

    fn begin_anew(&mut self, now: Instant, random: &mut Random) {
        match self.mode {
            Mode::Nothing => (self.state, self.next) = (State::Off, None),
            Mode::Information => self.begin(State::Informing, now, random),
            Mode::Addresses => self.begin(State::Soliciting { best: None }, now, random),
        }
    }

    fn begin(&mut self, state: State, now: Instant, random: &mut Random) {
        self.begin_at(state, now + Duration::from_millis(random.below(DELAY_MAX_MS)), random);
    }

    fn begin_at(&mut self, state: State, at: Instant, random: &mut Random) {
        (self.state, self.xid, self.since) = (state, random.next_u32() >> 8, at);
        (self.next, self.waited, self.sent) = (Some(at), Duration::ZERO, 0);
    }

    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let lease = self.lease.iter().flat_map(|lease| &lease.addresses);
        let ends = lease.flat_map(|a| [a.valid, a.preferred]).flatten().filter(|end| *end > now);
        self.next.into_iter().chain(ends).min()
    }

    /// Whether a server's message may be for it.
    pub fn awaits_answer(&self) -> bool {
        !matches!(self.state, State::Off | State::Bound | State::Informed)
    }

    /// True: the last address has ended.
    fn drop_expired(&mut self, now: Instant) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        let had = !lease.addresses.is_empty();
        lease.addresses.retain(|a| a.valid.is_none_or(|end| end > now));
        let ended = had && lease.addresses.is_empty();
        if ended {
            self.lease = None;
        }
        ended
    }

    /// Lets addresses end; what is to be sent to all servers.
    pub fn expire(&mut self, now: Instant, random: &mut Random) -> Option<Vec<u8>> {
        if self.drop_expired(now) && !matches!(self.state, State::Declining { .. }) {
            self.begin_anew(now, random);
        }
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        match self.state.clone() {
            State::Off => {
                self.next = None;
                return None;
            }
            State::Soliciting { best: Some(offer) } if self.sent > 0 => {
                self.begin_at(State::Requesting { offer }, now, random);
            }
            State::Bound => self.begin_at(State::Renewing, now, random),
            // §18.2.12: settings alone are asked for anew.
            State::Informed => self.begin_at(State::Informing, now, random),
            State::Renewing if self.is_to_rebind(now) => self.begin_at(State::Rebinding, now, random),
            _ => {}
        }
        self.ask(now, random)
    }

    fn is_to_rebind(&self, now: Instant) -> bool {
        self.lease.as_ref().and_then(|lease| lease.rebind).is_some_and(|rebind| rebind <= now)
    }

    /// §7.6: how the message of this state is repeated, and until when.
    fn repeats(&self) -> (Repeats, Option<Instant>) {
        match &self.state {
            State::Soliciting { .. } => (Repeats { longest: self.solicit_max, ..repeats(1, 3600, 0) }, None),
            State::Requesting { .. } => (repeats(1, 30, 10), None),
            State::Confirming { until } => (repeats(1, 4, 0), Some(*until)),
            State::Renewing => (repeats(10, 600, 0), self.lease.as_ref().and_then(|l| l.rebind)),
            State::Rebinding => (repeats(10, 600, 0), None),
            State::Declining { .. } => (repeats(1, 3600, 4), None),
            _ => (repeats(1, 3600, 0), None),
        }
    }

    /// Sends the message of this state, again if nobody answered, or gives up.
    fn ask(&mut self, now: Instant, random: &mut Random) -> Option<Vec<u8>> {
        let (repeats, end) = self.repeats();
        let is_over = repeats.count > 0 && self.sent >= repeats.count || end.is_some_and(|end| end <= now);
        if is_over && self.sent > 0 {
            match self.state {
                // §18.2.3: without an answer, the addresses are used on.
                State::Confirming { .. } => self.bind(),
                _ => self.begin_anew(now, random),
            }
            return None;
        }
        // §15: RT is twice the last, with a tenth of chance.
        let wait = match self.waited {
            Duration::ZERO => repeats.first,
            last => (last * 2).min(repeats.longest),
        };
        let ms = wait.as_millis() as u64;
        // §18.2.1: the first wait for advertisements is not shortened by chance.
        let low =
            if matches!(self.state, State::Soliciting { .. }) && self.sent == 0 { ms } else { ms * 9 / 10 };
        self.waited = Duration::from_millis(low + random.below((ms * 11 / 10).saturating_sub(low) + 1));
        self.sent = self.sent.saturating_add(1);
        let next = now + self.waited;
        self.next = Some(end.map_or(next, |end| next.min(end)));
        Some(self.message(now))
    }

    fn message(&self, now: Instant) -> Vec<u8> {
        let held: Vec<Ipv6Addr> = self.lease.iter().flat_map(|l| &l.addresses).map(|a| a.address).collect();
        let server = self.lease.as_ref().map(|lease| &lease.server[..]);
        let (kind, server, addresses) = match &self.state {
            State::Requesting { offer } => {
                let offered = offer.addresses.iter().map(|(a, ..)| *a).collect();
                (Kind::Request, Some(&offer.server[..]), offered)
            }
            State::Confirming { .. } => (Kind::Confirm, None, held),
            State::Renewing => (Kind::Renew, server, held),
            State::Rebinding => (Kind::Rebind, None, held),
            State::Declining { address, server } => (Kind::Decline, Some(&server[..]), [*address].into()),
            State::Informing => (Kind::InformationRequest, None, Vec::new()),
            _ => (Kind::Solicit, None, Vec::new()),
        };
        let elapsed = (now.saturating_since(self.since).as_millis() / 10).min(0xffff) as u16;
        let association = (kind != Kind::InformationRequest).then_some((self.iaid, &addresses[..]));
        Message { kind, xid: self.xid, duid: &self.duid, server, elapsed, association }.bytes()
    }

    fn bind(&mut self) {
        self.state = State::Bound;
        self.next = self.lease.as_ref().and_then(|lease| lease.renew);
    }

    /// A message that came to the client's port.
    pub fn receive(&mut self, now: Instant, bytes: &[u8], random: &mut Random) {
        if !self.awaits_answer() {
            return;
        }
        let Some(reply) = parse(bytes, self.xid, &self.duid, self.iaid) else { return };
        if let Some(seconds) = reply.solicit_max_s {
            self.solicit_max = Duration::from_secs(seconds.into());
        }
        match (reply.kind, self.state.clone()) {
            (Kind::Advertise, State::Soliciting { best }) => self.offered(now, reply, best, random),
            (Kind::Reply, State::Requesting { offer }) if reply.server == offer.server => {
                match lease_of(now, &reply) {
                    Some(lease) if reply.status == SUCCESS => {
                        self.lease = Some(lease);
                        self.bind();
                    }
                    _ => self.begin(State::Soliciting { best: None }, now, random),
                }
            }
            (Kind::Reply, State::Confirming { .. }) if reply.status == NOT_ON_LINK => self.lose(now, random),
            (Kind::Reply, State::Confirming { .. }) if reply.status == SUCCESS => self.bind(),
            // The server of the lease was asked, and another has no say yet.
            (Kind::Reply, State::Renewing)
                if self.lease.as_ref().is_some_and(|l| l.server != reply.server) => {}
            (Kind::Reply, State::Renewing | State::Rebinding) => self.renewed(now, &reply, random),
            (Kind::Reply, State::Declining { server, .. }) if reply.server == server => {
                self.begin_anew(now, random)
            }
            (Kind::Reply, State::Informing) => {
                let Reply { server, name_servers, search, .. } = reply;
                let renew = Some(now + REFRESH);
                self.lease = Some(Lease { server, name_servers, search, renew, ..Lease::default() });
                (self.state, self.next) = (State::Informed, renew);
            }
            _ => {}
        }
    }

    /// §18.2.9: an offer of the best server is taken; the others may come until the first wait is over.
    fn offered(&mut self, now: Instant, reply: Reply, best: Option<Reply>, random: &mut Random) {
        if reply.status != SUCCESS || lease_of(now, &reply).is_none() {
            return;
        }
        if reply.preference == BEST_PREFERENCE || self.sent > 1 {
            return self.begin_at(State::Requesting { offer: reply }, now, random);
        }
        let is_better = best.as_ref().is_none_or(|best| reply.preference > best.preference);
        if is_better {
            self.state = State::Soliciting { best: Some(reply) };
        }
    }

    /// §18.2.10.1.
    fn renewed(&mut self, now: Instant, reply: &Reply, random: &mut Random) {
        match (reply.status, lease_of(now, reply)) {
            (SUCCESS, Some(mut lease)) => {
                // Addresses of which it says nothing live on as they are.
                let old = self.lease.take().map(|old| old.addresses).unwrap_or_default();
                let said = |a: &Address| reply.addresses.iter().any(|(said, ..)| *said == a.address);
                lease.addresses.extend(old.into_iter().filter(|a| !said(a)));
                lease.addresses.truncate(ADDRESSES_MAX);
                self.lease = Some(lease);
                self.bind();
            }
            // The server does not know the client any more: it is asked for the addresses again.
            (NO_BINDING, _) => {
                let held = self.lease.iter().flat_map(|l| &l.addresses).map(|a| (a.address, 0, 0)).collect();
                let offer = Reply { addresses: held, ..reply.clone() };
                self.begin_at(State::Requesting { offer }, now, random);
            }
            // All of them have lifetimes of zero.
            (SUCCESS, None) if !reply.addresses.is_empty() => self.lose(now, random),
            _ => {}
        }
    }

    fn lose(&mut self, now: Instant, random: &mut Random) {
        self.lease = None;
        self.begin_anew(now, random);
    }

    /// Another host has this address: the server is told (§18.2.8), and the client begins anew.
    pub fn conflict(&mut self, now: Instant, address: Ipv6Addr, random: &mut Random) {
        let Some(lease) = &mut self.lease else { return };
        let before = lease.addresses.len();
        lease.addresses.retain(|a| a.address != address);
        if lease.addresses.len() < before {
            let server = lease.server.clone();
            if lease.addresses.is_empty() {
                self.lease = None;
            }
            self.begin_at(State::Declining { address, server }, now, random);
        }
    }

    /// The interface gives its addresses back (§18.2.7).
    pub fn release(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let lease = self.lease.take().filter(|lease| !lease.addresses.is_empty())?;
        (self.state, self.next, self.xid) = (State::Off, None, random.next_u32() >> 8);
        let addresses: Vec<Ipv6Addr> = lease.addresses.iter().map(|a| a.address).collect();
        let message = Message {
            kind: Kind::Release,
            xid: self.xid,
            duid: &self.duid,
            server: Some(&lease.server),
            elapsed: 0,
            association: Some((self.iaid, &addresses)),
        };
        Some(message.bytes())
    }
}

#[cfg(test)]
mod tests;

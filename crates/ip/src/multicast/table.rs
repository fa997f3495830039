//! The groups of all interfaces, and when something is to be said about them.

use super::filter::Filter;
use super::member::Member;
use super::querier::{Querier, Version};
use super::wire::{Query, Record};
use super::{is_everybodys, is_reported};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use eft_base::address::without_zone;
use eft_base::{Instant, Random};
use eft_messages::transport::membership::{self, GROUPS_MAX};

/// The steps of one change of a filter come one by one; they are reported together, at most this much later.
const SETTLE: Duration = Duration::from_millis(1);
/// How long a transport's successor may take to begin its list.
const PATIENCE: Duration = Duration::from_secs(10);
/// Unsolicited Report Interval (RFC 9776 §8.11).
const REPEAT_MS: u64 = 1000;

/// A link and an IP version.
pub(super) type Place = (u8, bool);

/// What is to be said now on one link, in one IP version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Records(Vec<Record>),
    /// One group, to routers of this version; whether it is left.
    Older(Version, IpAddr, bool),
}

/// All groups.
#[derive(Default)]
pub(crate) struct Groups {
    members: BTreeMap<(u8, IpAddr), Member>,
    queriers: BTreeMap<Place, Querier>,
    /// No deadline is earlier.
    next: Option<Instant>,
    /// By the instance of udp.
    lists: BTreeMap<u8, List>,
}

/// What an instance of udp tells of its groups.
#[derive(Default)]
struct List {
    /// The last step that was taken.
    order: Option<u32>,
    /// When the groups are given up that a successor has not confirmed: it may have nothing to tell.
    stale_at: Option<Instant>,
}

/// The earlier of two moments.
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

fn at_random(now: Instant, random: &mut Random, within: Duration) -> Instant {
    now + Duration::from_millis(random.below((within.as_millis() as u64).max(1)))
}

impl Groups {
    /// Whether packets of `source` to `group` are wanted; addresses may have zones.
    pub fn admit(&self, interface: u8, group: IpAddr, source: IpAddr) -> bool {
        let group = without_zone(group);
        let member = self.members.get(&(interface, group));
        is_everybodys(group) || member.is_some_and(|m| m.wanted.admits(without_zone(source)))
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// An instance of udp is connected, for the first time or again: its list begins anew.
    pub fn transport_reborn(&mut self, now: Instant, from: u8) {
        let wanted = self.doubt(from);
        let list = self.lists.entry(from).or_default();
        list.order = None;
        if wanted {
            list.stale_at = Some(now + PATIENCE);
            self.next = earlier(self.next, list.stale_at);
        }
    }

    /// Nothing that this instance wants is confirmed any more. False: it wants nothing.
    fn doubt(&mut self, from: u8) -> bool {
        self.members.values_mut().map(|m| m.doubt(from)).filter(|wanted| *wanted).count() > 0
    }

    /// Gives up the groups that an instance has not confirmed.
    fn forget_unconfirmed(&mut self, now: Instant, from: u8) {
        if let Some(list) = self.lists.get_mut(&from) {
            list.stale_at = None;
        }
        let forgotten: Vec<_> =
            self.members.iter().filter(|(_, m)| m.lacks(from)).map(|(key, _)| *key).collect();
        for key in forgotten {
            self.change(now, from, key, |filter| {
                *filter = Filter::default();
                true
            });
        }
    }

    /// Takes a step of an instance's list. One that comes twice, or late, changes nothing. False: there is no room for it.
    pub fn step(
        &mut self,
        now: Instant,
        from: u8,
        (order, step): (u32, u8),
        (interface, group): (u8, IpAddr),
        source: IpAddr,
    ) -> bool {
        let list = self.lists.entry(from).or_default();
        let is_late = list.order.is_some_and(|last| (order.wrapping_sub(last) as i32) <= 0);
        if is_late {
            return true;
        }
        list.order = Some(order);
        match step {
            membership::BEGIN => {
                list.stale_at = None;
                self.doubt(from);
            }
            membership::END => self.forget_unconfirmed(now, from),
            _ if !group.is_multicast() => return false,
            membership::INCLUDE | membership::EXCLUDE => {
                return self.change(now, from, (interface, group), |filter| {
                    *filter = Filter::new(step == membership::EXCLUDE);
                    true
                });
            }
            membership::ADD => {
                return self.change(now, from, (interface, group), |filter| filter.insert(source));
            }
            membership::REMOVE => {
                return self.change(now, from, (interface, group), |filter| {
                    filter.remove(source);
                    true
                });
            }
            _ => return false,
        }
        true
    }

    /// Changes an instance's filter of a group; the change is reported soon.
    fn change(
        &mut self,
        now: Instant,
        from: u8,
        key: (u8, IpAddr),
        f: impl FnOnce(&mut Filter) -> bool,
    ) -> bool {
        if !self.members.contains_key(&key) && self.members.len() >= GROUPS_MAX {
            return false;
        }
        let member = self.members.entry(key).or_insert_with(Member::new);
        let fits = member.change_wish(from, f);
        if is_reported(key.1) {
            let soon = now + SETTLE;
            member.change_at = Some(member.change_at.map_or(soon, |at| at.min(soon)));
            self.next = earlier(self.next, member.change_at);
        } else if member.is_over() {
            self.members.remove(&key);
        }
        fits
    }

    /// The groups that the host itself is a member of on an interface, whatever transports want.
    pub fn set_own(&mut self, now: Instant, interface: u8, groups: &[IpAddr]) {
        for group in groups {
            self.members.entry((interface, *group)).or_insert_with(Member::new);
        }
        for ((_, group), member) in self.members.iter_mut().filter(|((i, _), _)| *i == interface) {
            let before = core::mem::replace(&mut member.own, groups.contains(group));
            if before != member.own {
                member.change_at = Some(now + SETTLE);
                self.next = earlier(self.next, member.change_at);
            }
        }
    }

    /// A link is up: its routers are told everything again.
    pub fn link_up(&mut self, now: Instant, interface: u8) {
        self.report_again(now, |(i, _)| *i == interface);
    }

    /// What was reported without an address of our own is reported again with one (RFC 3590 §4).
    pub fn has_spokesman(&mut self, now: Instant, interface: u8) {
        self.report_again(now, |(i, group)| *i == interface && group.is_ipv6());
    }

    fn report_again(&mut self, now: Instant, which: impl Fn(&(u8, IpAddr)) -> bool) {
        let here = self.members.iter_mut().filter(|(key, _)| which(key) && is_reported(key.1));
        for (_, member) in here {
            member.forget_reports();
            member.change_at = Some(now + SETTLE);
            self.next = earlier(self.next, member.change_at);
        }
    }

    /// A router asks (RFC 9776 §5.2, RFC 9777 §6.2).
    pub(super) fn hear(&mut self, now: Instant, random: &mut Random, (interface, ipv6): Place, query: Query) {
        let Query { version, group, sources, delay, robustness, interval } = query;
        let querier = self.queriers.entry((interface, ipv6)).or_default();
        querier.hear(now, version, robustness, interval, delay);
        let speaks = querier.version(now);
        let at = at_random(now, random, delay);
        // Rule 1: an answer about everything that comes sooner suffices.
        if querier.answer_at.is_some_and(|before| before <= at) {
            return;
        }
        match group {
            None if speaks == Version::Third => {
                querier.answer_at = Some(at);
                self.next = earlier(self.next, Some(at));
            }
            // Older versions answer for each group by itself (RFC 2236 §3).
            None => {
                let here = self.members.iter_mut().filter(|((i, group), member)| {
                    *i == interface
                        && group.is_ipv6() == ipv6
                        && is_reported(*group)
                        && !member.filter().is_nothing()
                });
                for (_, member) in here {
                    let at = at_random(now, random, delay);
                    member.hear(at, Vec::new());
                    self.next = earlier(self.next, member.answer_at);
                }
            }
            Some(group) => {
                if let Some(member) = self.members.get_mut(&(interface, group)).filter(|_| is_reported(group))
                {
                    member.hear(at, sources);
                    self.next = earlier(self.next, member.answer_at);
                }
            }
        }
    }

    /// Another host has reported a group to routers of an older version: we need not (RFC 2236 §3, RFC 2710 §4).
    pub fn hear_report(&mut self, now: Instant, (interface, ipv6): Place, group: IpAddr) {
        let speaks = self.queriers.get(&(interface, ipv6)).map_or(Version::Third, |q| q.version(now));
        if let (true, Some(m)) = (speaks < Version::Third, self.members.get_mut(&(interface, group))) {
            m.answer_at = None;
            m.reported_last = false;
        }
    }

    /// What is due, by link and IP version. Routers are told nothing about a group for which `may_speak` says no.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
        random: &mut Random,
        mut may_speak: impl FnMut(u8, IpAddr) -> bool,
    ) -> Vec<(Place, Said)> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let stale = self.lists.iter().filter(|(_, list)| is_due(list.stale_at)).map(|(from, _)| *from);
        for from in stale.collect::<Vec<u8>>() {
            self.forget_unconfirmed(now, from);
        }
        let mut said: Vec<(Place, Said)> = Vec::new();
        let mut records: BTreeMap<Place, Vec<Record>> = BTreeMap::new();
        let mut general: Vec<Place> = Vec::new();
        for (place, querier) in &mut self.queriers {
            if is_due(querier.answer_at) {
                querier.answer_at = None;
                general.push(*place);
            }
        }
        for ((interface, group), member) in &mut self.members {
            let place = (*interface, group.is_ipv6());
            let is_asked = general.contains(&place) && is_reported(*group);
            if !is_asked && !is_due(member.answer_at) && !is_due(member.change_at) {
                continue;
            }
            if !may_speak(*interface, *group) {
                member.say_nothing();
                continue;
            }
            let querier = self.queriers.get(&place);
            let version = querier.map_or(Version::Third, |q| q.version(now));
            let robustness = querier.map_or(Querier::default().robustness, |q| q.robustness);
            let to = records.entry(place).or_default();
            if is_asked {
                to.extend(member.current(*group));
            }
            if is_due(member.answer_at) {
                let answer = member.answer(*group);
                match version {
                    Version::Third => to.extend(answer),
                    _ if !member.filter().is_nothing() => {
                        member.reported_last = true;
                        said.push((place, Said::Older(version, *group, false)));
                    }
                    _ => {}
                }
            }
            if is_due(member.change_at) {
                let changes = member.changes(*group, robustness);
                let again = now + Duration::from_millis(1 + random.below(REPEAT_MS));
                member.change_at = (!member.is_reported()).then_some(again);
                match version {
                    Version::Third => to.extend(changes),
                    _ if member.filter().is_nothing() => {
                        // Said once, by who reported last; IGMPv1 has no such message.
                        if member.reported_last && version == Version::Second {
                            said.push((place, Said::Older(version, *group, true)));
                        }
                        member.change_at = None;
                    }
                    _ => {
                        member.reported_last = true;
                        said.push((place, Said::Older(version, *group, false)));
                    }
                }
            }
        }
        self.members.retain(|_, m| !m.is_over());
        let moments = self.members.values().flat_map(|m| [m.change_at, m.answer_at]);
        let all = moments
            .chain(self.queriers.values().map(|q| q.answer_at))
            .chain(self.lists.values().map(|list| list.stale_at));
        self.next = all.flatten().min();
        let spoken = records.into_iter().filter(|(_, records)| !records.is_empty());
        said.extend(spoken.map(|(place, records)| (place, Said::Records(records))));
        said
    }
}

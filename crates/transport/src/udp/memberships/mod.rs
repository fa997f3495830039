//! Memberships of sockets in groups (RFC 3376 §3.1, RFC 3678): the durable table, and the rules of Linux for changing them.
//!
//! [`entry`] is the durable form, [`telling`] how ip learns what is wanted on each interface.

pub mod entry;
mod filter;
mod telling;

use super::durable::{Blocks, bit};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_arena::Table;
use eft_base::address::without_zone;
use eft_base::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOBUFS};
use eft_base::hash::{Key, Map};
use eft_base::{RequestId, WireAddress};
use eft_messages::sockets::membership;
use entry::{Entry, kind};
use filter::Begun;
use telling::Telling;

/// Linux's limits: `igmp_max_memberships` of a socket, `igmp_max_msf` and `mld_max_msf` sources of each.
const GROUPS_MAX: usize = 20;
const SOURCES4_MAX: usize = 10;
const SOURCES6_MAX: usize = 64;
/// Groups of a socket in IPv6, which Linux limits by its memory.
const GROUPS6_MAX: usize = 512;
/// No change needs more entries.
const ENTRIES_OF_A_CHANGE: usize = 3;

/// A group on an interface, without a zone.
pub(super) type Place = (u8, WireAddress);

/// A request to change a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub token: u16,
    /// One of [`membership`].
    pub change: u8,
    pub place: Place,
    pub source: WireAddress,
}

/// All memberships.
pub(super) struct Memberships {
    pub entries: Table<Entry>,
    /// Free entries; those in front are taken last.
    free: Vec<u32>,
    /// The entries of each socket.
    of: Map<u32, Vec<u32>>,
    telling: Telling,
    /// Filters of sockets that are not whole yet.
    begun: Map<u32, Begun>,
}

impl Memberships {
    /// Takes over the entries of the sockets that live or may be made anew; the others are freed.
    pub fn open(entries: Table<Entry>, blocks: &Blocks, key: Key) -> Memberships {
        let mut all = Memberships {
            entries,
            free: Vec::new(),
            of: Map::with_hasher(key),
            telling: Telling::default(),
            begun: Map::with_hasher(key),
        };
        for i in (0..all.entries.len() as u32).rev() {
            let e = all.entries[i];
            if e.kind == kind::FREE {
                all.free.push(i);
                continue;
            }
            let block = ((e.block as usize) < blocks.len()).then(|| blocks[e.block]);
            let generation = block.and_then(|block| match () {
                () if block.has(bit::LOST) => Some(e.generation),
                () => block.has(bit::USED).then_some(block.generation),
            });
            if e.is_sane(generation) {
                all.of.entry(e.block).or_default().push(i);
                all.index(i);
            } else {
                all.entries[i] = Entry::free();
                all.free.push(i);
            }
        }
        all
    }

    /// There are more entries.
    pub fn grow(&mut self, more: core::ops::Range<u32>) {
        self.free.splice(0..0, more.rev());
    }

    /// Whether a change of this socket may need more entries than there are.
    pub fn is_short(&self, block: u32) -> bool {
        self.free.len() < ENTRIES_OF_A_CHANGE + self.begun.get(&block).map_or(0, |begun| begun.sources.len())
    }

    fn index(&mut self, i: u32) {
        let e = self.entries[i];
        if e.is_membership() {
            self.telling.join((e.interface, e.group), e.block);
        }
    }

    fn of(&self, block: u32) -> impl Iterator<Item = (u32, &Entry)> {
        let all = self.of.get(&block).map(Vec::as_slice).unwrap_or_default();
        all.iter().map(|i| (*i, &self.entries[*i]))
    }

    fn insert(&mut self, e: Entry) -> Result<(), i32> {
        let i = self.free.pop().ok_or(ENOBUFS)?;
        self.entries[i] = e;
        self.of.entry(e.block).or_default().push(i);
        self.index(i);
        Ok(())
    }

    /// Frees a socket's entries that `which` names.
    fn remove(&mut self, block: u32, which: impl Fn(&Entry) -> bool) {
        let Some(list) = self.of.get_mut(&block) else { return };
        let mut gone = Vec::new();
        list.retain(|i| {
            let goes = which(&self.entries[*i]);
            if goes {
                gone.push(*i);
            }
            !goes
        });
        if list.is_empty() {
            self.of.remove(&block);
        }
        for i in gone {
            let e = self.entries[i];
            if e.is_membership() {
                self.telling.leave((e.interface, e.group), e.block);
            }
            self.entries[i] = Entry::free();
            self.free.push(i);
        }
    }

    /// The generation of a socket, as its entries name it; `None`: it has none.
    pub fn generation(&self, block: u32) -> Option<u32> {
        self.of(block).next().map(|(_, e)| e.generation)
    }

    /// A socket is gone.
    pub fn release(&mut self, block: u32) {
        if self.of.contains_key(&block) {
            self.remove(block, |_| true);
        }
        self.telling.forget(block);
        self.begun.remove(&block);
    }

    /// Whether a socket wants packets of `source` to a group (RFC 3376 §3.2, RFC 3678 §3): its own membership decides; if it has
    /// none, `others_suffice`, which is IP_MULTICAST_ALL. In IPv6 the interface does not matter, as on Linux.
    pub fn admit(
        &self,
        block: u32,
        (interface, group): Place,
        source: WireAddress,
        others_suffice: bool,
    ) -> bool {
        if !self.of.contains_key(&block) {
            return others_suffice;
        }
        let group = plain(group);
        let here =
            |e: &Entry| e.group == group && (IpAddr::from(group).is_ipv6() || e.interface == interface);
        let Some((_, own)) = self.of(block).find(|(_, e)| e.is_membership() && here(e)) else {
            return others_suffice;
        };
        let (own, source) = (*own, plain(source));
        self.lists(&own, source) == (own.kind == kind::INCLUDE)
    }

    /// Whether a socket of this host is a member of a group, on any interface.
    pub fn has_members(&self, group: WireAddress) -> bool {
        self.telling.has_members(plain(group))
    }

    fn lists(&self, membership: &Entry, source: WireAddress) -> bool {
        self.sources(membership).any(|s| s == source)
    }

    /// The sources that are listed for a membership.
    fn sources(&self, m: &Entry) -> impl Iterator<Item = WireAddress> {
        let (group, interface) = (m.group, m.interface);
        let its = move |e: &Entry| e.kind == kind::SOURCE && e.group == group && e.interface == interface;
        self.of(m.block).filter(move |(_, e)| its(e)).map(|(_, e)| e.source)
    }

    /// Carries a request out, once. Returns its errno.
    pub fn request(&mut self, block: u32, generation: u32, wanted: Change) -> i32 {
        let change =
            Change { place: (wanted.place.0, plain(wanted.place.1)), source: plain(wanted.source), ..wanted };
        let (interface, group) = change.place;
        if change.change == membership::FILTER_TELL {
            let owner = Entry { block, generation, interface, group, ..Entry::free() };
            return if self.find(owner).is_some() { 0 } else { EADDRNOTAVAIL };
        }
        let asked = |e: &Entry| {
            (e.token, e.change, e.interface, e.group, e.source)
                == (change.token.into(), change.change, interface, group, change.source)
        };
        if let Some((_, answer)) = self.of(block).find(|(_, e)| e.kind == kind::ANSWER && asked(e)) {
            return answer.errno;
        }
        let owner = Entry { block, generation, interface, group, ..Entry::free() };
        let errno = self.carry_out(owner, change).err().unwrap_or(0);
        self.remove(block, |e| e.kind == kind::ANSWER);
        let answer = Entry {
            kind: kind::ANSWER,
            change: change.change,
            token: change.token.into(),
            errno,
            source: change.source,
            ..owner
        };
        match self.insert(answer) {
            Ok(()) => errno,
            Err(full) => full,
        }
    }

    /// As Linux does it (`ip_mc_join_group`, `ip_mc_source` and their like for IPv6).
    fn carry_out(&mut self, owner: Entry, c: Change) -> Result<(), i32> {
        if !IpAddr::from(owner.group).is_multicast() {
            return Err(EINVAL);
        }
        match c.change {
            membership::JOIN => self.join(owner, kind::EXCLUDE),
            membership::LEAVE => {
                self.find(owner).ok_or(EADDRNOTAVAIL)?;
                self.leave(owner);
                Ok(())
            }
            membership::JOIN_SOURCE => {
                match self.join(owner, kind::INCLUDE) {
                    Ok(()) | Err(EADDRINUSE) => {}
                    Err(errno) => return Err(errno),
                }
                self.change_source(owner, c.source, kind::INCLUDE, true)
            }
            membership::LEAVE_SOURCE => self.change_source(owner, c.source, kind::INCLUDE, false),
            membership::BLOCK => self.change_source(owner, c.source, kind::EXCLUDE, true),
            membership::UNBLOCK => self.change_source(owner, c.source, kind::EXCLUDE, false),
            membership::FILTER_BEGIN => {
                self.begun.insert(owner.block, Begun { place: c.place, sources: Vec::new() });
                Ok(())
            }
            membership::FILTER_SOURCE => self.add_to_filter(owner, c.source),
            membership::FILTER_INCLUDE => self.replace_filter(owner, kind::INCLUDE, c.source),
            membership::FILTER_EXCLUDE => self.replace_filter(owner, kind::EXCLUDE, c.source),
            _ => Err(EINVAL),
        }
    }

    fn find(&self, owner: Entry) -> Option<u32> {
        let its = |e: &Entry| e.is_membership() && (e.interface, e.group) == (owner.interface, owner.group);
        self.of(owner.block).find(|(_, e)| its(e)).map(|(i, _)| i)
    }

    fn join(&mut self, owner: Entry, kind: u8) -> Result<(), i32> {
        if self.find(owner).is_some() {
            return Err(EADDRINUSE);
        }
        let ipv6 = IpAddr::from(owner.group).is_ipv6();
        let alike = |e: &Entry| e.is_membership() && IpAddr::from(e.group).is_ipv6() == ipv6;
        let max = if ipv6 { GROUPS6_MAX } else { GROUPS_MAX };
        if self.of(owner.block).filter(|(_, e)| alike(e)).count() >= max || self.is_short(owner.block) {
            return Err(ENOBUFS);
        }
        self.insert(Entry { kind, ..owner })
    }

    fn leave(&mut self, owner: Entry) {
        let place = (owner.interface, owner.group);
        self.remove(owner.block, |e| e.kind != kind::ANSWER && (e.interface, e.group) == place);
    }

    /// Adds a source to a membership's list, or takes it out. `mode` is what the list is to mean; an empty list may change its
    /// meaning, unless there was one before.
    fn change_source(&mut self, owner: Entry, source: WireAddress, mode: u8, add: bool) -> Result<(), i32> {
        let i = self.find(owner).ok_or(EINVAL)?;
        let mut m = self.entries[i];
        if m.kind != mode {
            if m.change != 0 {
                return Err(EINVAL);
            }
            self.entries[i].kind = mode;
            m = self.entries[i];
            self.telling.touch((m.interface, m.group));
        }
        let listed: usize = self.sources(&m).count();
        let lists = self.lists(&m, source);
        let max = if IpAddr::from(m.group).is_ipv6() { SOURCES6_MAX } else { SOURCES4_MAX };
        match (add, lists) {
            (true, _) if listed >= max => return Err(ENOBUFS),
            (true, true) | (false, false) => return Err(EADDRNOTAVAIL),
            (true, false) => {
                self.insert(Entry { kind: kind::SOURCE, source, ..owner })?;
                self.entries[i].change = 1;
            }
            // Nothing included is no membership.
            (false, true) if listed == 1 && mode == kind::INCLUDE => {
                self.leave(owner);
                return Ok(());
            }
            (false, true) => {
                let place = (m.interface, m.group);
                let its = |e: &Entry| {
                    e.kind == kind::SOURCE && (e.interface, e.group) == place && e.source == source
                };
                self.remove(owner.block, its);
            }
        }
        self.telling.touch((m.interface, m.group));
        Ok(())
    }

    /// A request is answered when ip knows its group as it is wanted now. True: it does already.
    pub fn await_told(&mut self, block: u32, generation: u32, request: RequestId, place: Place) -> bool {
        self.telling.await_told(block, generation, request, (place.0, plain(place.1)))
    }
}

fn plain(address: WireAddress) -> WireAddress {
    without_zone(address.into()).into()
}

#[cfg(test)]
mod tests;

//! A whole filter at once (RFC 3678 §4.1.3, §5.1.3): as `ip_mc_msfilter` and `ip6_mc_msfilter` of Linux do it.
//!
//! Its sources come one by one and have no effect until it is whole. They are not durable: if they are lost meanwhile, who asked
//! begins again.

use super::entry::{Entry, kind};
use super::{Memberships, Place, SOURCES4_MAX, SOURCES6_MAX};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_base::errno::{EADDRNOTAVAIL, EAGAIN, EINVAL, ENOBUFS};
use eft_messages::sockets::membership;

/// A filter of which more is to come.
pub(super) struct Begun {
    pub place: Place,
    pub sources: Vec<WireAddress>,
}

fn most(group: WireAddress) -> usize {
    if IpAddr::from(group).is_ipv6() { SOURCES6_MAX } else { SOURCES4_MAX }
}

impl Memberships {
    pub(super) fn add_to_filter(&mut self, owner: Entry, source: WireAddress) -> Result<(), i32> {
        let place = (owner.interface, owner.group);
        let begun = self.begun.get_mut(&owner.block).filter(|begun| begun.place == place).ok_or(EAGAIN)?;
        if begun.sources.len() >= most(owner.group) {
            return Err(ENOBUFS);
        }
        begun.sources.push(source);
        Ok(())
    }

    /// The filter is whole. Without a source that is wanted, the socket leaves the group.
    pub(super) fn replace_filter(&mut self, owner: Entry, mode: u8, count: WireAddress) -> Result<(), i32> {
        let place = (owner.interface, owner.group);
        let count = u128::from_be_bytes(count.0) as usize;
        let begun = self.begun.remove(&owner.block).filter(|begun| begun.place == place).ok_or(EAGAIN)?;
        let mut sources = begun.sources;
        if sources.len() != count {
            return Err(EAGAIN);
        }
        let found = self.find(owner);
        if mode == kind::INCLUDE && sources.is_empty() {
            found.ok_or(EADDRNOTAVAIL)?;
            self.leave(owner);
            return Ok(());
        }
        let i = found.ok_or(EINVAL)?;
        sources.sort_unstable_by_key(|source| source.0);
        sources.dedup();
        let listed = |e: &Entry| e.kind == kind::SOURCE && (e.interface, e.group) == place;
        let gone = self.of(owner.block).filter(|(_, e)| listed(e)).count();
        // The answer takes one.
        if self.free.len() + gone < sources.len() + 1 {
            return Err(ENOBUFS);
        }
        self.remove(owner.block, listed);
        // As Linux, which forgets a list that is empty.
        self.entries[i].change = u8::from(!sources.is_empty());
        self.entries[i].kind = mode;
        for source in sources {
            self.insert(Entry { kind: kind::SOURCE, source, ..owner })?;
        }
        self.telling.touch(place);
        Ok(())
    }

    /// What [`membership::FILTER_TELL`] is answered: a source, and how many there are of which kind.
    pub fn tell_filter(
        &self,
        block: u32,
        (interface, group): Place,
        index: WireAddress,
    ) -> (WireAddress, u16) {
        let owner = Entry { block, interface, group: super::plain(group), ..Entry::free() };
        let Some(i) = self.find(owner) else { return Default::default() };
        let m = self.entries[i];
        let index = u128::from_be_bytes(index.0) as usize;
        let kind = if m.kind == kind::EXCLUDE { membership::EXCLUDED } else { 0 };
        (self.sources(&m).nth(index).unwrap_or_default(), self.sources(&m).count() as u16 | kind)
    }
}

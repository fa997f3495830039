//! What ip is told: for each group of each interface the filter that follows from the memberships of all sockets (RFC 3376 §3.2).
//!
//! One step is under way at a time: the next goes when ip has answered, so that neither a lost, a late nor a repeated message can
//! leave ip with anything but what is wanted. When ip is reborn the whole list is told again.

use super::entry::{Entry, kind};
use super::{Memberships, Place};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use eft_base::{RequestId, WireAddress};
use eft_messages::transport::{TransportToIp, membership};

/// How far ip has been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// ip is not connected.
    #[default]
    Away,
    /// The list is to begin.
    Begin,
    /// Its groups are told, then its end.
    List,
    /// Changes alone are told.
    Changes,
}

/// A filter as ip knows it, or as it is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filter {
    exclude: bool,
    sources: BTreeSet<WireAddress>,
}

/// A request of sockets that waits until ip knows what it changed.
struct Waiting {
    block: u32,
    generation: u32,
    request: RequestId,
    place: Place,
}

/// A request that can be answered: the socket's block and generation, and the request.
pub(in crate::udp) type Answer = (u32, u32, RequestId);

#[derive(Default)]
pub(super) struct Telling {
    /// The sockets that are members of each group.
    members: BTreeMap<Place, Vec<u32>>,
    phase: Phase,
    told: BTreeMap<Place, Filter>,
    /// Groups about which ip may not know the present filter.
    dirty: BTreeSet<Place>,
    /// The order of the last step.
    order: u32,
    /// The step that ip has not answered.
    under_way: Option<(u8, Place, WireAddress)>,
    waiting: Vec<Waiting>,
}

impl Telling {
    pub fn join(&mut self, place: Place, block: u32) {
        self.members.entry(place).or_default().push(block);
        self.touch(place);
    }

    pub fn leave(&mut self, place: Place, block: u32) {
        if let Some(list) = self.members.get_mut(&place) {
            list.retain(|b| *b != block);
            if list.is_empty() {
                self.members.remove(&place);
            }
        }
        self.touch(place);
    }

    /// The filter of a group may have changed.
    pub fn touch(&mut self, place: Place) {
        self.dirty.insert(place);
    }

    pub fn has_members(&self, group: WireAddress) -> bool {
        self.members.keys().any(|(_, g)| *g == group)
    }

    /// A socket is gone, and nobody waits for its answers.
    pub fn forget(&mut self, block: u32) {
        self.waiting.retain(|w| w.block != block);
    }

    pub fn await_told(&mut self, block: u32, generation: u32, request: RequestId, place: Place) -> bool {
        if self.is_told(place) {
            return true;
        }
        self.waiting.retain(|w| w.request != request);
        self.waiting.push(Waiting { block, generation, request, place });
        false
    }

    fn is_told(&self, place: Place) -> bool {
        self.phase == Phase::Changes && !self.dirty.contains(&place)
    }

    fn message(&self) -> Option<TransportToIp> {
        let (step, (interface, group), source) = self.under_way?;
        Some(TransportToIp::Group { order: self.order, step, interface, group, source })
    }
}

impl Memberships {
    /// ip is connected, for the first time or again: it gets the whole list.
    pub fn ip_reborn(&mut self) {
        let t = &mut self.telling;
        t.under_way = None;
        t.told.clear();
        t.dirty = t.members.keys().copied().collect();
        t.phase = Phase::Begin;
    }

    /// The next message to ip, if it has answered the last.
    pub fn next_step(&mut self) -> Option<TransportToIp> {
        if self.telling.under_way.is_some() {
            return None;
        }
        let nothing = (0, WireAddress::default());
        let step = match self.telling.phase {
            Phase::Away => None,
            // Without a member there is nothing to tell, and ip drops by itself what no list confirms. An ip of an older
            // release knows no lists.
            Phase::Begin => {
                (!self.telling.dirty.is_empty()).then_some((membership::BEGIN, nothing, nothing.1))
            }
            Phase::List => self.next_difference().or(Some((membership::END, nothing, nothing.1))),
            Phase::Changes => self.next_difference(),
        };
        let t = &mut self.telling;
        t.under_way = Some(step?);
        t.order = t.order.wrapping_add(1);
        t.message()
    }

    /// The step that ip has not answered, again.
    pub fn repeated_step(&self) -> Option<TransportToIp> {
        self.telling.message()
    }

    /// Whether ip owes an answer.
    pub fn is_waiting(&self) -> bool {
        self.telling.under_way.is_some()
    }

    /// ip has taken a step. False: it is not the one under way.
    pub fn stepped(&mut self, order: u32) -> bool {
        let t = &mut self.telling;
        let Some((step, place, source)) = t.under_way.filter(|_| order == t.order) else {
            return false;
        };
        t.under_way = None;
        match step {
            membership::BEGIN => t.phase = Phase::List,
            membership::END => t.phase = Phase::Changes,
            membership::INCLUDE | membership::EXCLUDE => {
                let exclude = step == membership::EXCLUDE;
                t.told.insert(place, Filter { exclude, sources: BTreeSet::new() });
            }
            membership::ADD => {
                t.told.entry(place).or_default().sources.insert(source);
            }
            _ => {
                t.told.entry(place).or_default().sources.remove(&source);
            }
        }
        true
    }

    /// The requests whose change ip knows by now.
    pub fn take_answers(&mut self) -> Vec<Answer> {
        if self.telling.waiting.is_empty() {
            return Vec::new();
        }
        self.settle();
        let t = &mut self.telling;
        let told = |w: &Waiting| t.phase == Phase::Changes && !t.dirty.contains(&w.place);
        let done = t.waiting.extract_if(.., |w| told(w));
        done.map(|w| (w.block, w.generation, w.request)).collect()
    }

    /// Forgets which groups ip knows as they are wanted.
    fn settle(&mut self) {
        if self.telling.under_way.is_none() {
            while let Some(place) = self.telling.dirty.first().copied() {
                if self.difference(place).is_some() {
                    return;
                }
                self.telling.dirty.remove(&place);
                let over = |f: &Filter| !f.exclude && f.sources.is_empty();
                if self.telling.told.get(&place).is_some_and(over) {
                    self.telling.told.remove(&place);
                }
            }
        }
    }

    fn next_difference(&mut self) -> Option<(u8, Place, WireAddress)> {
        self.settle();
        let place = self.telling.dirty.first().copied()?;
        self.difference(place)
    }

    /// The next step that brings ip's filter of a group nearer to what is wanted.
    fn difference(&self, place: Place) -> Option<(u8, Place, WireAddress)> {
        let wanted = self.wanted(place);
        let step = |what, source| Some((what, place, source));
        let Some(told) = self.telling.told.get(&place) else {
            let nothing = !wanted.exclude && wanted.sources.is_empty();
            let mode = if wanted.exclude { membership::EXCLUDE } else { membership::INCLUDE };
            return step(mode, WireAddress::default()).filter(|_| !nothing);
        };
        if told.exclude != wanted.exclude {
            let mode = if wanted.exclude { membership::EXCLUDE } else { membership::INCLUDE };
            return step(mode, WireAddress::default());
        }
        if let Some(new) = wanted.sources.difference(&told.sources).next() {
            return step(membership::ADD, *new);
        }
        told.sources.difference(&wanted.sources).next().and_then(|gone| step(membership::REMOVE, *gone))
    }

    /// The filter of a group on an interface (RFC 3376 §3.2).
    fn wanted(&self, (interface, group): Place) -> Filter {
        let sockets = self.telling.members.get(&(interface, group));
        let owner = |block: &u32| Entry { block: *block, interface, group, ..Entry::free() };
        let all: Vec<Entry> = sockets
            .into_iter()
            .flatten()
            .filter_map(|block| self.find(owner(block)).map(|i| self.entries[i]))
            .collect();
        let included = all.iter().filter(|m| m.kind == kind::INCLUDE);
        let included: BTreeSet<WireAddress> = included.flat_map(|m| self.sources(m)).collect();
        let mut excluding = all.iter().filter(|m| m.kind == kind::EXCLUDE);
        let Some(first) = excluding.next() else {
            return Filter { exclude: false, sources: included };
        };
        let mut sources: BTreeSet<WireAddress> = self.sources(first).collect();
        sources.retain(|s| !included.contains(s));
        for m in excluding {
            sources.retain(|s| self.lists(m, *s));
        }
        Filter { exclude: true, sources }
    }
}

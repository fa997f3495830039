//! The state table: a working copy that is searched, and a copy in the arena that survives a crash.
//!
//! The arena ([`eft_arena`]) holds an entry without pointers for each state. An entry is written when its state begins, changes
//! or ends, and when its expiry has moved by a second; so a crash loses less than a second of it. What a turn writes takes effect
//! all at once. On opening, every entry is checked: damaged ones are forgotten (a rule must admit their connections again), intact
//! ones are recovered, and those of which one bit has changed.

mod layout1;
mod versions;

pub use versions::{convert, revert};

use crate::config::FilterConfig;
use crate::state::{Seen, State};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;
use eft_arena::docket::{self, Docket};
use eft_arena::{Arena, Fuse, Layout, Refused, Soundness, Sums, Table};
use eft_base::hash::Key;
use eft_base::{Instant, Random};
use eft_channel::Segment;
use eft_messages::filter::Flow;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Its version changes with the layout of [`Entry`] and with the checksums.
const LAYOUT: Layout =
    Layout { magic: *b"eft-flt\0", version: 3, items: &[size_of::<Entry>()], sums: Sums::Second };
const NONE: u32 = u32::MAX;
/// How much of the newest expiry a crash may lose.
const SLACK: Duration = Duration::from_secs(1);
/// Entries examined to find one to evict.
const EVICTION_PROBES: usize = 16;

/// A state as it lies in the arena. 64 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Entry {
    low: [u8; 16],
    high: [u8; 16],
    low_port: u16,
    high_port: u16,
    protocol: u8,
    opener: u8,
    other: u8,
    /// Bit 0 in use, bit 1 opener is low, bit 2 inbound.
    flags: u8,
    created_ns: u64,
    expires_ns: u64,
    /// 1: [`State::granted`].
    granted: u32,
    /// Nothing; in [`layout1`] the checksum.
    last: u32,
}

const _: () = assert!(size_of::<Entry>() == 64);

/// Bytes of the arena that this configuration needs.
pub fn arena_len(config: &FilterConfig) -> usize {
    LAYOUT.arena_len(config.states)
}

/// Whether a filter would find the states of this arena again. Changes nothing.
pub fn examine(arena: &Segment, config: &FilterConfig) -> Result<(), Refused> {
    match layout1::is_one(arena) {
        true => Err(Refused::Older { theirs: 1, ours: LAYOUT.version }),
        false => eft_arena::examine(arena, &LAYOUT, config.states),
    }
}

/// What the arena's last owner answered when it died, for people.
pub fn running_input(arena: &Segment) -> Option<String> {
    docket::running_input(arena, |_| None)
}

impl Entry {
    fn new(s: &State) -> Entry {
        Entry {
            low: s.flow.low.0,
            high: s.flow.high.0,
            low_port: s.flow.low.1,
            high_port: s.flow.high.1,
            protocol: s.flow.protocol,
            opener: s.opener as u8,
            other: s.other as u8,
            flags: 1 | (s.opener_is_low as u8) << 1 | (s.inbound as u8) << 2,
            created_ns: s.created.as_nanos(),
            expires_ns: s.expires.as_nanos(),
            granted: s.granted as u32,
            last: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.as_bytes().iter().all(|b| *b == 0)
    }

    fn state(&self) -> Option<State> {
        if self.flags & 1 == 0 || self.flags > 7 {
            return None;
        }
        let (low, high) = ((self.low, self.low_port), (self.high, self.high_port));
        (low <= high).then_some(())?;
        Some(State {
            flow: Flow { low, high, protocol: self.protocol },
            opener_is_low: self.flags & 2 != 0,
            inbound: self.flags & 4 != 0,
            opener: Seen::from_u8(self.opener)?,
            other: Seen::from_u8(self.other)?,
            created: Instant(self.created_ns),
            expires: Instant(self.expires_ns),
            granted: self.granted != 0,
        })
    }
}

struct Slot {
    state: Option<State>,
    /// The expiry that is written in the arena.
    written_expiry: Instant,
    /// ip was asked when its grant was last used, and has not answered.
    recalled: bool,
    /// Next in the hash chain, or in the free list.
    next: u32,
}

/// The states, bounded by the arena.
pub(crate) struct States {
    arena: Arena,
    entries: Table<Entry>,
    slots: Vec<Slot>,
    buckets: Vec<u32>,
    free: u32,
    len: usize,
    /// Attackers choose addresses and ports; they must not be able to choose the bucket.
    secret: Key,
    evict_at: usize,
    /// Off only where it is measured what that costs.
    commits: bool,
}

/// What was found in the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    pub recovered: u64,
    pub damaged: u64,
    pub mended: u64,
}

impl States {
    /// Opens the arena (of [`arena_len`] bytes), taking over what a predecessor left. What is no arena of a filter is made
    /// empty: every connection must be let in by a rule again.
    pub fn open(segment: Segment, states: usize, seed: u64, fuse: Fuse) -> (States, Recovery) {
        States::open_as(LAYOUT, segment, states, seed, fuse)
    }

    fn open_as(layout: Layout, segment: Segment, states: usize, seed: u64, fuse: Fuse) -> (States, Recovery) {
        if eft_arena::examine(&segment, &layout, states).is_err() {
            segment.fill(0, segment.len(), 0).expect("the arena is writable");
        }
        let arena = Arena::open_with(segment, layout, states, seed, fuse).expect("as examined, or empty");
        let mut random = Random::new(seed);
        let mut table = States {
            entries: arena.table(0),
            arena,
            slots: Vec::new(),
            buckets: vec![NONE; states.max(1).next_power_of_two()],
            free: NONE,
            len: 0,
            secret: Key([random.next_u64(), random.next_u64()]),
            evict_at: 0,
            commits: true,
        };
        let mut recovery = Recovery::default();
        for i in 0..table.entries.len() as u32 {
            table.take_over(i, &mut recovery);
        }
        if !table.arena.reborn {
            table.grow();
        }
        table.arena.establish();
        (table, recovery)
    }

    /// A slot for the next entry of a predecessor.
    fn take_over(&mut self, i: u32, recovery: &mut Recovery) {
        let soundness = self.entries.mend(i, |entry| entry.is_empty() || entry.state().is_some());
        recovery.mended += (soundness == Soundness::Mended) as u64;
        let intact = soundness.is_sound();
        let entry = self.entries[i];
        let state = entry.state().filter(|s| intact && self.find(&s.flow).is_none());
        self.add_slot(i);
        match state {
            Some(state) => {
                recovery.recovered += 1;
                self.slots[i as usize].written_expiry = state.expires;
                // The head of the free list is the slot just made.
                self.occupy(state);
            }
            None if intact && entry.is_empty() => {}
            None => {
                recovery.damaged += 1;
                self.entries.make(i, Entry::new_zeroed());
            }
        }
    }

    fn add_slot(&mut self, i: u32) {
        self.slots.push(Slot { state: None, written_expiry: Instant(0), recalled: false, next: self.free });
        self.free = i;
    }

    /// Makes more empty entries, if there is room for any.
    fn grow(&mut self) {
        let more: Range<u32> = self.arena.growth();
        self.entries.grow(more.clone(), Entry::new_zeroed());
        self.arena.keep(more.end);
        more.for_each(|i| self.add_slot(i));
    }

    /// All that was written since the last time counts from now on.
    pub fn commit(&mut self) {
        if self.commits {
            self.entries.seal();
            self.arena.commit();
        }
    }

    /// Ends commits. The arena holds the present state until the state changes, and is worthless from then on.
    pub fn stop_committing(&mut self) {
        self.commit();
        self.commits = false;
        self.entries.leave_open();
    }

    /// The docket of the arena.
    pub fn docket(&self) -> Docket {
        self.arena.docket().0
    }

    /// For tests of dying in the middle of a turn.
    pub fn fuse(&self) -> Fuse {
        self.arena.fuse()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn iter(&self) -> impl Iterator<Item = &State> {
        self.slots.iter().filter_map(|s| s.state.as_ref())
    }

    fn bucket(&self, flow: &Flow) -> usize {
        self.secret.hash(0, flow) as usize & (self.buckets.len() - 1)
    }

    pub fn find(&self, flow: &Flow) -> Option<u32> {
        let mut at = self.buckets[self.bucket(flow)];
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.state.as_ref().is_some_and(|s| s.flow == *flow) {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    pub fn get(&self, slot: u32) -> Option<&State> {
        self.slots.get(slot as usize)?.state.as_ref()
    }

    /// Changes a state, and its copy in the arena if necessary.
    pub fn update(&mut self, slot: u32, change: impl FnOnce(&mut State)) {
        let Some(s) = self.slots.get_mut(slot as usize) else {
            return;
        };
        let Some(state) = &mut s.state else {
            return;
        };
        let before = (state.opener, state.other, state.granted);
        change(state);
        s.recalled &= state.granted;
        let moved =
            state.expires.saturating_since(s.written_expiry) >= SLACK || s.written_expiry > state.expires;
        if moved || before != (state.opener, state.other, state.granted) {
            let state = *state;
            self.write(slot, &state);
        }
    }

    fn write(&mut self, slot: u32, state: &State) {
        self.slots[slot as usize].written_expiry = state.expires;
        self.entries[slot] = Entry::new(state);
    }

    fn erase(&mut self, slot: u32) {
        self.entries[slot] = Entry::new_zeroed();
    }

    /// Puts a state into the first free slot; the caller writes it to the arena if it is not there already.
    fn occupy(&mut self, state: State) -> bool {
        let at = self.free;
        let bucket = self.bucket(&state.flow);
        let chain = self.buckets[bucket];
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return false;
        };
        self.free = slot.next;
        slot.state = Some(state);
        slot.recalled = false;
        slot.next = chain;
        self.buckets[bucket] = at;
        self.len += 1;
        true
    }

    /// Adds a state. False: there is no free slot.
    pub fn insert(&mut self, state: State) -> bool {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let inserted = self.occupy(state);
        if inserted {
            self.write(at, &state);
        }
        inserted
    }

    pub fn remove(&mut self, at: u32) {
        let Some(state) = self.slots.get_mut(at as usize).and_then(|s| s.state.take()) else {
            return;
        };
        let bucket = self.bucket(&state.flow);
        let after = self.slots[at as usize].next;
        if self.buckets[bucket] == at {
            self.buckets[bucket] = after;
        } else {
            let mut i = self.buckets[bucket];
            while let Some(slot) = self.slots.get_mut(i as usize) {
                if slot.next == at {
                    slot.next = after;
                    break;
                }
                i = slot.next;
            }
        }
        self.slots[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
        self.erase(at);
    }

    /// Removes expired states, but for those that `may_end` wants to stay; returns how many. A granted one, which ip may have used
    /// since, is only recalled, once.
    pub fn expire(
        &mut self,
        now: Instant,
        mut may_end: impl FnMut(&Flow) -> bool,
        mut recall: impl FnMut(Flow),
    ) -> usize {
        let before = self.len;
        for at in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[at as usize];
            match slot.state {
                Some(s) if s.expires > now || s.granted && slot.recalled || !may_end(&s.flow) => {}
                Some(s) if s.granted => {
                    slot.recalled = true;
                    recall(s.flow);
                }
                Some(_) => self.remove(at),
                None => {}
            }
        }
        before - self.len
    }

    /// Ends every grant as if it had been used now: a new ip knows none, nor when the old one last used them.
    pub fn forget_grants(&mut self, now: Instant) {
        for at in 0..self.slots.len() as u32 {
            if self.get(at).is_some_and(|s| s.granted) {
                self.update(at, |s| s.used(now));
            }
        }
    }

    /// The state to evict when there is no room: of some samples, the expendable one that would expire first.
    pub fn choose_victim(&mut self) -> Option<u32> {
        let count = self.slots.len();
        let probes = (0..EVICTION_PROBES.min(count)).map(|i| ((self.evict_at + i) % count) as u32);
        let expendable = probes.filter_map(|at| Some((at, self.get(at)?)));
        let victim =
            expendable.filter(|(_, s)| s.is_expendable()).min_by_key(|(_, s)| s.expires).map(|(at, _)| at);
        self.evict_at = (self.evict_at + EVICTION_PROBES) % count.max(1);
        victim
    }
}

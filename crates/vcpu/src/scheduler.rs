//! The scheduler of virtual CPUs: windows, dealing, turns and ticks in one engine. [`learn`] takes in what a window
//! showed, [`share`] deals out by it, [`accounts`] charges what was used of it.
//!
//! The world asks [`Scheduler::due`] when to sample next and what, and reports the sample: at a tick how long vCPUs on
//! the faster classes ran ([`Scheduler::tick`]), at a turn how long all ran ([`Scheduler::turn`]), at both ends of a
//! window also the counters. After each call [`Scheduler::entries`] says where each vCPU belongs.

mod accounts;
mod learn;
mod share;

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::time::Instant;
use eft_machine::Ppm;

use crate::efficiency::{Efficiency, Ratios};
use crate::error::SchedulerError;
use crate::guest::{Count, Progress, Vcpu, VcpuId};
use crate::host::Host;
use crate::options::{Options, Policy};
use crate::promote::{self, Since};
use crate::turns::{self, Entry};

/// With more vCPUs ticks are at least half a turn apart: the cost of a sample grows with their number, and an idle core
/// is still found within 20 ms.
const MANY: usize = 48;
/// With many vCPUs, those on the slowest class are sampled at every second turn only, and when they leave it: what they
/// use there does not count before.
const REST_TURNS: usize = 2;
/// IPC where there are no counters: utilisation alone decides.
const NO_IPC: Ppm = Ppm::ALL;

/// What the world has to sample next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Run and wait times of those on the faster classes; of all if seats are free there.
    Tick,
    /// Run and wait times of all that are to be watched then.
    Turn,
    /// Run and wait times of all, and counters.
    Window,
}

/// A vCPU that leaves a class, and the group that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaver {
    pub index: usize,
    from: usize,
}

/// What is known of one vCPU, for display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// IPC as the score uses it; `None` without counters.
    pub ipc: Option<Ppm>,
    /// Share of the last window in which it ran.
    pub ran: Ppm,
    pub waited: Ppm,
    /// Work asked for, in time on the fastest class.
    pub demand: Ppm,
    pub score: u64,
    /// Predicted loss of work compared with `amp-fair`.
    pub slowdown: Ppm,
    /// By class, since it is known.
    pub run_time: Vec<Duration>,
    pub moves: u64,
    /// Moves that left a last-level cache behind.
    pub cache_moves: u64,
}

#[derive(Clone, Debug)]
struct Memory {
    efficiency: Efficiency,
    /// When a turn or window sampled it last.
    sampled: Instant,
    /// At the last turn that sampled it, and at the last tick; ticks sample only some.
    turn: Seen,
    tick: Seen,
    /// Run time by class at the last turn, where the world tells it.
    by_class: Vec<Duration>,
    /// When the present window began, by class.
    window_run_time: Vec<Duration>,
    window_waited: Duration,
    counts: Vec<Count>,
    /// Since the window began.
    waited: Duration,
    placed: Option<usize>,
    /// Work that it would do alone on a core, sleeping as long between as it does.
    room: Ppm,
    known: Known,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ran: Duration,
    waited: Duration,
}

#[derive(Clone, Debug)]
pub struct Scheduler {
    host: Host,
    options: Options,
    entries: Vec<Entry>,
    memories: Vec<Memory>,
    ratios: Ratios,
    even: Ppm,
    began: Option<Instant>,
    window_open: bool,
    next_window: Instant,
    next_turn: Instant,
    next_tick: Instant,
    last_turn: Instant,
    last_tick: Instant,
    turns: usize,
    dealt: u64,
}

impl Scheduler {
    pub fn new(host: Host, options: Options) -> Result<Self, SchedulerError> {
        host.check()?;
        options.check()?;
        let ratios = Ratios::described(&host);
        let zero = Instant::ZERO;
        Ok(Self {
            host,
            options,
            entries: Vec::new(),
            memories: Vec::new(),
            ratios,
            even: Ppm::NONE,
            began: None,
            window_open: false,
            next_window: zero,
            next_turn: zero,
            next_tick: zero,
            last_turn: zero,
            last_tick: zero,
            turns: 0,
            dealt: 0,
        })
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Where each vCPU belongs, and what was dealt.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn known(&self, index: usize) -> &Known {
        &self.memories[index].known
    }

    /// How much of the fast time is dealt out evenly now.
    pub fn even(&self) -> Ppm {
        self.even
    }

    /// How often the time was dealt out from the results of windows.
    pub fn deals(&self) -> u64 {
        self.dealt
    }

    /// Another policy from the next dealing on; what was measured is kept.
    pub fn set_policy(&mut self, policy: Policy) {
        self.options.policy = policy;
        self.deal();
    }

    /// Sets the vCPUs that exist now. What is known of those that stay is kept; a new one counts as wanting all time
    /// until a window has measured it.
    pub fn set_vcpus(&mut self, vcpus: &[Vcpu]) {
        let mut entries: Vec<(Entry, Memory)> = core::mem::take(&mut self.entries)
            .into_iter()
            .zip(core::mem::take(&mut self.memories))
            .filter(|(entry, _)| vcpus.iter().any(|vcpu| vcpu.id == entry.vcpu.id))
            .collect();
        for vcpu in vcpus {
            match entries.iter_mut().find(|(entry, _)| entry.vcpu.id == vcpu.id) {
                Some((entry, _)) => entry.vcpu = *vcpu,
                None => entries.push((Entry::new(*vcpu, &self.host), self.newcomer())),
            }
        }
        entries.sort_by_key(|(entry, _)| entry.vcpu.id);
        (self.entries, self.memories) = entries.into_iter().unzip();
        self.deal();
    }

    fn newcomer(&self) -> Memory {
        let classes = self.host.classes.len();
        let no_time = alloc::vec![Duration::ZERO; classes];
        let known =
            Known { demand: Ppm::ALL, score: NO_IPC.0, run_time: no_time.clone(), ..Known::default() };
        Memory {
            efficiency: Efficiency::new(&self.host),
            sampled: self.last_turn,
            turn: Seen::default(),
            tick: Seen::default(),
            by_class: no_time.clone(),
            window_run_time: no_time,
            window_waited: Duration::ZERO,
            counts: Vec::new(),
            waited: Duration::ZERO,
            placed: None,
            room: Ppm::ALL,
            known,
        }
    }

    /// When to sample next, and what.
    pub fn due(&self) -> (Instant, Due) {
        let Some(_) = self.began else { return (Instant::ZERO, Due::Window) };
        // Ticks move vCPUs between classes, turns within a guest: neither is needed where no vCPU can move.
        let turn = (!self.entries.is_empty()).then_some((self.next_turn, Due::Turn));
        let tick = turn.filter(|_| self.host.classes.len() > 1).map(|_| (self.next_tick, Due::Tick));
        let due = [Some((self.next_window, Due::Window)), turn, tick];
        due.into_iter().flatten().min_by_key(|(at, _)| *at).unwrap_or((self.next_window, Due::Window))
    }

    /// Whether the world must sample this vCPU at a tick.
    pub fn watched_at_ticks(&self, index: usize) -> bool {
        self.entries[index].group.is_some_and(|group| self.host.class_of(group) + 1 < self.host.classes.len())
    }

    /// Whether the world must sample this vCPU at the coming turn. Samples of others are ignored then.
    pub fn watched_at_turns(&self, index: usize) -> bool {
        self.entries.len() <= MANY
            || self.watched_at_ticks(index)
            || (index + self.turns).is_multiple_of(REST_TURNS)
            || self.entries[index].group.is_none()
    }

    fn tick_length(&self) -> Duration {
        if self.entries.len() > MANY {
            self.options.tick.max(self.options.turn / 2)
        } else {
            self.options.tick
        }
    }

    /// A tick, with samples of the faster classes: returns whether seats are free there. If so, the world samples all
    /// the others and calls [`Scheduler::promote`].
    pub fn tick(&mut self, now: Instant, fast: &[Progress]) -> bool {
        self.next_tick = later(self.next_tick, self.tick_length(), now);
        let length = now.saturating_since(self.last_tick);
        let since = self.since(fast);
        self.last_tick = now;
        if length < self.options.tick / 2 {
            return false;
        }
        if promote::retreat(&mut self.entries, &since, length) > 0 {
            self.count_moves();
            return false;
        }
        let seats = promote::free_seats(&self.host, &self.entries, &since, length);
        let free =
            (0..seats.len()).filter(|group| seats[*group] > 0).map(|group| self.host.class_of(group)).min();
        let below = |entry: &Entry, class: usize| {
            entry.active && entry.group.is_some_and(|g| self.host.class_of(g) > class)
        };
        free.is_some_and(|class| self.entries.iter().any(|entry| below(entry, class)))
    }

    /// The second half of a tick that found free seats, with samples of all over `length`. As for a turn, the world
    /// calls [`Scheduler::left`] for those that leave a class.
    pub fn promote(&mut self, all: &[(VcpuId, Since)], length: Duration) -> Vec<Leaver> {
        let of = |entry: &Entry| {
            all.iter().find(|(id, _)| *id == entry.vcpu.id).map_or(Since::default(), |(_, s)| *s)
        };
        let since: Vec<Since> = self.entries.iter().map(of).collect();
        let mut leavers = self.placed(|_| true);
        if promote::promote(&self.host, &mut self.entries, &since, length) > 0 {
            self.count_moves();
        }
        self.retain_leavers(&mut leavers);
        leavers
    }

    /// Those of some that have a place, and which.
    fn placed(&self, is_it: impl Fn(usize) -> bool) -> Vec<Leaver> {
        let of = |index: usize| Some(Leaver { index, from: self.entries[index].group? });
        (0..self.entries.len()).filter(|index| is_it(*index)).filter_map(of).collect()
    }

    fn retain_leavers(&self, leavers: &mut Vec<Leaver>) {
        leavers.retain(|leaver| {
            let to = self.entries[leaver.index].group;
            to.is_some_and(|to| self.host.class_of(to) != self.host.class_of(leaver.from))
        });
    }

    /// A turn: settles the accounts and places every vCPU anew. If one leaves a class and this turn did not sample it,
    /// the world samples it and calls [`Scheduler::left`].
    pub fn turn(&mut self, now: Instant, all: &[Progress]) -> Vec<Leaver> {
        self.settle(now, all, Self::watched_at_turns);
        let mut leavers = self.placed(|index| !self.watched_at_turns(index));
        self.turns += 1;
        self.next_turn = later(self.next_turn, self.options.turn, now);
        self.next_tick = now + self.tick_length();
        self.place();
        self.retain_leavers(&mut leavers);
        leavers
    }

    /// The end or the beginning of a window, which is a turn, too.
    pub fn window(&mut self, now: Instant, all: &[Progress]) {
        if self.began.is_none() {
            self.began = Some(now);
            (self.last_turn, self.last_tick) = (now, now);
            self.memories.iter_mut().for_each(|memory| memory.sampled = now);
        }
        self.settle(now, all, |_, _| true);
        if self.window_open {
            self.close_window(all);
            self.deal();
            self.dealt += 1;
            self.next_window = now + (self.options.interval - self.options.window);
        } else {
            self.open_window(all);
            self.next_window = now + self.options.window;
        }
        self.window_open = !self.window_open;
        if self.options.interval == self.options.window && !self.window_open {
            self.open_window(all);
            (self.window_open, self.next_window) = (true, now + self.options.window);
        }
        self.next_turn = now + self.options.turn;
        self.next_tick = now + self.tick_length();
        self.place();
    }

    fn place(&mut self) {
        turns::take(&self.host, &mut self.entries, self.options.migration_cost);
        self.count_moves();
    }

    fn count_moves(&mut self) {
        for (entry, memory) in self.entries.iter().zip(&mut self.memories) {
            if let (Some(from), Some(to)) = (memory.placed, entry.group)
                && !self.host.are_same_cores(from, to)
            {
                memory.known.moves += 1;
                memory.known.cache_moves += u64::from(self.host.crosses_cache(from, to));
            }
            memory.placed = entry.group.or(memory.placed);
        }
    }
}

/// The next periodic time; a world that was late skips the times that it missed.
fn later(last: Instant, period: Duration, now: Instant) -> Instant {
    let next = last + period;
    if next > now { next } else { now + period }
}

#[cfg(test)]
mod tests;

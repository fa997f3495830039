//! A component's account of itself, in its status page: where its time goes, its wakes, its queues.
//!
//! Only the owner writes; readers map the page, check what they read, and never reset anything. All numbers are cumulative
//! and wrap: the difference of two samples is what happened between them, for any number of readers with any period.
//! A successor continues its predecessor's page.
//!
//! | offset in the account | what |
//! |---|---|
//! | 0 | layout version; 0: nothing was written yet |
//! | 64 | returns from sleeps in the kernel |
//! | 72, 80 | wakes sent by a system call, and ns that they took |
//! | 88 | [`Hints`] that are in force |
//! | 96, 104 | how often [`Hints::receiver_behind`] and [`Hints::starved`] arose |
//! | 112 | [`Phases`], 144 bytes: where its time goes |
//! | 256 | queues toward the component, [`QUEUES_MAX`] of [`QUEUE_LEN`] bytes |
//!
//! A queue:
//!
//! | offset in the queue | what |
//! |---|---|
//! | 0 | the sender's code, 0: unused |
//! | 4 | capacity |
//! | 8, 12 | rises above the upper mark, falls below the lower mark |
//! | 16 | a histogram of levels: how often each was seen, at the begin and at the end of a batch |

use crate::phases::Phases;
use crate::segment::Segment;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use eft_base::Instant;

pub use crate::phases::Phase;

/// Of the layout above. A reader that does not know a version reads nothing.
pub const ACCOUNT_VERSION: u64 = 3;
/// Queues toward one component.
pub const QUEUES_MAX: usize = 20;
/// Classes of levels in a queue's histogram: exact below 8, above that four to an octave.
pub const LEVELS: usize = 64;

/// Bytes of the whole account.
pub const ACCOUNT_LEN: usize = QUEUES + QUEUES_MAX * QUEUE_LEN;

const VERSION: usize = 0;
const WAKE_UPS: usize = 64;
const WAKES_SENT: usize = 72;
const WAKES_SENT_NS: usize = 80;
const HINTS: usize = 88;
const BEHIND_COUNT: usize = 96;
const STARVED_COUNT: usize = 104;
const PHASES: usize = 112;
const QUEUES: usize = 256;
const QUEUE_LEN: usize = 320;
const QUEUE_SENDER: usize = 0;
const QUEUE_CAPACITY: usize = 4;
const QUEUE_OVERLOADS: usize = 8;
const QUEUE_UNDERLOADS: usize = 12;
const QUEUE_LEVELS: usize = 16;
const _: () = assert!(PHASES + size_of::<Phases>() <= QUEUES);
const _: () = assert!(QUEUE_LEVELS + LEVELS * 4 <= QUEUE_LEN);

/// Problems that a component reports about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// A queue that it fills stands above the upper mark.
    pub receiver_behind: bool,
    /// It came late although it wanted to run.
    pub starved: bool,
}

/// The levels at which a queue is called overloaded and underloaded.
///
/// Producers of what may be dropped stop at half of the capacity, so that replies find room: at that level a queue is as
/// good as full. The marks are three quarters and one quarter of that half, and each is armed again only when the level has
/// passed the middle between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub upper: usize,
    pub middle: usize,
    pub lower: usize,
}

impl Marks {
    pub fn of(capacity: usize) -> Marks {
        Marks { upper: capacity * 3 / 8, middle: capacity / 4, lower: capacity / 8 }
    }
}

/// What the owner remembers about one queue toward it.
pub struct QueueAccount {
    offset: Option<usize>,
    marks: Marks,
    may_overload: bool,
    may_underload: bool,
}

impl QueueAccount {
    /// It was above the upper mark: its next fall is to be counted.
    pub fn awaits_fall(&self) -> bool {
        self.may_underload
    }
}

/// A sample of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReading {
    /// As given to [`Account::queue`].
    pub sender: u32,
    pub capacity: u32,
    pub overloads: u32,
    pub underloads: u32,
    pub levels: [u32; LEVELS],
}

impl QueueReading {
    /// Fewest and most messages seen since `earlier`, each as exact as its class: `(low, high)`. `None`: the queue was not
    /// sampled.
    pub fn water_since(&self, earlier: &QueueReading) -> Option<(u32, u32)> {
        let seen = |class: &usize| self.levels[*class] != earlier.levels[*class];
        let low = (0..LEVELS).find(seen)?;
        let high = (0..LEVELS).rev().find(seen)?;
        Some((class_first(low), class_last(high).min(self.capacity)))
    }
}

/// A sample of a whole account without its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountReading {
    /// The end of the period that the four times below cover: their sum grows exactly as this does while the component
    /// lives. It is later than the sample's own time if the reader lost its CPU after it had read the clock.
    pub until: Instant,
    pub busy_ns: u64,
    pub polling_ns: u64,
    pub waiting_ns: u64,
    pub sleeping_ns: u64,
    pub wake_ups: u64,
    pub wakes_sent: u64,
    pub wakes_sent_ns: u64,
    /// In force now.
    pub hints: Hints,
    pub receiver_behind_count: u64,
    pub starved_count: u64,
}

/// The account in a status page.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    segment: &'a Segment,
    base: usize,
}

impl<'a> Account<'a> {
    /// `segment` has [`ACCOUNT_LEN`] bytes at `base`, which is a multiple of 64.
    pub(crate) fn new(segment: &'a Segment, base: usize) -> Account<'a> {
        Account { segment, base }
    }

    fn word(&self, offset: usize) -> &'a AtomicU64 {
        self.segment.atomic_u64(self.base + offset).expect("status page length was checked")
    }

    fn half(&self, offset: usize) -> &'a AtomicU32 {
        self.segment.atomic_u32(self.base + offset).expect("status page length was checked")
    }

    fn add(&self, offset: usize, n: u64) {
        let word = self.word(offset);
        word.store(word.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    fn add_half(&self, offset: usize) {
        let half = self.half(offset);
        half.store(half.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Owner, once at its start: the time since a predecessor's last mark counts for no phase.
    pub fn open(&self, now: Instant) {
        if self.word(VERSION).load(Ordering::Relaxed) != ACCOUNT_VERSION {
            self.segment.fill(self.base, ACCOUNT_LEN, 0).expect("the owner maps its page writable");
        }
        self.phases().open(now);
        self.word(HINTS).store(0, Ordering::Relaxed);
        self.word(VERSION).store(ACCOUNT_VERSION, Ordering::Release);
    }

    fn phases(&self) -> &'a Phases {
        // SAFETY: Phases is made of atomics.
        unsafe { self.segment.view(self.base + PHASES) }.expect("status page length was checked")
    }

    /// Owner: see [`Phases::leave`].
    pub fn leave(&self, next: Phase) {
        self.phases().leave(next);
    }

    /// Owner: see [`Phases::enter`].
    pub fn enter(&self, next: Phase, now: Instant) {
        self.phases().enter(next, now);
    }

    /// Owner: see [`Phases::reclassify`].
    pub fn reclassify(&self, phase: Phase) {
        self.phases().reclassify(phase);
    }

    /// Owner: it slept in the kernel and runs again.
    pub fn woke_up(&self) {
        self.add(WAKE_UPS, 1);
    }

    /// Owner: it woke a peer by a system call.
    pub fn sent_wakes(&self, wakes: u64, ns: u64) {
        self.add(WAKES_SENT, wakes);
        self.add(WAKES_SENT_NS, ns);
    }

    /// Owner: publishes its hints; counts those that are new.
    pub fn hint(&self, hints: Hints) {
        let word = self.word(HINTS);
        let (before, now) = (hints_of(word.load(Ordering::Relaxed)), hints);
        if before == now {
            return;
        }
        if now.receiver_behind && !before.receiver_behind {
            self.add(BEHIND_COUNT, 1);
        }
        if now.starved && !before.starved {
            self.add(STARVED_COUNT, 1);
        }
        word.store(now.receiver_behind as u64 | (now.starved as u64) << 1, Ordering::Relaxed);
    }

    /// Owner: a queue toward it begins (again). Beyond [`QUEUES_MAX`] a queue is not accounted.
    pub fn queue(&self, sender: u32, capacity: usize) -> QueueAccount {
        let place = |wanted: u32| {
            (0..QUEUES_MAX)
                .map(|i| QUEUES + i * QUEUE_LEN)
                .find(|offset| self.half(offset + QUEUE_SENDER).load(Ordering::Relaxed) == wanted)
        };
        let offset = place(sender).or_else(|| place(0));
        if let Some(offset) = offset {
            self.half(offset + QUEUE_CAPACITY).store(capacity as u32, Ordering::Relaxed);
            self.half(offset + QUEUE_SENDER).store(sender, Ordering::Release);
        }
        QueueAccount { offset, marks: Marks::of(capacity), may_overload: true, may_underload: false }
    }

    /// Owner, after a batch: `found` messages were there at its begin, `left` are there now. Says whether the queue
    /// was above its upper mark.
    pub fn batch(&self, queue: &mut QueueAccount, found: usize, left: usize) -> bool {
        let marks = queue.marks;
        let above = found > marks.upper;
        let Some(offset) = queue.offset else { return above };
        self.add_half(offset + QUEUE_LEVELS + class_of(found) * 4);
        self.add_half(offset + QUEUE_LEVELS + class_of(left) * 4);
        if queue.may_overload && above {
            queue.may_overload = false;
            self.add_half(offset + QUEUE_OVERLOADS);
        } else if found < marks.middle {
            queue.may_overload = true;
        }
        if found >= marks.middle {
            queue.may_underload = true;
        } else if queue.may_underload && found < marks.lower {
            queue.may_underload = false;
            self.add_half(offset + QUEUE_UNDERLOADS);
        }
        above
    }

    /// Reader: everything but the queues, until `now` or a little later (see [`Phases::read`]). `None` also if the account
    /// is empty or has another layout.
    pub fn read(&self, now: Instant) -> Option<AccountReading> {
        if self.word(VERSION).load(Ordering::Acquire) != ACCOUNT_VERSION {
            return None;
        }
        let (until, [busy_ns, polling_ns, waiting_ns, sleeping_ns]) = self.phases().read(now)?;
        let at = |offset: usize| self.word(offset).load(Ordering::Relaxed);
        Some(AccountReading {
            until,
            busy_ns,
            polling_ns,
            waiting_ns,
            sleeping_ns,
            wake_ups: at(WAKE_UPS),
            wakes_sent: at(WAKES_SENT),
            wakes_sent_ns: at(WAKES_SENT_NS),
            hints: hints_of(at(HINTS)),
            receiver_behind_count: at(BEHIND_COUNT),
            starved_count: at(STARVED_COUNT),
        })
    }

    /// Reader: the queues toward the owner.
    pub fn queues(&self) -> impl Iterator<Item = QueueReading> {
        let usable = self.word(VERSION).load(Ordering::Acquire) == ACCOUNT_VERSION;
        let count = if usable { QUEUES_MAX } else { 0 };
        let account = *self;
        (0..count).map(move |i| QUEUES + i * QUEUE_LEN).filter_map(move |offset| {
            let at = |field: usize| account.half(offset + field).load(Ordering::Relaxed);
            let sender = account.half(offset + QUEUE_SENDER).load(Ordering::Acquire);
            (sender != 0).then(|| QueueReading {
                sender,
                capacity: at(QUEUE_CAPACITY),
                overloads: at(QUEUE_OVERLOADS),
                underloads: at(QUEUE_UNDERLOADS),
                levels: core::array::from_fn(|class| at(QUEUE_LEVELS + class * 4)),
            })
        })
    }
}

fn hints_of(word: u64) -> Hints {
    Hints { receiver_behind: word & 1 != 0, starved: word & 2 != 0 }
}

/// The class of a level: itself below 8, above that its octave and the two bits below the leading one.
fn class_of(level: usize) -> usize {
    if level < 8 {
        return level;
    }
    let octave = level.ilog2() as usize;
    (8 + (octave - 3) * 4 + ((level >> (octave - 2)) & 3)).min(LEVELS - 1)
}

/// The lowest level of a class.
fn class_first(class: usize) -> u32 {
    if class < 8 {
        return class as u32;
    }
    let (octave, quarter) = ((class - 8) / 4 + 3, (class - 8) % 4);
    ((4 + quarter) << (octave - 2)) as u32
}

/// The highest level of a class.
fn class_last(class: usize) -> u32 {
    class_first(class + 1) - 1
}

#[cfg(test)]
mod tests;

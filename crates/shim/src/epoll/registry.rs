//! The sets that eft descriptors are in, and how they were registered: `epoll_wait` returns only the program's own data
//! word.
//!
//! An array by descriptor number, read and written without a lock, allocated at the first registration. It holds the last
//! set of each descriptor; further sets of a descriptor are in a list.

use crate::spin::Spin;
use crate::table::{self, Entry, NUMBERS};
use crate::{real, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use libc::epoll_event;

struct Cell {
    /// One more than the set's number; 0: none.
    set: AtomicI32,
    events: AtomicU32,
    data: AtomicU64,
}

static CELLS: AtomicPtr<Cell> = AtomicPtr::new(core::ptr::null_mut());
/// Descriptors and their registrations in further sets.
static FURTHER: Spin<Vec<Known>> = Spin::new(Vec::new());
static HAS_FURTHER: AtomicBool = AtomicBool::new(false);

/// A bit among the events: a one-shot registration that has fired.
const FIRED: u32 = 1 << 27;
/// And: the kernel was asked for input, which the program did not ask for.
const WIDE: u32 = 1 << 26;

pub fn reset_lock() {
    FURTHER.reset();
}

/// How the program registered a descriptor.
#[derive(Clone, Copy)]
pub struct Known {
    pub set: c_int,
    pub fd: c_int,
    pub events: u32,
    pub data: u64,
}

impl Known {
    pub fn asks_for_data(&self) -> bool {
        self.events & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32 != 0
    }

    pub fn is_fired(&self) -> bool {
        self.events & FIRED != 0
    }

    /// The event was reported to the program. A one-shot registration is then disabled in the kernel.
    pub fn reported(self) {
        if self.events & libc::EPOLLONESHOT as u32 != 0 {
            note(Known { events: self.events | FIRED, ..self });
        }
    }

    pub fn is_wide(&self) -> bool {
        self.events & WIDE != 0
    }

    /// Registers the program's events in the kernel, and `more`.
    pub fn register(&self, more: u32) {
        let asked = self.events & !(FIRED | WIDE);
        let mut event = epoll_event { events: asked | more, u64: self.data };
        let exclusive = asked & libc::EPOLLEXCLUSIVE as u32 != 0;
        let mut control = |operation| {
            // SAFETY: the event is ours. A set that is gone, or whose number was reused, has no such descriptor and
            // refuses.
            unsafe { real::epoll_ctl.get()(self.set, operation, self.fd, &mut event) }
        };
        // An exclusive registration cannot be changed.
        if !exclusive {
            control(libc::EPOLL_CTL_MOD);
        } else if control(libc::EPOLL_CTL_DEL) == 0 {
            control(libc::EPOLL_CTL_ADD);
        }
        let wide = if more != 0 { WIDE } else { 0 };
        note(Known { events: self.events & !(FIRED | WIDE) | wide, ..*self });
    }

    fn is_of(&self, set: c_int, fd: c_int) -> bool {
        (self.set, self.fd) == (set, fd)
    }
}

fn cell(fd: c_int) -> Option<&'static Cell> {
    let cells = CELLS.load(Ordering::Acquire);
    // SAFETY: within the array, which is never unmapped; all zeroes is a cell.
    (!cells.is_null() && (0..NUMBERS as c_int).contains(&fd)).then(|| unsafe { &*cells.add(fd as usize) })
}

fn install() {
    if !CELLS.load(Ordering::Acquire).is_null() {
        return;
    }
    let memory: *mut Cell = sys::map_anonymous(NUMBERS * size_of::<Cell>()).cast();
    if !memory.is_null() {
        // Of two threads that come here at once, the loser's addresses are lost.
        let _ = CELLS.compare_exchange(core::ptr::null_mut(), memory, Ordering::AcqRel, Ordering::Acquire);
    }
}

pub fn note(known: Known) {
    install();
    let Some(cell) = cell(known.fd) else { return };
    if let Some(other) = last(known.fd).filter(|other| other.set != known.set) {
        let mut further = FURTHER.lock();
        further.retain(|k| !k.is_of(other.set, other.fd) && !k.is_of(known.set, known.fd));
        further.push(other);
        HAS_FURTHER.store(true, Ordering::Release);
    }
    cell.events.store(known.events, Ordering::Relaxed);
    cell.data.store(known.data, Ordering::Relaxed);
    cell.set.store(known.set.wrapping_add(1), Ordering::Release);
}

pub fn forget(set: c_int, fd: c_int) {
    if let Some(cell) = cell(fd) {
        let _ = cell.set.compare_exchange(set.wrapping_add(1), 0, Ordering::AcqRel, Ordering::Relaxed);
    }
    if HAS_FURTHER.load(Ordering::Acquire) {
        FURTHER.lock().retain(|known| !known.is_of(set, fd));
    }
}

/// How the eft descriptor `fd` was registered last.
fn last(fd: c_int) -> Option<Known> {
    let cell = cell(fd)?;
    let set = cell.set.load(Ordering::Acquire) - 1;
    let (events, data) = (cell.events.load(Ordering::Relaxed), cell.data.load(Ordering::Relaxed));
    (set >= 0 && is_eft(fd)).then_some(Known { set, fd, events, data })
}

fn is_eft(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Eft { .. })
}

/// All registrations of the eft descriptor `fd` that are known.
pub fn each(fd: c_int, mut call: impl FnMut(Known)) {
    last(fd).into_iter().for_each(&mut call);
    if HAS_FURTHER.load(Ordering::Acquire) && is_eft(fd) {
        let more: Vec<Known> = FURTHER.lock().iter().filter(|known| known.fd == fd).copied().collect();
        more.into_iter().for_each(call);
    }
}

/// The descriptor that was registered with this set and this word.
pub fn find(set: c_int, data: u64) -> Option<Known> {
    let matches = |known: &Known| known.set == set && known.data == data;
    // Most programs use the number itself.
    let number = last(data as c_int).filter(matches);
    number.or_else(|| table::numbers(0, c_int::MAX).find_map(|fd| last(fd).filter(matches))).or_else(|| {
        let further = HAS_FURTHER.load(Ordering::Acquire).then(|| FURTHER.lock())?;
        further.iter().find(|known| matches(known) && is_eft(known.fd)).copied()
    })
}

//! By slot: how the program registered a stream with the set that marks tell of.

use crate::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use libc::epoll_event;

/// Read without a lock while another thread registers: the looker's number is written last, and what is read besides is as old
/// or as new as what the kernel might have reported.
pub struct Cell {
    /// One more than the looker's number; 0: in no set.
    looker: AtomicU32,
    fd: AtomicI32,
    incarnation: AtomicU32,
    events: AtomicU32,
    data: AtomicU64,
    /// In whose queue it is: one more than the looker's number, or 0.
    queued: AtomicU32,
}

static CELLS: AtomicPtr<Cell> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Makes the cells, once. False: memory is out. Under the lock of claims.
pub fn install(slots: usize) -> bool {
    if CELLS.load(Ordering::Acquire).is_null() {
        COUNT.store(slots, Ordering::Relaxed);
        CELLS.store(sys::map_anonymous(slots * size_of::<Cell>()).cast(), Ordering::Release);
    }
    !CELLS.load(Ordering::Acquire).is_null()
}

#[inline]
pub fn cell(slot: u32) -> Option<&'static Cell> {
    let cells = CELLS.load(Ordering::Acquire);
    // SAFETY: within the mapping, which is never unmapped; zeroes are a cell.
    (!cells.is_null() && (slot as usize) < COUNT.load(Ordering::Relaxed))
        .then(|| unsafe { &*cells.add(slot as usize) })
}

impl Cell {
    pub fn set(&self, looker: u32, fd: c_int, incarnation: u32, event: epoll_event) {
        self.fd.store(fd, Ordering::Relaxed);
        self.incarnation.store(incarnation, Ordering::Relaxed);
        self.events.store(event.events, Ordering::Relaxed);
        self.data.store(event.u64, Ordering::Relaxed);
        self.looker.store(looker + 1, Ordering::Release);
    }

    /// It stays in the queue, where it is found to be old.
    pub fn clear(&self) {
        self.looker.store(0, Ordering::Release);
    }

    /// The looker's queue was emptied.
    pub fn unqueue(&self, looker: u32) {
        let _ = self.queued.compare_exchange(looker + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub fn number(&self) -> Option<u32> {
        self.looker.load(Ordering::Acquire).checked_sub(1)
    }

    /// Whether it is registered with this looker, in this use of its slot.
    pub fn is_of(&self, looker: u32, incarnation: u32) -> bool {
        self.number() == Some(looker) && self.incarnation.load(Ordering::Relaxed) == incarnation
    }

    pub fn fd(&self) -> c_int {
        self.fd.load(Ordering::Relaxed)
    }

    pub fn events(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    pub fn is_edge_triggered(&self) -> bool {
        self.events() & libc::EPOLLET as u32 != 0
    }

    pub fn data(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }

    /// True: it was not queued there before.
    pub fn enqueue(&self, looker: u32) -> bool {
        self.queued.swap(looker + 1, Ordering::AcqRel) != looker + 1
    }
}

//! Epoll registrations of undecided sockets and of eft's.
//!
//! The kernel serves epoll on eft descriptors as on any other. Only when a kernel socket turns into an eft socket under
//! the same number, its registrations must move; so they are remembered until then. An edge-triggered set, and one that
//! waits exclusively, needs reports of new input before older input was taken. And the kernel does not know eft's errors,
//! so the results of a wait are completed (`crate::poll` has the rules).

mod registry;

use crate::spin::Spin;
use crate::table::{self, Entry};
use crate::{beside, looking, poll, real, sleeping};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use eft_channel::socket::wish;
use libc::epoll_event;
use registry::Known;
use std::time::Instant;

/// How a descriptor was registered.
#[derive(Clone, Copy)]
struct Registration {
    set: c_int,
    fd: c_int,
    events: u32,
    data: u64,
}

static REGISTRATIONS: Spin<Vec<Registration>> = Spin::new(Vec::new());

pub fn reset_lock() {
    REGISTRATIONS.reset();
    registry::reset_lock();
}

/// The program changed the registration of an undecided socket.
pub fn note(set: c_int, operation: c_int, fd: c_int, event: Option<epoll_event>) {
    let mut all = REGISTRATIONS.lock();
    all.retain(|r| (r.set, r.fd) != (set, fd));
    if operation != libc::EPOLL_CTL_DEL
        && let Some(event) = event
    {
        all.push(Registration { set, fd, events: event.events, data: event.u64 });
    }
}

/// The program registered an eft descriptor with this event; `None`: it took it out.
pub fn registered(set: c_int, fd: c_int, event: Option<epoll_event>) {
    let Some(Ok(socket)) = table::socket(fd) else { return };
    let Some(event) = event else {
        looking::detach(set, fd);
        return registry::forget(set, fd);
    };
    // Whom an exclusive wait woke may leave without what it was woken for; then the next input wakes another.
    if event.events & (libc::EPOLLET | libc::EPOLLEXCLUSIVE) as u32 != 0 {
        beside::all(socket).for_each(|socket| socket.page.add_wish(wish::EDGES));
    }
    registry::note(Known { set, fd, events: event.events, data: event.u64 });
    if event.events & libc::EPOLLPRI as u32 != 0 {
        crate::urgent::watch(fd);
    }
    widen(fd);
    match looking::attach(set, fd, event) {
        true => sleeping::watch_marked(fd),
        false => sleeping::watch(fd),
    }
}

/// A socket has got an error queue, or is registered with one: an error must wake waiters that did not ask for data.
pub fn widen(fd: c_int) {
    if poll::checked(fd).is_some() {
        registry::each(fd, widen_one);
    }
}

fn widen_one(known: Known) {
    let (fd, events) = (known.fd, known.events as i16);
    if known.asks_for_data() || known.is_fired() || !poll::tells_more(fd, events) {
        return;
    }
    NARROW.store(true, Ordering::Relaxed);
    if !known.is_wide() && (poll::must_wake(fd, events) || poll::is_due(fd, events)) {
        known.register(libc::EPOLLIN as u32);
    }
}

/// Whether a socket with an error queue was ever registered without EPOLLIN.
static NARROW: AtomicBool = AtomicBool::new(false);

/// Before a wait in the set: registers sockets for errors again that were silenced because of unrequested data, if the data are
/// gone or an error has come. Returns whether the kernel cannot tell of all that comes, so that the wait must look.
pub fn prepare(set: c_int) -> bool {
    let mut looks = false;
    if NARROW.load(Ordering::Relaxed) {
        for fd in table::numbers(0, c_int::MAX) {
            widen(fd);
            registry::each(fd, |known| {
                let (fd, events) = (known.fd, known.events as i16);
                looks |= known.set == set
                    && !known.is_fired()
                    && !known.is_wide()
                    && poll::is_behind_data(fd, events);
            });
        }
    }
    looks
}

/// After a wait: corrects the kernel's events, and leaves out those that the program did not ask for. Returns how many are
/// left.
pub fn answered(set: c_int, events: &mut [epoll_event]) -> usize {
    let watching = crate::error_watch::is_watching();
    if !watching && events.iter().all(|e| e.events & libc::EPOLLHUP as u32 == 0) {
        return events.len();
    }
    let mut left = 0;
    for i in 0..events.len() {
        let mut event = events[i];
        event.events = put_right(set, event);
        if event.events != 0 {
            events[left] = event;
            left += 1;
        }
    }
    left
}

/// The corrected bits of one event.
fn put_right(set: c_int, event: epoll_event) -> u32 {
    let said = event.events;
    let Some(known) = registry::find(set, event.u64) else { return said };
    // The bits of poll and epoll are the same, as far as poll has them.
    if said & libc::EPOLLHUP as u32 != 0 {
        let told = said | poll::of_hang_up(known.fd) as u32;
        return told & (known.events | (libc::EPOLLERR | libc::EPOLLHUP) as u32);
    }
    let Some(socket) = poll::checked(known.fd) else { return said };
    let told = poll::corrected(known.fd, said as i16, known.events as i16) as u16 as u32;
    match told {
        // With data, it must not wake again for unrequested data; without, a one-shot registration was used up.
        0 => known.register(if poll::has_data(socket) { 0 } else { libc::EPOLLIN as u32 }),
        _ => known.reported(),
    }
    told
}

/// The time left of a call's limit.
pub struct Limit {
    limit: Option<Duration>,
    since: Option<Instant>,
}

impl Limit {
    pub fn new(limit: Option<Duration>) -> Limit {
        Limit { limit, since: None }
    }

    /// The clock is read only if a call is made a second time.
    pub fn left(&self) -> Option<Duration> {
        let gone = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.limit.map(|limit| limit.saturating_sub(gone))
    }

    /// The limit runs from now on, if it does not run yet.
    pub fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub fn is_over(&mut self) -> bool {
        self.begin();
        self.left().is_some_and(|left| left.is_zero())
    }
}

/// The descriptor, or an epoll set, is closed.
pub fn forget(fd: c_int) {
    let mut all = REGISTRATIONS.lock();
    all.retain(|r| r.fd != fd && r.set != fd);
}

/// Takes `fd` out of all sets, to be put back with [`put_back`] after the descriptor was replaced.
pub fn take_out(fd: c_int) {
    let mut all = REGISTRATIONS.lock();
    // An eft socket that becomes another one.
    registry::each(fd, |Known { set, fd, events, data }| all.push(Registration { set, fd, events, data }));
    // A set that is gone by now (or whose number was reused) refuses, and is left alone.
    // SAFETY: EPOLL_CTL_DEL takes no event.
    all.retain(|r| {
        r.fd != fd
            || unsafe { real::epoll_ctl.get()(r.set, libc::EPOLL_CTL_DEL, fd, core::ptr::null_mut()) == 0 }
    });
}

/// Adds the registrations again, now for the new descriptor at `fd`. They are remembered as long as it may be replaced
/// again.
pub fn put_back(fd: c_int) {
    let mut all = REGISTRATIONS.lock();
    all.retain(|r| {
        if r.fd == fd {
            let mut event = epoll_event { events: r.events, u64: r.data };
            // SAFETY: the event is ours.
            unsafe { real::epoll_ctl.get()(r.set, libc::EPOLL_CTL_ADD, fd, &mut event) };
            registered(r.set, fd, Some(event));
        }
        r.fd != fd || matches!(table::get(fd), Entry::Undecided { .. })
    });
}

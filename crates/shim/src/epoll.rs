//! Epoll registrations of sockets that are not yet decided.
//!
//! The kernel serves epoll on eft descriptors as on any other. Only when a kernel socket turns into
//! an eft socket under the same number, its registrations must move; so they are remembered until
//! then. And an edge-triggered set wants to hear of news that come before the older ones were taken.

use crate::spin::Spin;
use crate::{real, table};
use core::ffi::c_int;
use eft_channel::socket::wish;
use libc::epoll_event;

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

/// The program registered an eft descriptor with these events.
pub fn registered(fd: c_int, events: u32) {
    if events & libc::EPOLLET as u32 != 0
        && let Some(Ok(socket)) = table::socket(fd)
    {
        socket.page.add_wish(wish::EDGES);
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
    // A set that is gone by now (or whose number is something else) refuses, and is left alone.
    // SAFETY: EPOLL_CTL_DEL takes no event.
    all.retain(|r| {
        r.fd != fd
            || unsafe { real::epoll_ctl.get()(r.set, libc::EPOLL_CTL_DEL, fd, core::ptr::null_mut()) == 0 }
    });
}

/// Adds the registrations again, now of what `fd` has become. They need not be remembered longer.
pub fn put_back(fd: c_int) {
    let mut all = REGISTRATIONS.lock();
    all.retain(|r| {
        if r.fd == fd {
            let mut event = epoll_event { events: r.events, u64: r.data };
            // SAFETY: the event is ours.
            unsafe { real::epoll_ctl.get()(r.set, libc::EPOLL_CTL_ADD, fd, &mut event) };
            registered(fd, r.events);
        }
        r.fd != fd
    });
}

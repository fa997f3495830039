//! A wait in an epoll set with a looker: marks first, then the kernel.

use super::cells::{self, Cell};
use super::report::Report;
use super::{Own, bar, number_of, own, sharing};
use crate::domain::{Domain, domain};
use crate::socket::Socket;
use crate::{confined, error_watch, process, table, urgent};
use core::ffi::c_int;
use core::sync::atomic::{Ordering, fence};
use core::time::Duration;
use eft_channel::lookers::{Ages, Looker};
use eft_channel::socket::flag;
use libc::epoll_event;

/// Every so many waits that find marks look into the kernel, too.
const KERNEL_EVERY: u32 = 8;

/// What is to be reported.
#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    Marks,
    /// The kernel may report some of it, too.
    BesideTokens,
}

/// A thread that waits in a set with a looker.
pub struct Inside {
    domain: &'static Domain,
    number: u32,
    own: &'static Own,
    looker: &'static Looker,
    life: u32,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.own.is_inside.store(false, Ordering::Release);
    }
}

/// The program is going to wait in the set. `None`: in the kernel alone.
#[inline]
pub fn enter(set: c_int) -> Option<Inside> {
    let number = number_of(set)?;
    let (domain, own) = (domain()?, own(number)?);
    let looker = domain.arena.looker(number)?;
    let is_ours = own.owner.load(Ordering::Relaxed) == process::number();
    let must_not = !is_ours || error_watch::is_watching() || confined::is_confined() || looker.is_absent();
    if must_not || own.is_inside.swap(true, Ordering::AcqRel) {
        bar(set);
        return None;
    }
    Some(Inside { domain, number, own, looker, life: own.life.load(Ordering::Acquire) })
}

impl Inside {
    /// Waits as `epoll_wait` does; `kernel` waits in the kernel for at most so long.
    ///
    /// # Safety
    /// There must be room for `count` events.
    pub unsafe fn wait(
        self,
        events: *mut epoll_event,
        count: usize,
        limit: Option<Duration>,
        mut kernel: impl FnMut(Option<Duration>) -> c_int,
    ) -> c_int {
        loop {
            let found = self.gather();
            if found != Found::Nothing {
                let turn = self.own.waits.fetch_add(1, Ordering::Relaxed).is_multiple_of(KERNEL_EVERY);
                let known =
                    if turn || found == Found::BesideTokens { kernel(Some(Duration::ZERO)) } else { 0 };
                if known < 0 {
                    return known;
                }
                // SAFETY: by the caller.
                match unsafe { self.report(events, count, known as usize) } {
                    // The marks told of what was taken meanwhile.
                    0 => {}
                    reported => return reported as c_int,
                }
            }
            if limit == Some(Duration::ZERO) {
                return kernel(limit);
            }
            if !self.looker.announce() {
                self.looker.awake();
                continue;
            }
            let woken = kernel(limit);
            if self.own.life.load(Ordering::Acquire) != self.life {
                return woken;
            }
            self.looker.awake();
            if woken < 0 {
                return woken;
            }
            let _ = self.gather();
            // SAFETY: by the caller.
            return unsafe { self.report(events, count, woken as usize) } as c_int;
        }
    }

    /// Queues what is marked.
    fn gather(&self) -> Found {
        let mut beside_tokens = false;
        if self.looker.has_marks() {
            let ages = self.looker.ages();
            self.looker.take(|mark| {
                for slot in sharing(self.domain, mark) {
                    if self.enqueue(slot) {
                        self.own.arrived.push(self.age(slot, ages), slot);
                        beside_tokens |= self.is_edge_beside_token(slot);
                    }
                }
            });
            fence(Ordering::SeqCst);
            // As the kernel does: programs may serve a request before those that came later.
            self.own.arrived.take_in_order(|slot| self.own.queue.push(slot));
        }
        match self.own.queue.is_empty() {
            true => Found::Nothing,
            false if beside_tokens => Found::BesideTokens,
            false => Found::Marks,
        }
    }

    /// True: it is of this set, and was not queued before. Then the caller queues it.
    fn enqueue(&self, slot: u32) -> bool {
        cells::cell(slot).is_some_and(|cell| cell.number() == Some(self.number) && cell.enqueue(self.number))
    }

    fn age(&self, slot: u32, ages: Ages) -> i32 {
        self.domain.known_socket(slot).map_or(0, |socket| ages.of(socket.page.arrival()))
    }

    /// Whether the kernel, too, may have an edge for the input that a mark tells of.
    fn is_edge_beside_token(&self, slot: u32) -> bool {
        cells::cell(slot).is_some_and(Cell::is_edge_triggered)
            && self.domain.known_socket(slot).is_some_and(|socket| socket.token.is_posted())
    }

    /// Reports what is queued, and the first `known` events, which are the kernel's. Returns how many there are then.
    unsafe fn report(&self, events: *mut epoll_event, count: usize, known: usize) -> usize {
        // SAFETY: by the caller; the kernel has written these.
        let mut report = unsafe { Report::of_kernel(events, count, known) };
        // Only so many: what is reported may be queued again.
        for _ in 0..self.own.queue.len() {
            let Some(slot) = self.own.queue.pop() else { break };
            let Some(cell) = cells::cell(slot) else { continue };
            cell.unqueue(self.number);
            let Some((socket, event)) = self.event_of(slot, cell) else { continue };
            let end = socket.page.receive_end();
            let is_told = report.put(event);
            match cell.is_edge_triggered() && is_told {
                true => socket.page.set_told(end),
                // Until nothing is left.
                false if self.enqueue(slot) => self.own.queue.push(slot),
                false => {}
            }
        }
        report.len()
    }

    /// What the program is told of a socket that has input and that it still waits for here.
    fn event_of(&self, slot: u32, cell: &Cell) -> Option<(&'static Socket, epoll_event)> {
        let socket = table::socket(cell.fd())?.ok()?;
        let is_known = socket.slot == slot && cell.is_of(self.number, socket.page.incarnation());
        let asked = cell.events();
        let told = asked & ready(socket)?;
        (is_known && told & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32 != 0)
            .then(|| (socket, epoll_event { events: told, u64: cell.data() }))
    }
}

/// What the kernel would show of a stream that has input; `None`: it has none, or the kernel shows it.
fn ready(socket: &Socket) -> Option<u32> {
    let flags = socket.page.flags();
    if !urgent::has_input(socket) || flags & flag::DEAD != 0 {
        return None;
    }
    let writable =
        flags & (flag::CONNECTED | flag::SEND_CLOSED) == flag::CONNECTED && !socket.page.is_plugged();
    let mut ready = libc::EPOLLIN | libc::EPOLLRDNORM;
    if writable {
        ready |= libc::EPOLLOUT | libc::EPOLLWRNORM;
    }
    if flags & flag::RECEIVE_END != 0 {
        ready |= libc::EPOLLRDHUP;
    }
    Some(ready as u32)
}

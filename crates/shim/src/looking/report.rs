//! What one wait reports: sockets with marks in the order in which their input came, then what else the kernel has.
//!
//! The kernel knows of some of the same input: where a program has not looked for a while, tokens are posted as well. They may come
//! in another order than the input did, and would put these sockets before those whose input came earlier.

use libc::epoll_event;

/// The events of a wait, as the program gave room for them.
pub struct Report {
    events: *mut epoll_event,
    room: usize,
    len: usize,
    /// So many are in their place; behind them are the kernel's.
    placed: usize,
}

impl Report {
    /// # Safety
    /// There is room for so many events, at any address, of which the kernel has written the first `known`, and nobody else uses
    /// them meanwhile.
    pub unsafe fn of_kernel(events: *mut epoll_event, room: usize, known: usize) -> Report {
        Report { events, room, len: known, placed: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    fn get(&self, at: usize) -> epoll_event {
        assert!(at < self.len);
        // SAFETY: so many are written.
        unsafe { self.events.add(at).read_unaligned() }
    }

    /// Puts an event behind those that were put before, with what the kernel has reported of the same word. False: there is no room.
    pub fn put(&mut self, event: epoll_event) -> bool {
        let known = (self.placed..self.len).find(|at| self.get(*at).u64 == event.u64);
        let at = known.unwrap_or(self.len);
        if at == self.room {
            return false;
        }
        let bits = event.events | known.map_or(0, |at| self.get(at).events);
        // SAFETY: from the first that is not in its place to the one that is taken away or new, all lie within the room.
        unsafe {
            let first = self.events.add(self.placed).cast::<u8>();
            let moved = (at - self.placed) * size_of::<epoll_event>();
            core::ptr::copy(first, first.add(size_of::<epoll_event>()), moved);
            self.events.add(self.placed).write_unaligned(epoll_event { events: bits, u64: event.u64 });
        }
        self.len += usize::from(known.is_none());
        self.placed += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel has reported `known`; then sockets with marks are put, some of which have no room.
    fn report(known: &[(u32, u64)], marks: &[(u32, u64)], room: usize) -> (Vec<(u32, u64)>, Vec<bool>) {
        // At an odd address.
        let mut bytes = vec![0_u8; size_of::<epoll_event>() * (room + 1)];
        let events = bytes[1..].as_mut_ptr().cast::<epoll_event>();
        let event = |&(events, u64): &(u32, u64)| epoll_event { events, u64 };
        for (at, known) in known.iter().enumerate() {
            // SAFETY: there is room for these and one more.
            unsafe { events.add(at).write_unaligned(event(known)) };
        }
        // SAFETY: as above; nobody else uses them.
        let mut report = unsafe { Report::of_kernel(events, room, known.len()) };
        let put: Vec<bool> = marks.iter().map(|mark| report.put(event(mark))).collect();
        let all = (0..report.len()).map(|at| report.get(at)).map(|event| (event.events, event.u64));
        let all = all.collect();
        assert!(
            bytes[1 + room * size_of::<epoll_event>()..].iter().all(|byte| *byte == 0),
            "not beyond the room"
        );
        (all, put)
    }

    #[test]
    fn marks_come_in_their_order_and_then_what_only_the_kernel_knows() {
        let known = [(1, 8), (1, 9), (4, 70), (1, 10)];
        let (all, put) = report(&known, &[(1, 10), (1, 4), (5, 8), (1, 9)], 8);
        assert_eq!(all, [(1, 10), (1, 4), (5, 8), (1, 9), (4, 70)]);
        assert_eq!(put, [true; 4]);
        assert_eq!(report(&known, &[], 4).0, known, "as the kernel has it");
        assert_eq!(report(&[], &[(1, 3), (1, 2)], 4).0, [(1, 3), (1, 2)]);
    }

    #[test]
    fn what_the_kernel_has_reported_keeps_its_room() {
        let known = [(1, 8), (4, 70), (4, 71)];
        let (all, put) = report(&known, &[(1, 5), (1, 6), (2, 8)], 4);
        assert_eq!((all, put), (vec![(1, 5), (3, 8), (4, 70), (4, 71)], vec![true, false, true]));
        let (all, put) = report(&known, &[(1, 5), (1, 71)], 3);
        assert_eq!((all, put), (vec![(5, 71), (1, 8), (4, 70)], vec![false, true]));
    }

    #[test]
    fn two_sockets_of_one_word_are_two_events() {
        let (all, put) = report(&[(1, 8)], &[(1, 8), (4, 8)], 4);
        assert_eq!((all, put), (vec![(1, 8), (4, 8)], vec![true, true]));
    }
}

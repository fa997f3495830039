//! Which looker's marks tell of a socket's input ([`crate::lookers`]).

use super::{RECEIVE_TAKEN, SocketPage, WRITE_PLUG};
use crate::lookers::{Looker, Told};
use core::sync::atomic::{Ordering, fence};

/// One more than the looker's number, or 0.
const LOOKER: usize = 152;
const TOLD: usize = 160;
/// In the line that the transport writes for all input.
const ARRIVAL: usize = 60;
const _: () = assert!(LOOKER > RECEIVE_TAKEN && TOLD + 8 <= WRITE_PLUG);

impl SocketPage {
    /// As the program wrote: maybe a looker that does not exist.
    #[inline]
    pub fn looker(&self) -> Option<u32> {
        self.u32_at(LOOKER).load(Ordering::SeqCst).checked_sub(1)
    }

    /// Transport, after it published input, and the program for a socket that comes to its set with input: tells the looker that the
    /// page names, and notes in which order it was told.
    pub fn tell(&self, slot: u32, looker: &Looker) -> Told {
        if let Some(arrival) = looker.next_arrival(slot) {
            self.u32_at(ARRIVAL).store(arrival, Ordering::Relaxed);
        }
        looker.tell(slot)
    }

    /// Application, after it took the mark: which arrival of its looker the input was.
    pub fn arrival(&self) -> u32 {
        self.u32_at(ARRIVAL).load(Ordering::Relaxed)
    }

    /// Application: the program was told of input up to `end` by a mark, and must not be told of it again, since its set is
    /// edge-triggered.
    pub fn set_told(&self, end: u64) {
        self.u64_at(TOLD).store(end, Ordering::Release);
    }

    /// Transport: whether a token for input up to `end` would tell a program of it again.
    pub fn is_told(&self, end: u64) -> bool {
        self.u64_at(TOLD).load(Ordering::Acquire) >= end
    }

    /// Application. It looks for input after this.
    pub fn set_looker(&self, looker: Option<u32>) {
        self.u32_at(LOOKER).store(looker.map_or(0, |number| number.wrapping_add(1)), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

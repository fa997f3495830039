//! Where the records of a stream end (MSG_EOR): nothing after such an end goes in one segment with what lies before it.
//!
//! The application writes them into a ring of the page, by their offsets' low halves: the place of an end before the count.
//! More unacknowledged ends than the ring has places are forgotten, the oldest first.

use super::{Opt, SOCKET_HEADER_LEN, SocketPage};
use core::sync::atomic::Ordering;

/// Ends that the ring holds.
pub const RECORDS_MAX: u32 = 256;
pub(super) const RECORDS: usize = 2048;
const _: () = assert!(RECORDS + RECORDS_MAX as usize * 4 <= SOCKET_HEADER_LEN);

impl SocketPage {
    /// Application, under the send lock: a record ends at this offset of the stream.
    pub fn end_record(&self, end: u64) {
        let count = self.option(Opt::Records);
        self.u32_at(place(count)).store(end as u32, Ordering::Release);
        self.set_option(Opt::Records, count.wrapping_add(1));
    }

    /// Transport: the low half of the end that was written as this one of all.
    pub fn record(&self, number: u32) -> u32 {
        self.load_u32(place(number))
    }
}

fn place(number: u32) -> usize {
    RECORDS + (number % RECORDS_MAX) as usize * 4
}

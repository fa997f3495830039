//! What a program does with a listening socket.

use core::iter::successors;
use eft_channel::socket::{AcceptRecord, Arena, INSTANCES_MAX, SocketPage};
use zerocopy::{FromZeros, IntoBytes};

/// The slots of a program's listener, and of those beside it.
pub fn listeners(arena: &Arena, first: u32) -> impl Iterator<Item = u32> {
    successors(Some(first), |slot| arena.socket(*slot)?.beside()).take(INSTANCES_MAX)
}

/// Takes connections from a listener's ring, as the shim's `accept` does, but at most `most`, since the positions of a
/// damaged ring may be anything.
pub fn take_accepted(listener: &SocketPage, most: usize) -> Vec<AcceptRecord> {
    let mut taken = Vec::new();
    while taken.len() < most && listener.receivable() >= size_of::<AcceptRecord>() {
        let at = listener.receive_taken();
        let mut record = AcceptRecord::new_zeroed();
        listener.read_receive(at, record.as_mut_bytes());
        listener.set_receive_taken(at.wrapping_add(size_of::<AcceptRecord>() as u64));
        taken.push(record);
    }
    taken
}

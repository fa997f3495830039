//! What a program does with a listening socket.

use eft_channel::socket::{AcceptRecord, SocketPage};
use zerocopy::{FromZeros, IntoBytes};

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

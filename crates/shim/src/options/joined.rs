//! Memberships of datagram sockets that are not bound yet. The socket's port decides which instance of udp has it; a socket that
//! moves there takes them along.

use crate::socket::{Socket, bit};
use crate::spin::Spin;
use core::ffi::c_int;

/// More than the kernel allows a socket by default (`igmp_max_memberships`), for some sockets. The oldest are forgotten.
const NOTES_MAX: usize = 256;

/// A change, as its program asked for it.
pub struct Change {
    slot: u32,
    incarnation: u32,
    pub level: c_int,
    pub name: c_int,
    pub value: Vec<u8>,
}

static CHANGES: Spin<Vec<Change>> = Spin::new(Vec::new());

pub fn reset_lock() {
    CHANGES.reset();
}

/// Notes a change that was made.
pub fn note(socket: &Socket, level: c_int, name: c_int, value: &[u8]) {
    if socket.has(bit::BOUND) {
        return;
    }
    let mut changes = CHANGES.lock();
    if changes.len() >= NOTES_MAX {
        changes.remove(0);
    }
    let (slot, incarnation) = (socket.slot, socket.page.incarnation());
    changes.push(Change { slot, incarnation, level, name, value: value.to_vec() });
}

/// Those of a socket, in order.
pub fn take(socket: &Socket) -> Vec<Change> {
    let (slot, incarnation) = (socket.slot, socket.page.incarnation());
    let mut changes = CHANGES.lock();
    changes.extract_if(.., |change| (change.slot, change.incarnation) == (slot, incarnation)).collect()
}

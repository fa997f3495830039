//! Accepted connections whose far ends their transport may get some milliseconds later: most connections are short, and while threads
//! sleep on the socket's page alone nobody needs the far end.
//!
//! Whoever is about to wait in the kernel for such a descriptor says so first ([`hurry`]). In a process that does that, the next
//! connections are told of without delay again: it waits for the others, too.

use crate::socket::{Socket, bit};
use crate::{confined, control, handlers};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use eft_messages::control::{Request, op};

/// Accepted connections after which it is tried again.
const RESPITE: u32 = 64;

/// How many of the next accepted connections are told of without delay.
static HURRIED: AtomicU32 = AtomicU32::new(0);
/// Whether this process, or one of whose memory it is a copy, ever left a far end for later.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether sockets of this process may lack their far ends.
#[inline]
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// Whether a connection that is being accepted may have its far end later.
pub fn may_wait() -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    if HURRIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
        || confined::is_confined()
        || !handlers::waits_restart()
    {
        return false;
    }
    if !is_used() {
        IS_USED.store(true, Ordering::Relaxed);
    }
    true
}

/// Somebody is about to wait in the kernel for the descriptor.
#[inline]
pub fn hurry(socket: &Socket) {
    if socket.has(bit::UNHURRIED) {
        tell(socket);
    }
}

fn tell(socket: &Socket) {
    settled(socket);
    HURRIED.store(RESPITE, Ordering::Relaxed);
    // Without a stack there is nobody to wait for.
    let _ = control::tell(Request { op: op::WATCHED, slot: socket.slot, ..Request::default() }, None);
}

/// A call has waited for so long that the transport has the far end by now.
pub fn settled(socket: &Socket) {
    socket.put_bits(bit::UNHURRIED, false);
}

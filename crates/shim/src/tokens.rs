//! Asking the transport for the token of input that has none: a thread slept on the page (`crate::sleeping`), or marks told of it
//! (`crate::looking`).

use crate::domain::{self, domain};
use crate::socket::{Socket, bit};
use crate::{sys, urgent};
use eft_channel::sleepers::Left;

/// Whether there is input without a token. A listener's connections always have one.
pub fn is_lacking(socket: &Socket) -> bool {
    !socket.token.is_posted()
        && urgent::has_input(socket)
        && !socket.is_ended()
        && !socket.has(bit::LISTENING | bit::ORPHAN)
}

/// Asks for a token if it is missing.
pub fn ask(socket: &Socket) {
    if is_lacking(socket) {
        pass_on(socket, socket.page.sleepers().want_token());
        domain::notify(socket);
    }
}

/// Wakes whom a thread that does not sleep any more has to.
pub fn pass_on(socket: &Socket, left: Left) {
    match left {
        Left::Woken => {}
        Left::WokenBefore(slot) => wake(slot),
        // Others may sleep for the same value.
        Left::ByItself => sys::futex_wake_all(socket.page.sleepers().word().as_ptr()),
    }
}

/// Wakes the sleeper of another slot, which was handed input together with ours.
pub fn wake(slot: u32) {
    if let Some(socket) = domain().and_then(|domain| domain.socket(slot)) {
        sys::futex_wake_all(socket.page.sleepers().word().as_ptr());
    }
}

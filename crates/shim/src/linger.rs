//! SO_LINGER.

use crate::socket::{Socket, bit};
use crate::sys;
use core::sync::atomic::Ordering;
use eft_channel::socket::{Opt, flag};

/// SO_LINGER with a time: the close waits that long for the sent bytes to be acknowledged, even on a
/// nonblocking socket (man 7 socket). With bytes unread the connection is reset, and there is nothing
/// to wait for.
pub fn wait(socket: &Socket) {
    let page = &socket.page;
    let seconds = match page.option(Opt::Linger) {
        0 | 1 => return,
        word => word as u64 - 1,
    };
    let last = socket.descriptors.load(Ordering::Relaxed) == 1;
    if !socket.is_stream() || !last || page.receivable() > 0 || page.flags() & flag::CONNECTED == 0 {
        return;
    }
    // Corked bytes go now.
    page.set_option(Opt::Cork, 0);
    crate::domain::notify(socket);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let unsent = || page.send_released() < page.send_end() && page.flags() & flag::DEAD == 0;
    while unsent() && !socket.has(bit::ORPHAN) && std::time::Instant::now() < end {
        // There is no notification for it. A signal ends the wait.
        if sys::poll(-1, 0, Some(1)).is_err() {
            return;
        }
    }
}

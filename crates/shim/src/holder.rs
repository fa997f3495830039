//! Who this process is to those that find connections which it holds without a descriptor (`crate::held`).

use crate::domain;
use crate::socket::Socket;
use core::sync::atomic::{AtomicU64, Ordering};
use eft_channel::socket::wish;

/// The process's connection to sockets, as sockets names it; 0 as long as it has not asked.
static CONNECTION: AtomicU64 = AtomicU64::new(0);

pub fn connection() -> Option<u64> {
    Some(CONNECTION.load(Ordering::Acquire)).filter(|&connection| connection != 0)
}

pub fn set_connection(connection: u64) {
    CONNECTION.store(connection, Ordering::Release);
}

/// The last number of the socket is closed. If this process holds it, no descriptor shows that.
pub fn closed(socket: &Socket) {
    if socket.page.holder().is_some_and(|holder| connection() == Some(holder)) {
        socket.page.add_wish(wish::CLOSED);
        domain::notify(socket);
    }
}

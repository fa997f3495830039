//! The listeners of one descriptor: where a port's connections are spread over several instances of tcp, each has one
//! (`SocketPage::beside`). The program's socket is the first; what is done to it is done to all, and it takes from each in turn.

use crate::domain::{self, domain};
use crate::socket::Socket;
use core::iter::successors;
use core::sync::atomic::{AtomicUsize, Ordering};
use eft_channel::socket::{AcceptRecord, INSTANCES_MAX};

/// Counts what this process has accepted from spread ports.
static TURN: AtomicUsize = AtomicUsize::new(0);

fn next(socket: &Socket) -> Option<&'static Socket> {
    let slot = socket.page.beside()?;
    domain()?.socket(slot).filter(|next| next.page.is_further())
}

/// A socket, and the listeners beside it.
#[inline]
pub fn all(first: &Socket) -> impl Iterator<Item = &Socket> + Clone {
    successors(Some(first), |last| next(last)).take(INSTANCES_MAX)
}

/// Whether a connection waits in the ring of this listener alone.
#[inline]
pub fn has_record(listener: &Socket) -> bool {
    listener.page.receivable() >= size_of::<AcceptRecord>()
}

/// The listener whose ring the next connection is taken from, if one waits.
#[inline]
pub fn waiting(first: &Socket) -> Option<&Socket> {
    if first.page.beside().is_none() {
        return Some(first).filter(|first| has_record(first));
    }
    let (count, turn) = (all(first).count(), TURN.fetch_add(1, Ordering::Relaxed));
    all(first).cycle().skip(turn % count).take(count).find(|listener| has_record(listener))
}

/// The application has changed something of the first: the others follow.
pub fn agree(first: &Socket) {
    for further in all(first).skip(1) {
        further.page.agree_with(&first.page);
        domain::notify(further);
    }
}

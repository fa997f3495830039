//! POLLERR while an error waits, and POLLPRI while an urgent byte does: the kernel cannot report them for an eft descriptor, so its
//! answers are corrected here.
//!
//! A failed connection shows HUP, to which the error is added here. Data and the end of the stream behind them are two changes of
//! the descriptor, and one on Linux: who wakes at the first is told both; and so with the first data and the room to send of a
//! connection that they establish. A stream that is bound and no
//! more shows HUP beside OUT. A datagram socket with IP_RECVERR is readable while an
//! error waits, a stream with SO_ZEROCOPY or SO_TIMESTAMPING while a notice does, and one whose program asked for POLLPRI while an
//! urgent byte is there; calls are checked for that in programs that set such an option on some socket, or asked so.

use crate::socket::{Socket, bit};
use crate::{readiness, received, refusal, stamps, stream, table, urgent, zerocopy};
use core::ffi::c_int;
use core::time::Duration;
use eft_channel::socket::{Opt, flag};
use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP, POLLRDNORM, POLLWRNORM, pollfd};
use std::time::Instant;

/// For lists up to this length, a call that did not ask for data is widened so that it wakes for an error. No memory is
/// allocated: `poll` may be called in signal handlers.
const LIST_MAX: usize = 64;
/// Rounds without a result in which a call asks for data that it does not want.
const ROUNDS: u32 = 8;
/// How often a call that waits for an error or an urgent byte alone looks for it, while data make the descriptor readable.
pub const LOOK: Duration = Duration::from_millis(20);

/// The eft socket at `fd`, if it has an error queue or urgent data are waited for.
pub fn checked(fd: c_int) -> Option<&'static Socket> {
    let socket = table::socket(fd)?.ok()?;
    (queues_errors(socket) || urgent::is_watched(socket)).then_some(socket)
}

fn queues_errors(socket: &Socket) -> bool {
    let notices = socket.has(bit::ZEROCOPY) || stamps::is_on(socket);
    match socket.is_stream() {
        true => notices && !socket.has(bit::LISTENING),
        false => notices || socket.page.option(Opt::ReceiveErrors) != 0,
    }
}

/// Whether a waiter at `fd` that asked for `events` is to be told of more than the kernel knows of.
pub fn tells_more(fd: c_int, events: i16) -> bool {
    checked(fd).is_some_and(|socket| queues_errors(socket) || events & POLLPRI != 0)
}

/// Whether input at `fd` must wake a waiter that asked for `events`, though it may not have asked for input.
pub fn must_wake(fd: c_int, events: i16) -> bool {
    tells_more(fd, events) && checked(fd).is_some_and(|socket| !has_data(socket))
}

pub fn has_data(socket: &Socket) -> bool {
    let shadow = !socket.is_stream() && socket.shadow_due();
    urgent::has_input(socket) || shadow || socket.is_ended() || socket.wishes_shut_read()
}

fn has_error(socket: &Socket) -> bool {
    match socket.is_stream() {
        true => stream::has_notice(socket),
        false => socket.page.has_errors() || socket.page.error() != 0 || zerocopy::is_pending(socket),
    }
}

/// Makes the descriptor unreadable, unless there is something left to take.
fn quieten(fd: c_int, socket: &Socket) {
    match socket.is_stream() {
        true => readiness::retire(fd, socket, || stream::is_readable(socket)),
        false => received::quieten(fd, socket),
    }
}

/// Adds to the kernel's answer errors of descriptors that have hung up, and the end of a stream that is told already.
pub fn complete(list: &mut [pollfd]) {
    for given in list.iter_mut() {
        if given.revents & (POLLIN | POLLHUP) == POLLIN && has_failed(given.fd) {
            given.revents |= POLLHUP;
        }
        if given.revents & POLLHUP != 0 {
            given.revents |= of_hang_up(given.fd) & (given.events | POLLERR);
        }
        let asks_for_end = given.events & POLLRDHUP != 0 && given.revents & (POLLIN | POLLRDHUP) == POLLIN;
        if asks_for_end && has_received_end(given.fd) {
            given.revents |= POLLRDHUP;
        }
        let asks_for_room =
            given.events & POLLOUT != 0 && given.revents & (POLLIN | POLLOUT | POLLHUP) == POLLIN;
        if asks_for_room && has_much_room(given.fd) {
            given.revents |= POLLOUT;
        }
        if given.revents & (POLLOUT | POLLHUP) == POLLOUT && is_unconnected(given.fd) {
            given.revents |= POLLHUP;
        }
    }
}

/// Whether it is a stream that is bound and no more: on Linux it has hung up, and is writable.
fn is_unconnected(fd: c_int) -> bool {
    let idle = |socket: &Socket| socket.page.flags() == 0 && !socket.has(bit::LISTENING | bit::DEFERRED);
    matches!(table::socket(fd), Some(Ok(socket)) if socket.is_stream() && idle(socket))
}

/// Whether the connection at `fd` has ended with an error: the page says so before the descriptor hangs up, which it does in two
/// steps.
fn has_failed(fd: c_int) -> bool {
    let failed = |socket: &Socket| socket.is_stream() && socket.page.flags() & flag::DEAD != 0;
    matches!(table::socket(fd), Some(Ok(socket)) if failed(socket) && !socket.has(bit::LISTENING))
}

/// Whether the connection at `fd` is established and takes half of what its send ring may hold: its plug goes, but may be
/// there for a moment longer.
fn has_much_room(fd: c_int) -> bool {
    let over = flag::DEAD | flag::SEND_CLOSED | flag::LISTENING;
    let sends = |socket: &Socket| {
        socket.is_stream() && socket.page.flags() & (flag::CONNECTED | over) == flag::CONNECTED
    };
    matches!(table::socket(fd), Some(Ok(socket)) if sends(socket) && socket.page.send_free() >= socket.page.send_limit() / 2)
}

fn has_received_end(fd: c_int) -> bool {
    matches!(table::socket(fd), Some(Ok(socket)) if socket.is_stream() && socket.is_ended())
}

/// Further bits of a connection at `fd` that has hung up: an error, if it was not reported yet or lies in the error queue, and
/// writable, though its plug may be there for a moment longer.
pub fn of_hang_up(fd: c_int) -> i16 {
    match table::socket(fd) {
        Some(Ok(socket)) if socket.is_stream() && !socket.has(bit::LISTENING) => {
            let waits = socket.page.error() != 0 || refusal::is_pending(socket);
            let error = if waits { POLLERR } else { 0 };
            POLLOUT | POLLWRNORM | error
        }
        _ => 0,
    }
}

/// Corrects the kernel's answer about a descriptor. Silences a descriptor that shows input without having any.
pub fn corrected(fd: c_int, mut said: i16, asked: i16) -> i16 {
    if let Some(socket) = checked(fd) {
        let (error, data) = (has_error(socket), has_data(socket));
        let urgent = asked & POLLPRI != 0 && urgent::is_pending(socket);
        if error {
            said |= POLLERR;
        }
        if urgent {
            said |= POLLPRI;
        }
        if !data {
            said &= !(POLLIN | POLLRDNORM);
        }
        if !error && !urgent && !data {
            quieten(fd, socket);
        }
    }
    said & (asked | POLLERR | POLLHUP | POLLNVAL)
}

/// Whether the answer has something that the kernel does not know of.
pub fn is_due(fd: c_int, events: i16) -> bool {
    checked(fd).is_some_and(|s| has_error(s) || (events & POLLPRI != 0 && urgent::is_pending(s)))
}

/// Whether the kernel cannot tell when an error or an urgent byte comes, since the descriptor is readable before.
pub fn is_behind_data(fd: c_int, events: i16) -> bool {
    let alone = events & (POLLIN | POLLRDNORM) == 0;
    let has_data = |socket| has_data(socket) && !socket.is_ended();
    alone && tells_more(fd, events) && checked(fd).is_some_and(has_data)
}

/// Waits as `poll` does. `call` is the kernel's, with what is left of the limit.
pub fn wait(
    list: &mut [pollfd],
    limit: Option<Duration>,
    mut call: impl FnMut(&mut [pollfd], Option<Duration>) -> c_int,
) -> c_int {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut copy = [pollfd { fd: -1, events: 0, revents: 0 }; LIST_MAX];
    let mut round = 0;
    loop {
        let waits = list.iter().any(|asked| is_due(asked.fd, asked.events));
        let left = match waits {
            // Whether the descriptor shows it or not.
            true => Some(Duration::ZERO),
            false => deadline.map(|at| at.saturating_duration_since(Instant::now())),
        };
        let looks = !waits && list.iter().any(|asked| is_behind_data(asked.fd, asked.events));
        let left = if looks { Some(left.map_or(LOOK, |left| left.min(LOOK))) } else { left };
        round += !looks as u32;
        let answered = match copy.get_mut(..list.len()) {
            Some(copy) if round <= ROUNDS => {
                copy.copy_from_slice(list);
                for asked in copy.iter_mut() {
                    if must_wake(asked.fd, asked.events) {
                        asked.events |= POLLIN;
                    }
                }
                let answered = call(copy, left);
                list.iter_mut().zip(copy).for_each(|(given, asked)| given.revents = asked.revents);
                answered
            }
            _ => call(list, left),
        };
        if answered < 0 {
            return answered;
        }
        let mut ready = 0;
        for given in list.iter_mut() {
            given.revents = corrected(given.fd, given.revents, given.events);
            ready += (given.revents != 0) as c_int;
        }
        let over = deadline.is_some_and(|at| at <= Instant::now());
        if ready > 0 || (answered == 0 && !waits && !looks) || over {
            complete(list);
            return ready;
        }
    }
}

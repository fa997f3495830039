//! Keeping a descriptor's poll state equal to the socket's readiness, and waiting on it.
//!
//! See `eft_channel::token` for the protocol: one empty message while there is something to take, one plug while there is
//! no room. Invariant: no descriptor stays readable with nothing to take (the program would spin), and none is unreadable
//! although there is something (it would hang).

use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{beside, confined, errno, handlers, held, looking, real, sleeping};
use core::ffi::c_int;
use core::sync::atomic::Ordering;

/// Length of a plug. With the smallest send buffer that the kernel grants (4608 bytes), one such
/// message makes a Unix socket unwritable: its memory, counted four times, exceeds the buffer.
const PLUG_LEN: usize = 1500;
/// After this many calls in a row without a result, check the descriptor.
const SUSPICION: u32 = 16;
/// How long to wait for a server that is just posting: rounds of two milliseconds.
const TAKE_ROUNDS: u32 = 10;

/// Nothing is left: takes the message out of the descriptor, unless `still_ready` after all.
/// Sockets that have ended keep theirs: they stay readable, and by that message the stack notices the last close.
pub fn retire(fd: c_int, socket: &Socket, still_ready: impl Fn() -> bool) {
    let keeps_it = || socket.is_ended() && !socket.page.is_further();
    if socket.token.is_posted() && !keeps_it() && !socket.wishes_shut_read() {
        let retired = socket.token.retire(&still_ready);
        for _ in 0..retired {
            take(fd, socket);
        }
        if retired > 0 {
            looking::took_token(socket);
        }
    }
}

/// A part was taken and something is left: the next input must be an edge again.
#[inline]
pub fn took_a_part(fd: c_int, socket: &Socket) {
    for _ in 0..socket.token.retire_edges() {
        take(fd, socket);
    }
}

/// Takes one message that the token stood for.
fn take(fd: c_int, socket: &Socket) {
    for _ in 0..TAKE_ROUNDS {
        let taken = match confined::is_confined() {
            true => confined::take_message(fd),
            false => sys::take_message(fd),
        };
        match taken {
            Ok(()) => return,
            // Another thread took our message, since we seemed to be dead.
            Err(Errno(libc::EAGAIN)) if was_taken(socket) => return,
            // The server has set the token and is about to send.
            Err(Errno(libc::EAGAIN)) if confined::is_confined() => core::hint::spin_loop(),
            Err(Errno(libc::EAGAIN)) => {
                let _ = sys::poll(fd, libc::POLLIN, Some(2));
            }
            Err(Errno(libc::EINTR)) => {}
            Err(_) => return,
        }
    }
}

fn was_taken(socket: &Socket) -> bool {
    let less = |n: u32| n.checked_sub(1);
    socket.taken_for().fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
}

/// Stops the descriptor from being writable. Under the send lock; the caller notifies the transport
/// after, which may have made room meanwhile.
pub fn plug(fd: c_int, socket: &Socket) {
    if socket.plug.is_set() {
        return;
    }
    held::hurry(fd, socket);
    // Sent before the word is set: the server that sees the word finds the plug.
    if stop(fd) {
        socket.plug.set();
    }
}

/// Puts a plug into a descriptor that has none. False if that is refused.
pub fn stop(fd: c_int) -> bool {
    match confined::is_confined() {
        // There is room, since there is no plug.
        true => sys::write(fd, &[0; PLUG_LEN]).is_ok(),
        false => sys::send_now(fd, &[0; PLUG_LEN]).is_ok(),
    }
}

/// A call found nothing and will not wait: checks the descriptor from time to time.
pub fn found_nothing(fd: c_int, socket: &Socket) {
    let idle = socket.idle().fetch_add(1, Ordering::Relaxed) + 1;
    if idle.is_multiple_of(SUSPICION) && !confined::is_confined() {
        examine(fd, socket);
    }
}

/// A call found something.
#[inline]
pub fn found_something(socket: &Socket) {
    if socket.idle().load(Ordering::Relaxed) != 0 {
        socket.idle().store(0, Ordering::Relaxed);
    }
}

/// Checks for the two states that the protocol cannot leave by itself: a stack that is gone, and a message whose taker
/// died between retiring the token and taking the message.
pub fn examine(fd: c_int, socket: &Socket) {
    if confined::is_confined() {
        return;
    }
    let events = sys::poll(fd, libc::POLLIN, Some(0)).unwrap_or(0);
    if socket.is_ended() || (socket.wishes_shut_read() && socket.wishes_shut_write()) {
        return;
    }
    if events & libc::POLLHUP != 0 {
        socket.set_bits(bit::ORPHAN);
        return;
    }
    let is_posted = || beside::all(socket).any(|socket| socket.token.is_posted());
    if events & libc::POLLIN == 0 || is_posted() || socket.wishes_shut_read() {
        return;
    }
    // If a server were between setting the token and sending, the token would be set; a slow taker takes microseconds.
    // Check again after a while, then take the message.
    let _ = sys::poll(-1, 0, Some(1));
    let again = sys::poll(fd, libc::POLLIN, Some(0)).unwrap_or(0);
    if again & libc::POLLIN != 0
        && !is_posted()
        && beside::all(socket).all(|socket| socket.page.receivable() == 0)
        && !socket.is_ended()
        && sys::take_message(fd).is_ok()
    {
        socket.taken_for().fetch_add(1, Ordering::AcqRel);
    }
}

/// In a process with a filter: waits until `over`, with the calls that it may still make.
fn wait_confined(socket: &Socket, over: impl Fn() -> bool) -> Result<()> {
    loop {
        match confined::sleep(socket, || over() || socket.is_ended()) {
            Err(Errno(libc::EINTR)) if handlers::all_restart() => {}
            done => return done,
        }
    }
}

/// Waits until there is room to send.
pub fn wait_room(fd: c_int, socket: &Socket) -> Result<()> {
    match confined::is_confined() {
        true => wait_confined(socket, || !socket.plug.is_set()),
        false => {
            held::hurry(fd, socket);
            wait(fd, libc::POLLOUT, libc::SO_SNDTIMEO)
        }
    }
}

/// Waits until a datagram socket may have something.
pub fn wait_datagram(fd: c_int, socket: &Socket) -> Result<()> {
    looking::part(socket);
    match confined::is_confined() {
        true => wait_confined(socket, || socket.token.is_posted()),
        false => wait(fd, libc::POLLIN, libc::SO_RCVTIMEO),
    }
}

/// Waits until a stream may have something, as the program's `recv` would: with its receive timeout
/// and with calls restarted after signals as their handlers say, since it *is* a `recv`.
pub fn wait_stream(fd: c_int, socket: &Socket) -> Result<()> {
    looking::part(socket);
    if confined::is_confined() {
        return wait_confined(socket, || socket.token.is_posted() || socket.wishes_shut_read());
    }
    if let Some(done) = sleeping::wait(fd, socket) {
        return done;
    }
    let ret =
        // SAFETY: no buffer.
        unsafe { real::recv.get()(fd, core::ptr::null_mut(), 0, libc::MSG_PEEK) };
    if ret < 0 { Err(errno::get()) } else { Ok(()) }
}

/// Waits for events on the descriptor with the socket's timeout option `timeout`
/// (SO_RCVTIMEO, SO_SNDTIMEO). Unlike [`wait_stream`] this wakes every waiter, which sockets that
/// several threads or processes wait on need: datagram sockets and listeners.
pub fn wait(fd: c_int, events: i16, timeout: c_int) -> Result<()> {
    wait_within(fd, events, sys::timeout_of(fd, timeout))
}

/// As [`wait`], without a limit, for any descriptor.
pub fn wait_for_ever(fd: c_int, events: i16) -> Result<()> {
    wait_within(fd, events, None)
}

fn wait_within(fd: c_int, events: i16, limit: Option<c_int>) -> Result<()> {
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    loop {
        // SAFETY: the structure is ours.
        match unsafe { real::poll.get()(&mut poll, 1, limit.unwrap_or(-1)) } {
            0 => return Err(Errno(libc::EAGAIN)),
            n if n > 0 => return Ok(()),
            _ => match errno::get() {
                // poll is never restarted; the call that the program made might be.
                Errno(libc::EINTR) if limit.is_none() && handlers::all_restart() => {}
                errno => return Err(errno),
            },
        }
    }
}

/// Whether this call must not wait.
pub fn must_not_wait(fd: c_int, socket: &Socket, flags: c_int) -> bool {
    flags & libc::MSG_DONTWAIT != 0
        || match confined::is_confined() {
            true => socket.has(bit::NONBLOCKING),
            false => sys::is_nonblocking(fd),
        }
}

/// The error of a call in a signal handler that interrupted the holder of its lock.
pub fn reentered(fd: c_int, socket: &Socket, flags: c_int, errno: Errno) -> Errno {
    match errno {
        Errno(libc::EDEADLK) if must_not_wait(fd, socket, flags) => Errno(libc::EAGAIN),
        Errno(libc::EDEADLK) => Errno(libc::EINTR),
        other => other,
    }
}

//! A thread that reads from a stream sleeps on a word of the socket's page: waking it costs less than a token in its descriptor,
//! which it would have to take out again (`eft_channel::sleepers` has the protocol).
//!
//! While such a thread takes the input, the descriptor does not show it. To others that wait for the descriptor this looks as if
//! the thread had been quicker, as it may be on Linux; and input that is left gets its token before they look. So:
//! - a socket that a program watches, by poll, select, epoll or SIGIO, gets tokens from then on ([`watch`]);
//! - a thread sleeps here for a moment only, then in the kernel, which also shows that the stack has ended;
//! - a thread whose wait a signal handler may end waits in the kernel: while a thread goes from one wait to the other, a signal
//!   would end neither;
//! - the transport posts the token for what no thread takes within some milliseconds.

use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::{handlers, held, looking, process, table, tokens, urgent};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use core::time::Duration;
use eft_channel::sleepers::Tag;

/// How long a thread sleeps here.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long a call waits for a token that is missing: rounds of some milliseconds.
const ROUNDS: u32 = 10;
const ROUND_MS: u64 = 5;

/// Whether a thread of this process, or of one of whose memory it is a copy, ever slept here.
static SLEPT: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

/// Waits until a stream may have input, as `recv` does. `None`: wait in the kernel.
pub fn wait(fd: c_int, socket: &Socket) -> Option<Result<()>> {
    if socket.has(bit::WATCHED) || !handlers::waits_restart() || !is_patient(fd, socket) {
        held::hurry(fd, socket);
        return None;
    }
    if !SLEPT.load(Ordering::Relaxed) {
        SLEPT.store(true, Ordering::Relaxed);
    }
    let incarnation = socket.page.incarnation();
    let sleepers = socket.page.sleepers();
    let (word, left_over) = sleepers.announce_reader(Tag::of_process(process::number()));
    if let Some(slot) = left_over {
        tokens::wake(slot);
    }
    let slept = match is_over(socket, incarnation) {
        true => Ok(()),
        false => sleep(sleepers.word().as_ptr(), word),
    };
    tokens::pass_on(socket, sleepers.leave());
    match slept {
        Err(Errno(libc::ETIMEDOUT)) if !is_over(socket, incarnation) => {
            held::part(fd);
            None
        }
        Err(Errno(libc::EINTR)) if !handlers::waits_restart() => {
            tokens::ask(socket);
            Some(Err(Errno(libc::EINTR)))
        }
        _ => Some(Ok(())),
    }
}

/// As in `recv`, a thread may be cancelled in this call. It holds nothing then.
fn sleep(word: *const u32, value: u32) -> Result<()> {
    let mut before = 0;
    // SAFETY: both write to the word that they get, at most.
    unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &mut before);
        let slept = sys::futex_wait(word, value, PATIENCE);
        pthread_setcanceltype(before, &mut before);
        slept
    }
}

fn is_over(socket: &Socket, incarnation: u32) -> bool {
    let page = &socket.page;
    urgent::has_input(socket)
        || page.error() != 0
        || socket.is_ended()
        || socket.wishes_shut_read()
        || socket.has(bit::ORPHAN | bit::WATCHED)
        || page.incarnation() != incarnation
}

/// Whether the socket has no receive timeout.
fn is_patient(fd: c_int, socket: &Socket) -> bool {
    if socket.has(bit::PATIENT) {
        return true;
    }
    let patient = sys::timeout_of(fd, libc::SO_RCVTIMEO).is_none();
    socket.put_bits(bit::PATIENT, patient);
    patient
}

/// The program waits for this descriptor in a set whose marks tell of input: a read must not sleep on the page beside it.
pub fn watch_marked(fd: c_int) {
    if let Some(Ok(socket)) = table::socket(fd) {
        socket.set_bits(bit::WATCHED);
        held::hurry(fd, socket);
    }
}

/// A program waits for this descriptor: from now on it is always right.
#[inline]
pub fn watch(fd: c_int) {
    if let Some(Ok(socket)) = table::socket(fd)
        && socket.is_stream()
    {
        if !socket.has(bit::WATCHED) {
            socket.set_bits(bit::WATCHED);
            fence(Ordering::SeqCst);
        }
        held::hurry(fd, socket);
        looking::part(socket);
        settle(fd, socket);
    }
}

/// The same for calls that come often: a process that never slept here, and had no looker, leaves out no token.
#[inline]
pub fn watch_all(numbers: impl Iterator<Item = c_int>) {
    if SLEPT.load(Ordering::Relaxed) || looking::is_used() || held::is_used() {
        numbers.for_each(watch);
    }
}

/// A call took a part of the input. What is left has its token, unless the call slept here or marks tell of it.
#[inline]
pub fn left_a_rest(socket: &Socket) {
    if socket.has(bit::WATCHED) && socket.page.looker().is_none() {
        tokens::ask(socket);
    }
}

/// Waits until the descriptor shows the input that there is. A transport that is just being reborn shows it later.
fn settle(fd: c_int, socket: &Socket) {
    for _ in 0..ROUNDS {
        if !tokens::is_lacking(socket) {
            return;
        }
        tokens::ask(socket);
        if sys::poll(fd, libc::POLLIN, Some(ROUND_MS)).is_ok_and(|events| events != 0) {
            return;
        }
    }
}

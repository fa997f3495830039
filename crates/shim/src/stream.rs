//! Sending and receiving on streams.
//!
//! A call takes the direction's lock only to copy and to publish; it never waits under it.

use crate::buffers::Buffers;
use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::zerocopy::Completed;
use crate::{readiness, refusal, sleeping, stamps, urgent, zerocopy};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_channel::socket::Stamp;
use eft_channel::socket::{Opt, cork, flag};

/// Bytes published at a time: the transport begins with the first while we copy the next.
const CHUNK: usize = 65536;

/// Where sent bytes come from.
pub trait Source {
    /// Bytes that the program still wants to send.
    fn left(&self) -> usize;
    /// Puts up to `n` bytes into the send ring at `offset`; returns how many. Zero ends the call.
    fn fill(&mut self, socket: &Socket, offset: u64, n: usize) -> Result<usize>;
}

impl Source for Buffers<'_> {
    fn left(&self) -> usize {
        Buffers::left(self)
    }

    fn fill(&mut self, socket: &Socket, offset: u64, n: usize) -> Result<usize> {
        self.touchable()?;
        self.write_send(&socket.page, offset, n);
        Ok(n)
    }
}

enum Step {
    Sent(usize),
    /// No room (or not connected yet): wait until writable.
    Full,
}

/// Sends all of `source`, or what fits if the call must not wait.
pub fn send(fd: c_int, socket: &Socket, source: &mut impl Source, flags: c_int) -> Result<usize> {
    let sent = send_all(fd, socket, source, flags)?;
    if sent > 0 {
        zerocopy::sent(socket, flags);
    }
    Ok(sent)
}

fn send_all(fd: c_int, socket: &Socket, source: &mut impl Source, flags: c_int) -> Result<usize> {
    if flags & libc::MSG_FASTOPEN != 0 {
        // Without an address.
        let connected = socket.page.flags() & flag::CONNECTED != 0;
        return Err(Errno(if connected { libc::EISCONN } else { libc::EOPNOTSUPP }));
    }
    let mut done = 0;
    let mut rounds = 0;
    loop {
        let step = match send_step(fd, socket, source, flags, done) {
            Ok(step) => step,
            Err(_) if done > 0 => return Ok(done),
            Err(Errno(libc::EPIPE)) => {
                if flags & libc::MSG_NOSIGNAL == 0 {
                    raise_sigpipe();
                }
                return Err(Errno(libc::EPIPE));
            }
            Err(errno) => return Err(readiness::reentered(fd, socket, flags, errno)),
        };
        match step {
            Step::Sent(n) => {
                done += n;
                if n == 0 || source.left() == 0 {
                    return Ok(done);
                }
            }
            Step::Full if readiness::must_not_wait(fd, socket, flags) => {
                if done > 0 {
                    return Ok(done);
                }
                readiness::found_nothing(fd, socket);
                return Err(Errno(libc::EAGAIN));
            }
            Step::Full => {
                match readiness::wait_room(fd, socket) {
                    Err(_) if done > 0 => return Ok(done),
                    Err(errno) => return Err(errno),
                    Ok(()) => {}
                }
                rounds += 1;
                if rounds % 8 == 0 {
                    readiness::examine(fd, socket);
                }
            }
        }
    }
}

/// The error that forbids sending, if there is one.
fn send_allowed(socket: &Socket, done: usize) -> Result<bool> {
    if socket.page.error() != 0 {
        if done > 0 {
            // The error is for the next call.
            return Err(Errno(libc::EPIPE));
        }
        socket.take_error()?;
    }
    let flags = socket.page.flags();
    if flags & (flag::DEAD | flag::SEND_CLOSED) != 0 || socket.wishes_shut_write() || socket.has(bit::ORPHAN)
    {
        return Err(Errno(libc::EPIPE));
    }
    if flags & flag::CONNECTED == 0 {
        return match flags & flag::CONNECTING {
            0 => Err(Errno(libc::EPIPE)),
            _ => Ok(false),
        };
    }
    Ok(true)
}

fn send_step(
    fd: c_int,
    socket: &Socket,
    source: &mut impl Source,
    flags: c_int,
    done: usize,
) -> Result<Step> {
    if !send_allowed(socket, done)? {
        return Ok(Step::Full);
    }
    if source.left() == 0 {
        return Ok(Step::Sent(0));
    }
    let guard = socket.lock_send()?;
    let page = &socket.page;
    let room = page.sendable().min(CHUNK);
    if room == 0 {
        readiness::plug(fd, socket);
        drop(guard);
        crate::domain::notify(socket);
        return Ok(Step::Full);
    }
    let incarnation = page.incarnation();
    let end = page.send_end();
    let n = source.fill(socket, end, room.min(source.left()))?;
    if page.incarnation() != incarnation {
        // Closed by another thread meanwhile; the slot may have another socket.
        return Err(Errno(libc::EPIPE));
    }
    set_more(socket, flags & libc::MSG_MORE != 0);
    if flags & libc::MSG_EOR != 0 && source.left() == 0 {
        page.end_record(end.wrapping_add(n as u64));
    }
    if n > 0
        && stamps::is_on(socket)
        && stamps::is_last(fd, socket, flags, source.left(), page.send_free() - n)
    {
        stamps::request(socket, end.wrapping_add(n as u64));
    }
    if flags & libc::MSG_OOB != 0 && n > 0 {
        urgent::sends(socket, end.wrapping_add(n as u64));
    }
    page.set_send_end(end.wrapping_add(n as u64));
    drop(guard);
    if n > 0 {
        crate::domain::notify(socket);
        readiness::found_something(socket);
    }
    Ok(Step::Sent(n))
}

fn set_more(socket: &Socket, more: bool) {
    let corked = socket.page.option(Opt::Cork);
    let wanted = corked & !cork::MORE | if more { cork::MORE } else { 0 };
    if wanted != corked {
        socket.page.set_option(Opt::Cork, wanted);
    }
}

fn raise_sigpipe() {
    if crate::confined::is_confined() {
        return;
    }
    // SAFETY: plain numbers. To this thread, as the kernel does.
    unsafe {
        let thread = sys::call(libc::SYS_gettid, [0; 6]).unwrap_or(0);
        let _ =
            sys::call(libc::SYS_tgkill, [sys::getpid() as usize, thread, libc::SIGPIPE as usize, 0, 0, 0]);
    }
}

/// What the receive ring gave.
enum Taken {
    Bytes(usize),
    /// No more will come.
    End,
    Nothing,
}

/// Receives into `to`; 0 at the end of the stream.
pub fn receive(fd: c_int, socket: &Socket, to: &mut Buffers, flags: c_int) -> Result<usize> {
    if flags & libc::MSG_OOB != 0 {
        let n = urgent::receive(socket, to, flags)?;
        readiness::retire(fd, socket, || is_readable(socket));
        return Ok(n);
    }
    if flags & libc::MSG_ERRQUEUE != 0 {
        return match refusal::is_pending(socket) {
            true => refusal::take_error(fd, socket, to).map(|refusal| refusal.copied),
            false => take_notice(fd, socket).map(|_| 0),
        };
    }
    if flags & libc::MSG_TRUNC == 0 {
        to.touchable()?;
    }
    // A call for no bytes also waits until there are some.
    let wanted = to.left();
    let enough = match flags & libc::MSG_WAITALL {
        0 => (socket.low_water().load(Ordering::Relaxed) as usize).max(1).min(wanted),
        _ => wanted,
    };
    if flags & libc::MSG_PEEK != 0 && enough > 1 && !readiness::must_not_wait(fd, socket, flags) {
        await_bytes(socket, enough)?;
    }
    let mut done = 0;
    let mut rounds = 0;
    loop {
        let taken = match take(fd, socket, to, flags, done) {
            Ok(taken) => taken,
            Err(_) if done > 0 => return Ok(done),
            Err(errno) => return Err(readiness::reentered(fd, socket, flags, errno)),
        };
        match taken {
            Taken::Bytes(n) => {
                done += n;
                if done >= enough || flags & libc::MSG_PEEK != 0 {
                    return Ok(done);
                }
            }
            Taken::End => return Ok(done),
            Taken::Nothing if readiness::must_not_wait(fd, socket, flags) => {
                if done > 0 {
                    return Ok(done);
                }
                readiness::found_nothing(fd, socket);
                return Err(Errno(libc::EAGAIN));
            }
            Taken::Nothing => {
                match wait(fd, socket) {
                    Err(_) if done > 0 => return Ok(done),
                    Err(errno) => return Err(errno),
                    Ok(()) => {}
                }
                rounds += 1;
                if rounds % 8 == 0 {
                    readiness::examine(fd, socket);
                }
            }
        }
    }
}

fn take(fd: c_int, socket: &Socket, to: &mut Buffers, flags: c_int, done: usize) -> Result<Taken> {
    let page = &socket.page;
    let guard = socket.lock_receive()?;
    // Flags first: once they show the end of the stream, all its bytes are published.
    let state = page.flags();
    let from = page.receive_taken();
    let step = urgent::step(socket, from);
    if step.at_mark && done > 0 {
        return Ok(Taken::End);
    }
    if step.len == 0 {
        if step.skip > 0 && flags & libc::MSG_PEEK == 0 {
            page.set_receive_taken(from.wrapping_add(step.skip));
            crate::domain::notify_taken(socket);
        }
        drop(guard);
        return nothing_there(fd, socket, state, done);
    }
    let from = from.wrapping_add(step.skip);
    let n = step.len.min(to.left());
    let incarnation = page.incarnation();
    if flags & libc::MSG_TRUNC != 0 {
        to.skip(n);
    } else {
        to.read_receive(page, from, n);
    }
    if flags & libc::MSG_PEEK != 0 {
        sleeping::left_a_rest(socket);
        return Ok(Taken::Bytes(n));
    }
    if page.incarnation() != incarnation {
        return Err(Errno(libc::ECONNRESET));
    }
    page.set_receive_taken(from.wrapping_add(n as u64));
    drop(guard);
    crate::domain::notify_taken(socket);
    readiness::found_something(socket);
    if n == step.len {
        readiness::retire(fd, socket, || is_readable(socket));
    } else {
        readiness::took_a_part(fd, socket);
        sleeping::left_a_rest(socket);
    }
    Ok(Taken::Bytes(n))
}

/// Waits for this many bytes without taking any. The descriptor is readable from the first byte on,
/// so this polls; the call is rare.
fn await_bytes(socket: &Socket, enough: usize) -> Result<()> {
    let enough = enough.min(socket.page.receive_len() / 2);
    while socket.page.receivable() < enough && !socket.is_ended() && !socket.has(bit::ORPHAN) {
        sys::poll(-1, 0, Some(1))?;
    }
    Ok(())
}

/// What MSG_ERRQUEUE takes from a stream.
pub enum Notice {
    /// Sends with MSG_ZEROCOPY.
    Completed(Completed),
    /// A time of a send.
    Stamped(Stamp),
}

/// Takes what MSG_ERRQUEUE asks for.
pub fn take_notice(fd: c_int, socket: &Socket) -> Result<Notice> {
    let completed = zerocopy::take(socket).map(Notice::Completed);
    let notice = completed.or_else(|| stamps::take(socket).map(Notice::Stamped));
    let notice = notice.ok_or(Errno(libc::EAGAIN))?;
    readiness::retire(fd, socket, || is_readable(socket));
    Ok(notice)
}

/// Whether there is something to take with MSG_ERRQUEUE.
#[inline]
pub fn has_notice(socket: &Socket) -> bool {
    zerocopy::is_pending(socket) || stamps::is_pending(socket)
}

/// Waits until there may be something to receive. A notice is nothing, but makes the descriptor readable; after the wait it
/// does so again.
fn wait(fd: c_int, socket: &Socket) -> Result<()> {
    if !has_notice(socket) {
        return readiness::wait_stream(fd, socket);
    }
    readiness::retire(fd, socket, || has_bytes(socket));
    let waited = readiness::wait_stream(fd, socket);
    zerocopy::wake(socket);
    waited
}

/// Whether a receive returns at once.
fn has_bytes(socket: &Socket) -> bool {
    urgent::has_input(socket) || socket.page.error() != 0 || socket.is_ended()
}

/// Whether there is something to take.
pub fn is_readable(socket: &Socket) -> bool {
    has_bytes(socket) || has_notice(socket)
}

fn nothing_there(fd: c_int, socket: &Socket, state: u32, done: usize) -> Result<Taken> {
    if state & flag::FINISHED != 0 {
        // Whatever became of the connection later: the stream is whole, and the error is told by other calls, as on Linux.
        return Ok(Taken::End);
    }
    if done == 0 {
        socket.take_error()?;
    } else if socket.page.error() != 0 {
        return Ok(Taken::End);
    }
    if state & (flag::RECEIVE_END | flag::DEAD) != 0 || socket.wishes_shut_read() {
        return Ok(Taken::End);
    }
    if socket.has(bit::ORPHAN) {
        return Err(Errno(libc::ECONNRESET));
    }
    if state & (flag::CONNECTED | flag::CONNECTING) == 0 && !socket.has(bit::DEFERRED) {
        return Err(Errno(libc::ENOTCONN));
    }
    readiness::retire(fd, socket, || is_readable(socket));
    Ok(Taken::Nothing)
}

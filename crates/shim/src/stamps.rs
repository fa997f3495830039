//! SO_TIMESTAMPING (Documentation/networking/timestamping.rst of the kernel): when a datagram or a send's last byte was given to
//! the network's queue, when a device had it, and when a stream's peer acknowledged it, from the error queue; and when what is
//! received came, which SO_TIMESTAMP and SO_TIMESTAMPNS tell, too (socket(7)). The transport takes the times; here they become those of the wall's clock.

use crate::domain;
use crate::readiness;
use crate::socket::Socket;
use crate::sys::{Errno, Result};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use eft_channel::socket::{Opt, QUOTE_MAX, STAMPED, Stamp, stamping, wanted};
use zerocopy::IntoBytes;

/// Further flags, `SOF_TIMESTAMPING_…`.
const SOFTWARE: u32 = 16;
const OPT_ID: u32 = 128;
const OPT_TSONLY: u32 = 2048;
const OPT_ID_TCP: u32 = 65536;
/// Flags that need hardware: they are taken, and nothing comes of them, as on Linux with a device that has no clock.
const HARDWARE: u32 = 1 | 4 | 32 | 64 | 16384;
/// Times of sends.
const SENDS: u32 = stamping::TX_SOFTWARE | stamping::TX_SCHED | stamping::TX_ACK;
const KNOWN: u32 = SENDS | stamping::RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY | OPT_ID_TCP | HARDWARE;
/// `SO_EE_ORIGIN_TIMESTAMPING`.
const ORIGIN: u8 = 4;

/// SO_TIMESTAMP and SO_TIMESTAMPNS, which have bits of their own in the word of SO_TIMESTAMPING.
const PLAIN: u32 = stamping::RX_MICROSECONDS | stamping::RX_NANOSECONDS;

/// What SO_TIMESTAMPING says.
pub fn flags_of(socket: &Socket) -> u32 {
    socket.page.stamping() & !PLAIN
}

fn plain_of(socket: &Socket) -> u32 {
    socket.page.stamping() & PLAIN
}

/// Sets SO_TIMESTAMP or SO_TIMESTAMPNS: the one ends the other, as on Linux, and so does either of them that is switched off.
pub fn set_plain(socket: &Socket, which: u32, is_on: bool) {
    let plain = if is_on { which } else { 0 };
    socket.page.set_option(Opt::Timestamping, flags_of(socket) | plain);
}

/// Whether this one of the two is on.
pub fn has_plain(socket: &Socket, which: u32) -> bool {
    plain_of(socket) & which != 0
}

/// Refuses flags that are of no effect here.
pub fn check(flags: u32) -> Result<()> {
    let wrong = flags & !KNOWN != 0 || (flags & OPT_ID_TCP != 0 && flags & OPT_ID == 0);
    if wrong { Err(Errno(libc::EINVAL)) } else { Ok(()) }
}

/// Sets the option, after [`check`]. True if there will be times in the error queue.
pub fn set(socket: &Socket, flags: u32) -> bool {
    let before = flags_of(socket);
    prepare(socket);
    if flags & OPT_ID != 0 && before & OPT_ID == 0 {
        // Numbers count bytes from here, or datagrams.
        let page = &socket.page;
        let first = match socket.is_stream() {
            true if flags & OPT_ID_TCP != 0 => page.send_end(),
            true => page.send_released(),
            false => 0,
        };
        socket.stamp_base().store(first as u32, Ordering::Relaxed);
    }
    socket.page.set_option(Opt::Timestamping, flags | plain_of(socket));
    flags & SENDS != 0
}

/// An accepted connection has its listener's wishes.
pub fn inherit(listener: &Socket, socket: &Socket) {
    let flags = listener.page.stamping();
    if flags != 0 {
        prepare(socket);
        socket.page.set_option(Opt::Timestamping, flags);
    }
}

/// Before the option is first set on a socket.
fn prepare(socket: &Socket) {
    if socket.is_stream() && flags_of(socket) == 0 && socket.page.errors_end() == 0 {
        socket.page.clear_stamp_requests();
    }
}

/// Whether times of sends are wanted.
#[inline]
pub fn is_on(socket: &Socket) -> bool {
    flags_of(socket) & SENDS != 0
}

/// Which times of a datagram are wanted, and the number that they are told with. Under the send lock, once for each datagram.
pub fn number(socket: &Socket) -> (u8, u16) {
    let flags = flags_of(socket);
    let bit = |flag: u32, bit: u8| if flags & flag != 0 { bit } else { 0 };
    match bit(stamping::TX_SCHED, wanted::SCHEDULED) | bit(stamping::TX_SOFTWARE, wanted::SENT) {
        0 => (0, 0),
        wanted => (wanted, socket.stamp_base().fetch_add(1, Ordering::Relaxed) as u16),
    }
}

/// Takes the oldest time of a datagram, if it is the oldest in the error queue.
pub fn take_of_datagram(socket: &Socket) -> Option<Stamp> {
    let page = &socket.page;
    let _guard = socket.lock_receive().ok()?;
    if !page.has_errors() {
        return None;
    }
    let taken = page.errors_taken();
    let mut bytes = [0; QUOTE_MAX];
    let record = page.read_error(taken, &mut bytes);
    if record.errno != STAMPED {
        return None;
    }
    let count = record.len as usize / size_of::<Stamp>();
    // The word is shared with the domain's other processes.
    let next = (socket.stamps_read().load(Ordering::Relaxed) as usize).min(count.saturating_sub(1));
    let mut stamp = Stamp::default();
    let at = next * size_of::<Stamp>();
    stamp.as_mut_bytes().copy_from_slice(&bytes[at..at + size_of::<Stamp>()]);
    let is_last = next + 1 >= count;
    socket.stamps_read().store(if is_last { 0 } else { next as u32 + 1 }, Ordering::Relaxed);
    if is_last {
        page.set_errors_taken(taken.wrapping_add(1));
        // There may be more than the page has room for.
        domain::notify(socket);
    }
    Some(stamp)
}

/// Whether there is a time to take.
#[inline]
pub fn is_pending(socket: &Socket) -> bool {
    flags_of(socket) != 0 && socket.page.has_errors()
}

/// A send ends at this offset of the stream, which is not published yet. Under the send lock.
pub fn request(socket: &Socket, end: u64) {
    socket.page.request_stamps(end, flags_of(socket) & SENDS);
}

/// Whether the bytes that fill the ring now are the last that a send puts in.
pub fn is_last(fd: c_int, socket: &Socket, flags: c_int, left: usize, room: usize) -> bool {
    left == 0 || (room == 0 && readiness::must_not_wait(fd, socket, flags))
}

/// Takes the oldest time.
pub fn take(socket: &Socket) -> Option<Stamp> {
    let page = &socket.page;
    let _guard = socket.lock_receive().ok()?;
    if !is_pending(socket) {
        return None;
    }
    let taken = page.errors_taken();
    let stamp = page.read_stamp(taken);
    page.set_errors_taken(taken.wrapping_add(1));
    Some(stamp)
}

/// Whether a time is told with the packet it belongs to. There is none here: it counts as cut off.
pub fn lacks_packet(socket: &Socket) -> bool {
    flags_of(socket) & OPT_TSONLY == 0
}

/// The `sock_extended_err` of a time, and room for an offender's address, which it has none of: its bytes and how many.
pub fn extended(socket: &Socket, stamp: &Stamp, inet6: bool) -> ([u8; 64], usize) {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&libc::ENOMSG.to_ne_bytes());
    bytes[4] = ORIGIN;
    bytes[8..12].copy_from_slice(&stamp.kind.to_ne_bytes());
    let base = socket.stamp_base().load(Ordering::Relaxed);
    let number = match (flags_of(socket) & OPT_ID, socket.is_stream()) {
        (0, _) => 0,
        // Of the numbers so far, the last with this low half.
        (_, false) => {
            let last = base.wrapping_sub(1);
            last.wrapping_sub((last as u16).wrapping_sub(stamp.end as u16).into())
        }
        _ => stamp.end.wrapping_sub(1).wrapping_sub(base),
    };
    bytes[12..16].copy_from_slice(&number.to_ne_bytes());
    let address = if inet6 { size_of::<libc::sockaddr_in6>() } else { size_of::<libc::sockaddr_in>() };
    (bytes, 16 + address)
}

/// A time as `SCM_TIMESTAMPING` tells it, if the program wants to be told: three of them, the last two of hardware.
pub fn told(socket: &Socket, at: u64) -> Option<[u8; 48]> {
    if at == 0 || flags_of(socket) & SOFTWARE == 0 {
        return None;
    }
    let then = on_the_wall(at);
    Some(pair(then, then.subsec_nanos()))
}

/// The control messages that tell when something came, as the options want it: kind, bytes and how many.
pub fn of_arrival(socket: &Socket, at: u64) -> impl Iterator<Item = (c_int, [u8; 48], usize)> {
    let plain = plain_of(socket);
    let since_epoch = (plain != 0 && at != 0).then(|| on_the_wall(at));
    let plain = since_epoch.map(|then| match plain {
        stamping::RX_NANOSECONDS => (libc::SCM_TIMESTAMPNS, pair(then, then.subsec_nanos()), 16),
        _ => (libc::SCM_TIMESTAMP, pair(then, then.subsec_micros()), 16),
    });
    let wanted = flags_of(socket) & stamping::RX_SOFTWARE != 0;
    let three = wanted.then(|| told(socket, at)).flatten().map(|bytes| (libc::SCM_TIMESTAMPING, bytes, 48));
    plain.into_iter().chain(three)
}

fn pair(then: Duration, part: u32) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&then.as_secs().to_ne_bytes());
    bytes[8..16].copy_from_slice(&u64::from(part).to_ne_bytes());
    bytes
}

/// How far readings of two clocks may differ, in nanoseconds, without a change of either.
const JITTER: u64 = 50_000;
/// The wall's clock less the monotonic one, in nanoseconds, as a time was last told. Two pairs of readings differ by what happens
/// between the two of a pair, and what happened later must not be told as the earlier.
static OFFSET: AtomicU64 = AtomicU64::new(0);

/// A time of the monotonic clock, in nanoseconds, as one of the wall's.
fn on_the_wall(at: u64) -> Duration {
    let fresh = offset();
    let mut kept = OFFSET.load(Ordering::Relaxed);
    if kept.abs_diff(fresh) > JITTER {
        // The clock was set, or has gone faster or slower for a while.
        OFFSET.store(fresh, Ordering::Relaxed);
        kept = fresh;
    }
    Duration::from_nanos(at.wrapping_add(kept))
}

fn offset() -> u64 {
    let reading = || {
        let before = clock(libc::CLOCK_MONOTONIC);
        let wall = clock(libc::CLOCK_REALTIME);
        let apart = clock(libc::CLOCK_MONOTONIC).saturating_sub(before);
        (apart, wall.wrapping_sub(before + apart / 2))
    };
    let first = reading();
    // Further ones if somebody else had the CPU meanwhile.
    let further = (0..8).take_while(|_| first.0 > JITTER).map(|_| reading());
    further.fold(first, |best, other| best.min(other)).1
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a timespec of ours.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests;

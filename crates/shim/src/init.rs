//! The program's start: joins the domain, maps its arena, finds inherited sockets.
//!
//! Invariant: a program started by `eft run` never runs without the stack. If anything fails, one line
//! says what, and the program ends with 127.

use crate::dispatch::Calls;
use crate::domain::{Domain, domain};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{
    confined, control, dispatch, epoll, exec, held, limit, looking, options, process, real, scan, stdio,
};
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use eft_channel::segment::Segment;
use eft_channel::socket::{ARENA_HEADER_LEN, Arena, Geometry, LAYOUT_VERSION};
use eft_channel::status::{STATUS_LEN, Status};
use eft_messages::control::Reply;
use std::sync::Arc;

/// Rounds of about a second in which sockets may be reborn before the start is given up.
const HELLO_ATTEMPTS: u32 = 10;

const FORKS: process::Hooks = process::Hooks {
    lock: || {
        held::part_all();
        control::lock_for_fork();
    },
    unlock: control::unlock_after_fork,
    reset_locks: || {
        control::reset_lock();
        epoll::reset_lock();
        looking::reset_lock();
        held::reset_lock();
        limit::reset_lock();
        options::joined::reset_lock();
        stdio::reset_lock();
    },
    begin: || {
        control::forget_connection();
        held::forget();
        dispatch::begin();
    },
};

const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(NEW);

/// Starts the shim if it has not started. `calls` makes the system calls that the program makes past
/// libc.
#[inline]
pub fn ensure(calls: Calls) {
    if STATE.load(Ordering::Acquire) != DONE {
        first(calls);
    }
}

#[cold]
fn first(calls: Calls) {
    if STATE.compare_exchange(NEW, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Started by this thread: these are the constructor's own calls. (No other thread runs yet.)
        return;
    }
    real::resolve_all();
    if !has_environment() {
        // libc is not ready: some library makes calls before any constructor has run, as
        // AddressSanitizer's does.
        STATE.store(NEW, Ordering::Release);
        return;
    }
    if let Err(why) = start(calls) {
        sys::complain(why.line());
        // SAFETY: ends the process.
        unsafe { libc::_exit(127) };
    }
    STATE.store(DONE, Ordering::Release);
}

fn has_environment() -> bool {
    unsafe extern "C" {
        static environ: *const *const core::ffi::c_char;
    }
    // SAFETY: libc's own; null until libc is initialised.
    unsafe { !(&raw const environ).read_volatile().is_null() }
}

/// Why a program cannot be on its stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    NoStack,
    NoMemory,
    Closed,
    Silent,
    Gone,
    OtherVersion,
    Full,
    Refused,
    Unmappable,
    NoDescriptor,
}

impl Failure {
    /// The one line that says what to do. It is printed where nothing can be formatted.
    fn line(self) -> &'static str {
        match self {
            Failure::NoStack => {
                "libeft.so was loaded without a stack (EFT_DOMAIN_FD is not set): \
                 start the program with `eft run --name NAME -- PROGRAM`"
            }
            Failure::NoMemory => "out of memory while starting",
            Failure::Closed => "the connection to the stack was closed by the program that started this one",
            Failure::Silent => "the stack does not answer (see `eft ps`)",
            Failure::Gone => "the stack is gone (see `eft up`)",
            Failure::OtherVersion => {
                "the stack and this libeft.so have different versions: restart the stack or the program"
            }
            Failure::Full => "the stack has no room for another program",
            Failure::Refused => "the stack refused this program",
            Failure::Unmappable => {
                "the stack's shared memory cannot be mapped: is there a low limit on address space (ulimit -v)?"
            }
            Failure::NoDescriptor => "no descriptor is free",
        }
    }

    fn of_answer(errno: c_int) -> Failure {
        match errno {
            libc::EPROTONOSUPPORT => Failure::OtherVersion,
            libc::ENOMEM | libc::ENOSPC | libc::EMFILE => Failure::Full,
            _ => Failure::Refused,
        }
    }
}

fn start(calls: Calls) -> core::result::Result<(), Failure> {
    let fd = domain_fd().ok_or(Failure::NoStack)?;
    if !table::install() || !process::install(FORKS) {
        return Err(Failure::NoMemory);
    }
    if sys::fcntl(fd, libc::F_GETFD, 0).is_err() {
        return Err(Failure::Closed);
    }
    exec::remember();
    looking::begin();
    table::set(fd, Entry::Hidden);
    control::set_domain_fd(fd);
    let (connection, answer) = control::hello(Some(HELLO_ATTEMPTS)).map_err(|errno| match errno {
        Errno(libc::ETIMEDOUT) => Failure::Silent,
        _ => Failure::Gone,
    })?;
    if answer.reply.errno != 0 {
        return Err(Failure::of_answer(answer.reply.errno));
    }
    let mapped = map(&answer.reply, &answer.descriptors);
    answer.descriptors.into_iter().for_each(sys::close);
    mapped.map_err(|_| Failure::Unmappable)?.install();
    control::adopt_connection(connection).map_err(|_| Failure::NoDescriptor)?;
    scan::inherited();
    confined::inherited();
    stdio::install();
    if !under_valgrind() {
        dispatch::install(calls);
    }
    Ok(())
}

/// Whether Valgrind runs the program: it puts a library of its own before all others. It makes the
/// program's system calls from its own code, which must not be handed over; calls past libc are not seen
/// there.
fn under_valgrind() -> bool {
    // SAFETY: NUL-terminated name; the value is read at once.
    unsafe {
        let list = libc::getenv(c"LD_PRELOAD".as_ptr());
        !list.is_null() && CStr::from_ptr(list).to_bytes().windows(14).any(|w| w == b"vgpreload_core")
    }
}

fn domain_fd() -> Option<c_int> {
    // SAFETY: NUL-terminated name; the value is read at once.
    let text = unsafe {
        let value = libc::getenv(c"EFT_DOMAIN_FD".as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value)
    };
    text.to_str().ok()?.parse().ok().filter(|&fd| fd >= 0)
}

fn geometry(reply: &Reply) -> Geometry {
    let [slots, send_len, receive_len, _] = reply.args.map(|n| n as usize);
    Geometry { slots, send_len, receive_len }
}

/// Maps what came with the reply to Hello.
fn map(reply: &Reply, descriptors: &[c_int]) -> Result<Domain> {
    if reply.version != LAYOUT_VERSION || descriptors.len() < 3 {
        return Err(Errno(libc::EPROTO));
    }
    let geometry = geometry(reply);
    if !geometry.is_valid() {
        return Err(Errno(libc::EPROTO));
    }
    has_room(descriptors[0], geometry.arena_len())?;
    let arena = segment(descriptors[0], ARENA_HEADER_LEN, true)?;
    let arena = Arena::head(arena, geometry).map_err(|_| Errno(libc::EPROTO))?;
    let [memory, eventfd] = [keep(descriptors[0])?, keep(descriptors[1])?];
    let status = |(id, fd)| {
        let status = segment(fd, STATUS_LEN, false)?;
        Ok((id, Status::new(status).map_err(|_| Errno(libc::EPROTO))?))
    };
    let transports = control::status_pages(reply, &descriptors[2..]).into_iter().map(status);
    let transports = transports.collect::<Result<Vec<_>>>()?;
    Domain::new(arena, memory, eventfd, transports).ok_or(Errno(libc::ENOMEM))
}

/// A duplicate under a high number that the program does not see.
fn keep(fd: c_int) -> Result<c_int> {
    let kept = sys::move_high(sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3)? as c_int, true)?;
    table::set(kept, Entry::Hidden);
    Ok(kept)
}

/// Beyond its end a mapping faults.
fn has_room(fd: c_int, len: usize) -> Result<()> {
    // SAFETY: all zeroes is a stat; it is ours.
    let size = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        sys::call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0])?;
        stat.st_size as usize
    };
    if size < len { Err(Errno(libc::EPROTO)) } else { Ok(()) }
}

fn segment(fd: c_int, len: usize, writable: bool) -> Result<Segment> {
    has_room(fd, len)?;
    let pointer = sys::map_shared(fd, 0, len, writable)?;
    let pointer = NonNull::new(pointer).ok_or(Errno(libc::ENOMEM))?;
    // SAFETY: mapped for good, page-aligned, writable as said.
    Ok(unsafe { Segment::from_raw(pointer, len, writable, Arc::new(())) })
}

/// Whether the shim serves this process.
pub fn is_active() -> bool {
    domain().is_some()
}

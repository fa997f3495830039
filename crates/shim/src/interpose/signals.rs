//! Masks and handlers, where they affect SIGSYS, by which calls past libc are seen (see `dispatch`).
//!
//! As with the signals that libc uses itself, none of the program's masks blocks it. A handler of the program
//! gets only those SIGSYS that have another cause.

use super::polling;
use super::select::Sets;
use crate::dispatch::{self, signals};
use crate::sys::Errno;
use crate::{confined, errno, handlers, held, poll, real};
use core::ffi::c_int;
use core::time::Duration;
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigaction as Action, sigset_t, timespec};

/// Whether the program's masks and handlers must be adjusted.
fn watched() -> bool {
    super::ensure();
    dispatch::is_armed()
}

/// Calls with the mask, without SIGSYS.
unsafe fn with_mask<T>(mask: *const sigset_t, call: impl FnOnce(*const sigset_t) -> T) -> T {
    if mask.is_null() || !watched() {
        return call(mask);
    }
    // SAFETY: the program's mask: libc, too, reads no more of it than the kernel knows signals.
    match signals::stripped(unsafe { mask.cast::<u64>().read_unaligned() }) {
        None => call(mask),
        Some(word) => call(&of_word(word)),
    }
}

fn of_word(word: u64) -> sigset_t {
    // SAFETY: all zeroes is the empty set, whose first word has the kernel's signals.
    unsafe {
        let mut set: sigset_t = core::mem::zeroed();
        (&raw mut set).cast::<u64>().write(word);
        set
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe { with_mask(new, |new| real::sigprocmask.get()(how, new, old)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: as above.
    unsafe { with_mask(new, |new| real::pthread_sigmask.get()(how, new, old)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    // SAFETY: as above.
    unsafe { with_mask(mask, |mask| real::sigsuspend.get()(mask)) }
}

/// A limit as the program gave it; null is none.
///
/// # Safety
/// `limit` must be null or valid.
pub unsafe fn duration(limit: *const timespec) -> Result<Option<Duration>, ()> {
    // SAFETY: by the caller.
    match unsafe { limit.as_ref() } {
        None => Ok(None),
        Some(&timespec { tv_sec: seconds @ 0.., tv_nsec: nanos @ 0..1_000_000_000 }) => {
            Ok(Some(Duration::new(seconds as u64, nanos as u32)))
        }
        Some(_) => Err(()),
    }
}

pub fn timespec_of(limit: Duration) -> timespec {
    timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Some(watched) = polling::list(list, count) else {
            let ready = with_mask(mask, |mask| real::ppoll.get()(list, count, limit, mask));
            return polling::answered(list, ready, count);
        };
        let Ok(limit) = duration(limit) else {
            // The kernel reports the error.
            return real::ppoll.get()(list, count, limit, mask);
        };
        poll::wait(watched, limit, |list, left| {
            let left = left.map(timespec_of);
            let left = left.as_ref().map_or(core::ptr::null(), |left| left);
            with_mask(mask, |mask| real::ppoll.get()(list.as_mut_ptr(), list.len() as nfds_t, left, mask))
        })
    }
}

/// `ppoll` of programs that were compiled with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    list: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
    len: libc::size_t,
) -> c_int {
    // SAFETY: as above; libc ends a program whose list is shorter than it says.
    unsafe {
        match len / size_of::<pollfd>() < count as usize {
            true => libc::abort(),
            false => ppoll(list, count, limit, mask),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        polling::watch_set(count, read);
        let sets = Sets { count, sets: [read, write, except] };
        let answered = duration(limit).ok().and_then(|limit| {
            sets.wait(limit, |list, left| {
                let left = left.map(timespec_of);
                let left = left.as_ref().map_or(core::ptr::null(), |left| left);
                with_mask(mask, |mask| real::ppoll.get()(list.as_mut_ptr(), list.len() as nfds_t, left, mask))
            })
        });
        if let Some(answered) = answered {
            return answered;
        }
        with_mask(mask, |mask| real::pselect.get()(count, read, write, except, limit, mask))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    limit: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let limit = u64::try_from(limit).ok().map(Duration::from_millis);
        polling::wait_events(set, events, count, limit, |left| {
            let left = polling::milliseconds(left);
            with_mask(mask, |mask| real::epoll_pwait.get()(set, events, count, left, mask))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let Ok(limit) = duration(limit) else {
            // The kernel reports the error.
            return real::epoll_pwait2.get()(set, events, count, limit, mask);
        };
        polling::wait_events(set, events, count, limit, |left| {
            let left = left.map(timespec_of);
            let left = left.as_ref().map_or(core::ptr::null(), |left| left);
            with_mask(mask, |mask| real::epoll_pwait2.get()(set, events, count, left, mask))
        })
    }
}

// The oldest of them have masks that are words.

fn word(mask: c_int) -> c_int {
    match watched() {
        true => mask & !(signals::BIT as c_int),
        false => mask,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigblock(mask: c_int) -> c_int {
    // SAFETY: plain numbers.
    unsafe { real::sigblock.get()(word(mask)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsetmask(mask: c_int) -> c_int {
    // SAFETY: plain numbers.
    unsafe { real::sigsetmask.get()(word(mask)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sighold(signal: c_int) -> c_int {
    match signal {
        libc::SIGSYS if watched() => 0,
        // SAFETY: a plain number.
        _ => unsafe { real::sighold.get()(signal) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: the program's call, as are all below.
    let done = unsafe { set_action(signal, new, old) };
    if !new.is_null() {
        handlers::changed();
    }
    done
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, interrupt: c_int) -> c_int {
    // SAFETY: plain numbers.
    let done = unsafe { real::siginterrupt.get()(signal, interrupt) };
    handlers::changed();
    done
}

unsafe fn set_action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        if !watched() {
            return real::sigaction.get()(signal, new, old);
        }
        if signal == libc::SIGSYS {
            let before = signals::action(new.as_ref().map(in_kernel));
            if let Some(old) = old.as_mut() {
                *old = in_libc(before);
            }
            return 0;
        }
        let Some(action) = new.as_ref() else {
            return real::sigaction.get()(signal, new, old);
        };
        with_mask(&action.sa_mask, |mask| {
            // The program's action, with this mask.
            let mut copy: Action = core::mem::zeroed();
            copy.sa_sigaction = action.sa_sigaction;
            copy.sa_flags = action.sa_flags;
            copy.sa_restorer = action.sa_restorer;
            (&raw mut copy.sa_mask).cast::<u64>().write(mask.cast::<u64>().read_unaligned());
            real::sigaction.get()(signal, &copy, old)
        })
    }
}

fn in_kernel(action: &Action) -> signals::Action {
    signals::Action {
        handler: action.sa_sigaction,
        flags: action.sa_flags as u32 as u64,
        restorer: 0,
        // SAFETY: the set's first word has the kernel's signals.
        mask: unsafe { (&raw const action.sa_mask).cast::<u64>().read() },
    }
}

fn in_libc(action: signals::Action) -> Action {
    // SAFETY: all zeroes is a sigaction.
    let mut libcs: Action = unsafe { core::mem::zeroed() };
    libcs.sa_sigaction = action.handler;
    libcs.sa_flags = action.flags as c_int;
    libcs.sa_mask = of_word(action.mask);
    libcs
}

/// The simple functions: for SIGSYS the action is stored with their flags; libc handles other signals.
fn simply(signal: c_int, handler: usize, flags: c_int, call: impl FnOnce() -> usize) -> usize {
    if signal != libc::SIGSYS || !watched() {
        let before = call();
        handlers::changed();
        return before;
    }
    let action = signals::Action { handler, flags: flags as u32 as u64, restorer: 0, mask: 0 };
    signals::action(Some(action)).handler
}

const SYSV: c_int = libc::SA_RESETHAND | libc::SA_NODEFER;

macro_rules! simple {
    ($($name:ident => $real:ident, $flags:expr;)*) => {$(
        /// # Safety
        /// As libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            // SAFETY: the program's call.
            simply(signal, handler, $flags, || unsafe { real::$real.get()(signal, handler) })
        }
    )*};
}

simple! {
    signal => signal, libc::SA_RESTART;
    bsd_signal => signal, libc::SA_RESTART;
    ssignal => signal, libc::SA_RESTART;
    sysv_signal => sysv_signal, SYSV;
    __sysv_signal => sysv_signal, SYSV;
    sigset => sigset, 0;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    // SAFETY: a plain number.
    simply(signal, libc::SIG_IGN, 0, || unsafe { real::sigignore.get()(signal) } as usize);
    0
}

/// The program cannot use Syscall User Dispatch, which the shim needs: it fails as on a kernel without it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    if option == dispatch::PR_SET_SYSCALL_USER_DISPATCH && watched() {
        return errno::int(Err(Errno(libc::EINVAL)));
    }
    let args = [option as usize, a, b, c, d, 0];
    if confined::confines(libc::SYS_prctl, &args) {
        held::part_all();
    }
    confined::expect(libc::SYS_prctl, &args);
    // SAFETY: the program's call.
    unsafe { real::prctl.get()(option, a, b, c, d) }
}

//! exec: the shim must be loaded into the new program, or the program does not start.
//!
//! A program may clear its environment; LD_PRELOAD and eft's variables are restored. In place of a program into which
//! the shim cannot be loaded, `eft enter` is started, which gives it a proxy and becomes it. One that cannot have a proxy, or
//! whose `eft` does not lie beside the library, is refused with a line on stderr. EFT_UNSHIMMED=allow lets both run on the kernel's network. Nothing here allocates: it runs
//! in vfork children.

use crate::loadable::Reason;
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{control, domain, held, loadable, scan};
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Entries of an environment that is repaired on the stack; a larger one is refused with E2BIG.
const ENTRIES_MAX: usize = 4096;
const TEXT_MAX: usize = 8192;

static SHIM: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static STACK: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static UNSHIMMED: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Remembers the required variables: copies, since programs overwrite theirs.
pub fn remember() {
    for (name, place) in [(c"EFT_SHIM", &SHIM), (c"EFT_STACK", &STACK), (c"EFT_UNSHIMMED", &UNSHIMMED)] {
        // SAFETY: both are NUL-terminated; the copy is kept for good.
        unsafe {
            let value = libc::getenv(name.as_ptr());
            if !value.is_null() {
                place.store(libc::strdup(value), Ordering::Release);
            }
        }
    }
}

fn remembered(place: &AtomicPtr<c_char>) -> Option<&'static CStr> {
    let value = place.load(Ordering::Acquire);
    // SAFETY: null, or a copy that is kept for good.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The domain connection has moved: updates the process's own environment, for programs that libc itself
/// starts (`system`, `popen`).
pub fn note_domain_fd(fd: c_int) {
    let mut text = Text::new();
    if let Some(value) = text.number(fd) {
        // SAFETY: NUL-terminated.
        unsafe { set(c"EFT_DOMAIN_FD", CStr::from_ptr(value)) };
    }
}

/// Sets a variable of the process, unless it already has the value: setenv disturbs other threads.
fn set(name: &CStr, value: &CStr) {
    // SAFETY: NUL-terminated strings; setenv copies.
    unsafe {
        let now = libc::getenv(name.as_ptr());
        if now.is_null() || CStr::from_ptr(now) != value {
            libc::setenv(name.as_ptr(), value.as_ptr(), 1);
        }
    }
}

/// Puts eft's variables back into the process's own environment.
pub fn repair_own() {
    held::part_all();
    if domain::domain().is_none() {
        return;
    }
    note_domain_fd(control::domain_fd());
    // SAFETY: NUL-terminated strings; setenv copies.
    unsafe {
        for (name, place) in [(c"EFT_SHIM", &SHIM), (c"EFT_STACK", &STACK)] {
            if let Some(value) = remembered(place) {
                set(name, value);
            }
        }
        let Some(shim) = remembered(&SHIM) else {
            return;
        };
        let old = libc::getenv(c"LD_PRELOAD".as_ptr());
        let mut text = Text::new();
        let value = match old.is_null() {
            true => Some(shim.as_ptr()),
            false if lists(CStr::from_ptr(old), shim) => None,
            false => text.join(&[shim.to_bytes(), b":", CStr::from_ptr(old).to_bytes()]),
        };
        if let Some(value) = value {
            set(c"LD_PRELOAD", CStr::from_ptr(value));
        }
    }
}

/// NUL-terminated strings, one after the other, in memory of the caller's.
struct Text {
    bytes: [u8; TEXT_MAX],
    used: usize,
}

impl Text {
    fn new() -> Text {
        Text { bytes: [0; TEXT_MAX], used: 0 }
    }

    fn join(&mut self, parts: &[&[u8]]) -> Option<*const c_char> {
        let len: usize = parts.iter().map(|p| p.len()).sum::<usize>() + 1;
        let start = self.used;
        if TEXT_MAX - start < len {
            return None;
        }
        let mut at = start;
        for part in parts {
            self.bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.bytes[at] = 0;
        self.used = at + 1;
        Some(self.bytes[start..].as_ptr().cast())
    }

    fn number(&mut self, number: c_int) -> Option<*const c_char> {
        let mut digits = [0; 12];
        self.join(&[decimal(number, &mut digits)])
    }
}

fn decimal(number: c_int, digits: &mut [u8; 12]) -> &[u8] {
    let mut n = number.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &digits[at..];
        }
    }
}

/// Whether a list of libraries, separated by colons or blanks, names `library`.
fn lists(list: &CStr, library: &CStr) -> bool {
    list.to_bytes().split(|&b| b == b':' || b == b' ').any(|item| item == library.to_bytes())
}

/// What follows the shim in a list of libraries, where `eft run` and this file put the user's own.
fn after_shim<'a>(list: &'a CStr, shim: &CStr) -> &'a [u8] {
    let bytes = list.to_bytes();
    match bytes.strip_prefix(shim.to_bytes()) {
        Some(rest) => rest.strip_prefix(b":").unwrap_or(rest),
        None if lists(list, shim) => b"",
        None => bytes,
    }
}

/// The value of `NAME=` in an entry.
fn value_of<'a>(entry: &'a CStr, name: &str) -> Option<&'a CStr> {
    let bytes = entry.to_bytes_with_nul();
    let rest = bytes.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    CStr::from_bytes_with_nul(rest).ok()
}

const OURS: [&str; 4] = ["LD_PRELOAD", "EFT_DOMAIN_FD", "EFT_SHIM", "EFT_STACK"];

/// Calls `run` with `environment` as it must be.
///
/// # Safety
/// `environment` must be null or a NULL-terminated list of strings, as for `execve`.
pub unsafe fn with_environment(
    environment: *const *const c_char,
    way: Way,
    run: impl FnOnce(*const *const c_char) -> c_int,
) -> Result<c_int> {
    let Some(shim) = remembered(&SHIM) else {
        return crate::errno::of(run(environment));
    };
    // SAFETY: by the caller.
    if unsafe { names_another_stack(environment) } {
        return leave(|| run(environment));
    }
    let mut entries = [core::ptr::null::<c_char>(); ENTRIES_MAX];
    let mut count = 0;
    let mut preload: Option<&CStr> = None;
    let mut at = environment;
    // SAFETY: by the caller.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above.
        let entry = unsafe { CStr::from_ptr(*at) };
        preload = value_of(entry, "LD_PRELOAD").or(preload);
        if !OURS.iter().any(|name| value_of(entry, name).is_some()) {
            if count >= ENTRIES_MAX - 8 {
                return Err(Errno(libc::E2BIG));
            }
            entries[count] = entry.as_ptr();
            count += 1;
        }
        // SAFETY: not yet at the end.
        at = unsafe { at.add(1) };
    }
    let mut text = Text::new();
    let mut digits = [0; 12];
    let fd = decimal(control::domain_fd(), &mut digits);
    let old: &[&[u8]] = match preload {
        // Without the library, as the program is.
        list if way == Way::Entered => &[b"LD_PRELOAD=", after_shim(list.unwrap_or(c""), shim)],
        Some(list) if lists(list, shim) => &[b"LD_PRELOAD=", list.to_bytes()],
        Some(list) if !list.is_empty() => &[b"LD_PRELOAD=", shim.to_bytes(), b":", list.to_bytes()],
        _ => &[b"LD_PRELOAD=", shim.to_bytes()],
    };
    let stack = remembered(&STACK).unwrap_or(c"");
    for parts in
        [old, &[b"EFT_DOMAIN_FD=", fd], &[b"EFT_SHIM=", shim.to_bytes()], &[b"EFT_STACK=", stack.to_bytes()]]
    {
        entries[count] = text.join(parts).ok_or(Errno(libc::E2BIG))?;
        count += 1;
    }
    crate::errno::of(run(entries.as_ptr()))
}

/// Whether an environment is that of `eft run --name OTHER`: it names another stack, and a connection to it.
///
/// # Safety
/// As [`with_environment`].
unsafe fn names_another_stack(environment: *const *const c_char) -> bool {
    let (mut is_another, mut has_connection) = (false, false);
    let mut at = environment;
    // SAFETY: by the caller.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above.
        let entry = unsafe { CStr::from_ptr(*at) };
        if let Some(stack) = value_of(entry, "EFT_STACK") {
            is_another = remembered(&STACK).is_some_and(|own| own != stack);
        }
        if let Some(fd) = value_of(entry, "EFT_DOMAIN_FD").and_then(|v| v.to_str().ok()?.parse().ok()) {
            has_connection = fd != control::domain_fd() && scan::may_be_eft(fd);
        }
        // SAFETY: not yet at the end.
        at = unsafe { at.add(1) };
    }
    is_another && has_connection
}

/// Switches to another stack, without this one's descriptors. A socket of this stack would be a dead
/// descriptor there, so there must be none.
fn leave(run: impl FnOnce() -> c_int) -> Result<c_int> {
    let is_kept = |fd: &c_int| matches!(table::get(*fd), Entry::Eft { .. }) && !sys::is_cloexec(*fd);
    if table::numbers(0, c_int::MAX).any(|fd| is_kept(&fd)) {
        sys::complain(
            "a program for another stack is not started, since it would inherit sockets of this one: close them first",
        );
        return Err(Errno(libc::EPERM));
    }
    let own = control::domain_fd();
    sys::set_cloexec(own, true);
    let failed = crate::errno::of(run());
    sys::set_cloexec(own, false);
    failed
}

/// How a program is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the call as it is.
    Plain,
    /// By `eft enter`.
    Entered,
}

/// How a program is started, if it may be.
pub fn permit(path: &CStr) -> Result<Way> {
    permit_if(path, loadable::check(path), true)
}

/// As [`permit`], for an open file, by which `eft enter` cannot start it.
pub fn permit_fd(fd: c_int) -> Result<Way> {
    permit_if(c"the program", loadable::check_fd(fd), false)
}

fn permit_if(
    path: &CStr,
    verdict: core::result::Result<(), loadable::Reason>,
    can_enter: bool,
) -> Result<Way> {
    let Some(shim) = remembered(&SHIM) else {
        return Ok(Way::Plain);
    };
    let verdict = verdict.and_then(|()| match may_access(shim, libc::R_OK) {
        true => Ok(()),
        false => Err(Reason::Beyond("cannot see the shim's file (after a chroot?)")),
    });
    let Err(reason) = verdict else {
        return Ok(Way::Plain);
    };
    if remembered(&UNSHIMMED).is_some_and(|v| v.to_bytes() == b"allow") {
        return Ok(Way::Plain);
    }
    let reason = match reason {
        Reason::Alone(_) if can_enter && has_enter(shim) => return Ok(Way::Entered),
        Reason::Alone(reason) | Reason::Beyond(reason) => reason,
    };
    let mut text = Text::new();
    let line = text.join(&[
        path.to_bytes(),
        b" ",
        reason.as_bytes(),
        b": it would use the kernel's network, so it is not started \
          (EFT_UNSHIMMED=allow lets such programs run)",
    ]);
    if let Some(line) = line {
        // SAFETY: NUL-terminated, in `text`.
        let line = unsafe { CStr::from_ptr(line) };
        sys::complain(line.to_str().unwrap_or("a program that the shim cannot enter is not started"));
    }
    Err(Errno(libc::EPERM))
}

fn may_access(path: &CStr, how: c_int) -> bool {
    // SAFETY: NUL-terminated.
    unsafe {
        sys::call(
            libc::SYS_faccessat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, how as usize, 0, 0, 0],
        )
        .is_ok()
    }
}

/// Whether the program of `eft enter` is there: a library that was copied alone has none.
fn has_enter(shim: &CStr) -> bool {
    let mut text = Text::new();
    // SAFETY: NUL-terminated, in `text`.
    program_of_enter(&mut text, shim)
        .is_some_and(|eft| may_access(unsafe { CStr::from_ptr(eft) }, libc::X_OK))
}

/// `eft` lies beside the library.
fn program_of_enter(text: &mut Text, shim: &CStr) -> Option<*const c_char> {
    let shim = shim.to_bytes();
    let folder = &shim[..shim.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1)];
    text.join(&[folder, b"eft"])
}

/// Arguments of a program that `eft enter` starts; more are refused with E2BIG.
const ARGUMENTS_MAX: usize = 4096;

/// Calls `run` with the file and the arguments by which a program is started, and with its environment.
///
/// # Safety
/// `path` must be NUL-terminated, `arguments` and `environment` null or NULL-terminated lists of strings.
pub unsafe fn start(
    way: Way,
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    run: impl FnOnce(*const c_char, *const *const c_char, *const *const c_char) -> c_int,
) -> Result<c_int> {
    held::part_all();
    // SAFETY: by the caller.
    unsafe {
        if way == Way::Plain {
            return with_environment(environment, way, |environment| run(path, arguments, environment));
        }
        let mut text = Text::new();
        let shim = remembered(&SHIM).unwrap_or(c"");
        let eft = program_of_enter(&mut text, shim).ok_or(Errno(libc::E2BIG))?;
        let mut all = [core::ptr::null::<c_char>(); ARGUMENTS_MAX];
        all[..4].copy_from_slice(&[eft, c"enter".as_ptr(), c"--".as_ptr(), path]);
        let mut count = 0;
        while !arguments.is_null() && !(*arguments.add(count)).is_null() {
            if count >= ARGUMENTS_MAX - 8 {
                return Err(Errno(libc::E2BIG));
            }
            all[4 + count] = *arguments.add(count);
            count += 1;
        }
        with_environment(environment, way, |environment| run(eft, all.as_ptr(), environment))
    }
}

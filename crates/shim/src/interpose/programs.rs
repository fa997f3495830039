//! exec and spawn.

use crate::exec::{self, Way};
use crate::sys::Result;
use crate::{errno, fdops, held, real, scan, search};
use core::ffi::{CStr, c_char, c_int};
use libc::{FILE, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: Strings;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe {
        errno::int(permit(path).and_then(|way| {
            exec::start(way, path, argv, envp, |path, argv, envp| real::execve.get()(path, argv, envp))
        }))
    }
}

unsafe fn permit(path: *const c_char) -> Result<Way> {
    if path.is_null() {
        return Ok(Way::Plain);
    }
    // SAFETY: as above.
    exec::permit(unsafe { CStr::from_ptr(path) })
}

/// As `permit`, for the file that a search in PATH finds. It is given if it differs from the one that libc starts.
unsafe fn permit_found(file: *const c_char, found: &mut [u8; 4096]) -> Result<(Way, *const c_char)> {
    if file.is_null() {
        return Ok((Way::Plain, file));
    }
    // SAFETY: as above.
    let Some(path) = (unsafe { search::in_path(file, found) }) else { return Ok((Way::Plain, file)) };
    match exec::permit(path)? {
        Way::Plain => Ok((Way::Plain, file)),
        Way::Entered => Ok((Way::Entered, path.as_ptr())),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execve(path, argv, environ) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: as above.
    unsafe {
        let mut found = [0; 4096];
        errno::int(permit_found(file, &mut found).and_then(|(way, file)| {
            exec::start(way, file, argv, envp, |file, argv, envp| real::execvpe.get()(file, argv, envp))
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execvpe(file, argv, environ) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: as above.
    unsafe {
        errno::int(exec::permit_fd(fd).and_then(|way| {
            held::part_all();
            exec::with_environment(envp, way, |envp| real::fexecve.get()(fd, argv, envp))
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    directory: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let absolute = !path.is_null() && *path == b'/' as c_char;
        let permitted =
            if absolute || directory == libc::AT_FDCWD { permit(path) } else { permit_at(directory, path) };
        errno::int(permitted.and_then(|way| {
            exec::start(way, path, argv, envp, |path, argv, envp| {
                real::execveat.get()(directory, path, argv, envp, flags)
            })
        }))
    }
}

unsafe fn permit_at(directory: c_int, path: *const c_char) -> Result<Way> {
    // SAFETY: as above.
    unsafe {
        if path.is_null() || *path == 0 {
            return exec::permit_fd(directory);
        }
        let fd = libc::openat(directory, path, libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return Ok(Way::Plain);
        }
        let permitted = exec::permit_fd(fd);
        crate::sys::close(fd);
        permitted
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        spawned(permit(path).and_then(|way| {
            exec::start(way, path, argv.cast(), envp.cast(), |path, argv, envp| {
                real::posix_spawn.get()(pid, path, actions, attributes, argv.cast(), envp.cast())
            })
        }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let mut found = [0; 4096];
        spawned(permit_found(file, &mut found).and_then(|(way, file)| {
            exec::start(way, file, argv.cast(), envp.cast(), |file, argv, envp| {
                real::posix_spawnp.get()(pid, file, actions, attributes, argv.cast(), envp.cast())
            })
        }))
    }
}

/// The spawn functions return the error instead of setting `errno`.
fn spawned(result: Result<c_int>) -> c_int {
    result.unwrap_or_else(|errno| errno.0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    exec::repair_own();
    // SAFETY: as above.
    unsafe { real::system.get()(command) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    exec::repair_own();
    // SAFETY: as above.
    unsafe { real::popen.get()(command, mode) }
}

/// "Close everything from here on" in a spawned child, except the domain connection, without which
/// the new program could not start. libc has no bounded range, so the open descriptors below it are
/// named one by one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addclosefrom_np(
    actions: *mut posix_spawn_file_actions_t,
    low: c_int,
) -> c_int {
    let mut rest = low;
    // SAFETY: as above.
    unsafe {
        for hidden in fdops::hidden_from(low) {
            for fd in scan::open_descriptors() {
                if (rest..hidden).contains(&fd) {
                    let failed = libc::posix_spawn_file_actions_addclose(actions, fd);
                    if failed != 0 {
                        return failed;
                    }
                }
            }
            rest = hidden + 1;
        }
        real::posix_spawn_file_actions_addclosefrom_np.get()(actions, rest)
    }
}

//! `syscall`: system calls by number, on eft's descriptors as on others.
//!
//! Calls that programs make by their own instructions come here by `dispatch`, where the kernel supports it. `eft
//! run` has the kernel refuse io_uring, whose rings the shim could not see; the older `io_submit` is refused here
//! for eft's descriptors.

use super::{descriptors, io, programs, raw_polling, sockets};
use crate::names::files;
use crate::sys::Errno;
use crate::{confined, dispatch, errno, handlers, held, init, sleeping, sys, table};
use core::ffi::{c_int, c_long};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let args = [a, b, c, d, e, f];
    // SAFETY: the program's call; the arguments are those of the call that it names.
    unsafe {
        if init::is_active()
            && let Some(done) = known(number, args)
        {
            return done as c_long;
        }
        if makes_processes(number) {
            held::part_all();
        }
        let done = match dispatch::signals::by_number(number, args) {
            Some(done) => sys::check(done),
            None => sys::call(number, args),
        };
        if number == libc::SYS_rt_sigaction {
            handlers::changed();
        }
        if done == Ok(0) && makes_processes(number) {
            dispatch::cloned();
        }
        errno::long(done) as c_long
    }
}

#[cfg(target_arch = "x86_64")]
fn makes_processes(number: c_long) -> bool {
    matches!(number, libc::SYS_fork | libc::SYS_clone | libc::SYS_clone3)
}

#[cfg(not(target_arch = "x86_64"))]
fn makes_processes(_number: c_long) -> bool {
    false
}

/// Calls that concern eft; `None` for all others. The result is that of libc's function.
///
/// # Safety
/// As the system call says.
pub unsafe fn known(number: c_long, args: [usize; 6]) -> Option<isize> {
    let [a, b, c, d, e, f] = args;
    let fd = a as c_int;
    let int = |done: c_int| done as isize;
    if confined::confines(number, &args) {
        held::part_all();
    }
    confined::expect(number, &args);
    // SAFETY: as above.
    unsafe {
        Some(match number {
            libc::SYS_read => io::read(fd, b as _, c),
            libc::SYS_write => io::write(fd, b as _, c),
            libc::SYS_readv => io::readv(fd, b as _, c as _),
            libc::SYS_writev => io::writev(fd, b as _, c as _),
            libc::SYS_preadv2 => io::preadv2(fd, b as _, c as _, d as _, f as _),
            libc::SYS_pwritev2 => io::pwritev2(fd, b as _, c as _, d as _, f as _),
            libc::SYS_io_submit => return refused(b, c as _),
            libc::SYS_recvfrom => io::recvfrom(fd, b as _, c, d as _, e as _, f as _),
            libc::SYS_sendto => io::sendto(fd, b as _, c, d as _, e as _, f as _),
            libc::SYS_recvmsg => io::recvmsg(fd, b as _, c as _),
            libc::SYS_sendmsg => io::sendmsg(fd, b as _, c as _),
            libc::SYS_recvmmsg => int(io::recvmmsg(fd, b as _, c as _, d as _, e as _)),
            libc::SYS_sendmmsg => int(io::sendmmsg(fd, b as _, c as _, d as _)),
            libc::SYS_sendfile => io::sendfile64(fd, b as _, c as _, d),
            libc::SYS_splice => io::splice(fd, b as _, c as _, d as _, e, f as _),
            libc::SYS_close => int(descriptors::close(fd)),
            libc::SYS_close_range => int(descriptors::close_range(a as _, b as _, c as _)),
            libc::SYS_dup => int(descriptors::dup(fd)),
            libc::SYS_dup3 => int(descriptors::dup3(fd, b as _, c as _)),
            libc::SYS_pidfd_getfd => int(descriptors::pidfd_getfd(fd, b as _, c as _)),
            libc::SYS_fcntl => int(descriptors::fcntl(fd, b as _, c)),
            libc::SYS_ioctl => int(descriptors::ioctl(fd, b as _, c as _)),
            libc::SYS_epoll_create1 => int(descriptors::epoll_create1(fd)),
            libc::SYS_epoll_ctl => int(descriptors::epoll_ctl(fd, b as _, c as _, d as _)),
            libc::SYS_socket => int(sockets::socket(fd, b as _, c as _)),
            libc::SYS_bind => int(sockets::bind(fd, b as _, c as _)),
            libc::SYS_listen => int(sockets::listen(fd, b as _)),
            libc::SYS_connect => int(sockets::connect(fd, b as _, c as _)),
            libc::SYS_accept => int(sockets::accept(fd, b as _, c as _)),
            libc::SYS_accept4 => int(sockets::accept4(fd, b as _, c as _, d as _)),
            libc::SYS_shutdown => int(sockets::shutdown(fd, b as _)),
            libc::SYS_getsockname => int(sockets::getsockname(fd, b as _, c as _)),
            libc::SYS_getpeername => int(sockets::getpeername(fd, b as _, c as _)),
            libc::SYS_setsockopt => int(sockets::setsockopt(fd, b as _, c as _, d as _, e as _)),
            libc::SYS_getsockopt => int(sockets::getsockopt(fd, b as _, c as _, d as _, e as _)),
            libc::SYS_openat => return files::open(b as _, c as _).map(|opened| int(errno::int(opened))),
            libc::SYS_execve => int(programs::execve(a as _, b as _, c as _)),
            libc::SYS_execveat => int(programs::execveat(fd, b as _, c as _, d as _, e as _)),
            _ => return raw_polling::known(number, args).map(int).or_else(|| older(number, args)),
        })
    }
}

/// The fields of the kernel's `struct iocb` that name the operation.
#[repr(C)]
struct Iocb {
    _head: [u64; 2],
    operation: u16,
    _priority: u16,
    fd: c_int,
}

/// Polls work in the kernel.
const IOCB_CMD_POLL: u16 = 5;

/// The error for asynchronous reads and writes on eft's descriptors, which the kernel would apply to the Unix
/// socket. `None` if there are none.
unsafe fn refused(count: usize, list: *const *const Iocb) -> Option<isize> {
    let concerned = (0..count).any(|i| {
        // SAFETY: the program's call: a list of so many.
        let Iocb { operation, fd, .. } = unsafe { list.add(i).read().read() };
        if operation == IOCB_CMD_POLL {
            sleeping::watch(fd);
            return false;
        }
        table::socket(fd).is_some()
    });
    concerned.then(|| errno::long(Err(Errno(libc::EINVAL))))
}

/// Calls that only some architectures have.
#[cfg(target_arch = "x86_64")]
unsafe fn older(number: c_long, args: [usize; 6]) -> Option<isize> {
    // SAFETY: as above.
    match number {
        // SAFETY: as above.
        libc::SYS_open => {
            unsafe { files::open(args[0] as _, args[1] as c_int) }.map(|opened| errno::int(opened) as isize)
        }
        libc::SYS_epoll_create => Some(unsafe { descriptors::epoll_create(args[0] as c_int) } as isize),
        libc::SYS_dup2 => Some(unsafe { descriptors::dup2(args[0] as c_int, args[1] as c_int) } as isize),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn older(_number: c_long, _args: [usize; 6]) -> Option<isize> {
    None
}

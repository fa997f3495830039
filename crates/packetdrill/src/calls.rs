//! The system calls of scripts: each is libeft.so's, which packetdrill has preloaded.
//!
//! They are looked up by name among the program's symbols, where libeft.so stands before libc. If packetdrill alone loads this
//! object, a reference of its own would lead to libc's.

use crate::settle::settle;
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use libc::{epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, sockaddr, socklen_t, timeval, timezone};
use std::ffi::CString;
use std::sync::OnceLock;
use thiserror::Error;

type Data = *mut c_void;

/// Why packetdrill cannot run its scripts here.
#[derive(Debug, Error)]
pub enum Unusable {
    #[error("packetdrill does not run on a stack: use `eft packetdrill`")]
    NoStack,
    #[error("packetdrill has no {0}")]
    NoSymbol(&'static str),
    #[error("the wire `{flags}`: {why}")]
    Wire { flags: String, why: std::io::Error },
}

macro_rules! calls {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        /// The program's functions.
        pub struct Calls {
            $($name: unsafe extern "C" fn($($kind),*) -> $result,)*
        }

        fn look_up(program: *mut c_void) -> Result<Calls, Unusable> {
            Ok(Calls {
                $($name: {
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: a handle and a string; a symbol of this name has this type, by C's headers.
                    unsafe {
                        let symbol = libc::dlsym(program, name.as_ptr().cast());
                        if symbol.is_null() {
                            return Err(Unusable::NoSymbol(stringify!($name)));
                        }
                        core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> $result>(symbol)
                    }
                },)*
            })
        }

        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for the system call.
            pub unsafe extern "C" fn $name(_: Data, $($argument: $kind),*) -> $result {
                if !matches!(stringify!($name), "usleep" | "gettimeofday") {
                    settle();
                }
                // SAFETY: by the caller.
                unsafe { (kept().$name)($($argument),*) }
            }
        )*
    };
}

calls! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int;
    connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    read(fd: c_int, to: *mut c_void, len: usize) -> isize;
    readv(fd: c_int, list: *const iovec, count: c_int) -> isize;
    recv(fd: c_int, to: *mut c_void, len: usize, flags: c_int) -> isize;
    recvfrom(fd: c_int, to: *mut c_void, len: usize, flags: c_int, address: *mut sockaddr, address_len: *mut socklen_t) -> isize;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> isize;
    write(fd: c_int, from: *const c_void, len: usize) -> isize;
    writev(fd: c_int, list: *const iovec, count: c_int) -> isize;
    send(fd: c_int, from: *const c_void, len: usize, flags: c_int) -> isize;
    sendto(fd: c_int, from: *const c_void, len: usize, flags: c_int, address: *const sockaddr, address_len: socklen_t) -> isize;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> isize;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int;
    close(fd: c_int) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    usleep(microseconds: c_uint) -> c_int;
    gettimeofday(time: *mut timeval, zone: *mut timezone) -> c_int;
    epoll_create(size: c_int) -> c_int;
    epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    epoll_wait(set: c_int, events: *mut epoll_event, room: c_int, timeout: c_int) -> c_int;
    pipe(ends: *mut c_int) -> c_int;
    splice(from: c_int, from_offset: *mut loff_t, to: c_int, to_offset: *mut loff_t, len: usize, flags: c_uint) -> isize;
}

/// `splice` as a script has it: packetdrill hands over where it keeps the two words, and not the words, which are addresses.
///
/// # Safety
/// As for the system call; the offsets must point to a word each.
pub unsafe extern "C" fn splice_of_words(
    data: Data,
    from: c_int,
    from_offset: *mut loff_t,
    to: c_int,
    to_offset: *mut loff_t,
    len: usize,
    flags: c_uint,
) -> isize {
    // SAFETY: by the caller.
    unsafe {
        let [from_offset, to_offset] = [from_offset, to_offset].map(|word| *word as usize as *mut loff_t);
        splice(data, from, from_offset, to, to_offset, len, flags)
    }
}

static KEPT: OnceLock<Calls> = OnceLock::new();

fn kept() -> &'static Calls {
    KEPT.get().expect("the interface is filled in before it is used")
}

/// Keeps them for the functions of the interface.
pub fn keep(calls: Calls) {
    let _ = KEPT.set(calls);
}

/// Looks all up, as a program does whose libeft.so is preloaded.
pub fn find() -> Result<Calls, Unusable> {
    let shim = std::env::var("EFT_SHIM").ok().and_then(|path| CString::new(path).ok());
    // SAFETY: a string; nothing is loaded that is not there already.
    let loaded = shim.map(|path| unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) });
    if loaded.is_none_or(|handle| handle.is_null()) {
        return Err(Unusable::NoStack);
    }
    // SAFETY: no name: the program itself.
    look_up(unsafe { libc::dlopen(core::ptr::null(), libc::RTLD_NOW) })
}

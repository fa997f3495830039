//! libc's own functions, behind the interposed symbols.
//!
//! Each is looked up once with `dlsym(RTLD_NEXT)`: in the constructor, or at the first call if some
//! library's constructor runs before ours.

use crate::sys;
use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::{
    FILE, addrinfo, epoll_event, fd_set, ifaddrs, iovec, mmsghdr, msghdr, off64_t, pid_t,
    posix_spawn_file_actions_t, posix_spawnattr_t, pthread_attr_t, pthread_t, sigaction as Action, sigset_t,
    size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

/// A function of type `F` in the next library that has it.
pub struct Real<F> {
    name: &'static core::ffi::CStr,
    address: AtomicUsize,
    kind: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    const fn new(name: &'static core::ffi::CStr) -> Self {
        assert!(size_of::<F>() == size_of::<usize>());
        Real { name, address: AtomicUsize::new(0), kind: PhantomData }
    }

    #[cold]
    fn resolve(&self) -> usize {
        // SAFETY: the name is NUL-terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(found, Ordering::Relaxed);
        found
    }

    fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.resolve(),
            address => address,
        }
    }

    /// The function.
    #[inline]
    pub fn get(&self) -> F {
        let address = self.address();
        if address == 0 {
            sys::complain("this C library lacks a function that the program calls");
            std::process::abort();
        }
        // SAFETY: `F` is a function pointer type (checked in size) of the signature that libc
        // documents for this name; the address is not null.
        unsafe { core::mem::transmute_copy(&address) }
    }
}

macro_rules! reals {
    ($($name:ident: fn($($arg:ty),*) -> $ret:ty;)*) => {
        $(
            #[allow(non_upper_case_globals)]
            pub static $name: Real<unsafe extern "C" fn($($arg),*) -> $ret> = Real::new(
                match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("bad name"),
                },
            );
        )*

        /// Looks everything up, so that no later call has to (in a signal handler, say).
        pub fn resolve_all() {
            $($name.resolve();)*
        }
    };
}

reals! {
    read: fn(c_int, *mut c_void, size_t) -> ssize_t;
    write: fn(c_int, *const c_void, size_t) -> ssize_t;
    readv: fn(c_int, *const iovec, c_int) -> ssize_t;
    writev: fn(c_int, *const iovec, c_int) -> ssize_t;
    recv: fn(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    recvfrom: fn(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg: fn(c_int, *mut msghdr, c_int) -> ssize_t;
    recvmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int, *mut timespec) -> c_int;
    send: fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
    sendto: fn(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    sendmsg: fn(c_int, *const msghdr, c_int) -> ssize_t;
    sendmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int;
    sendfile64: fn(c_int, c_int, *mut off64_t, size_t) -> ssize_t;
    splice: fn(c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> ssize_t;
    preadv2: fn(c_int, *const iovec, c_int, off64_t, c_int) -> ssize_t;
    pwritev2: fn(c_int, *const iovec, c_int, off64_t, c_int) -> ssize_t;
    posix_spawn_file_actions_addclosefrom_np: fn(*mut posix_spawn_file_actions_t, c_int) -> c_int;
    socket: fn(c_int, c_int, c_int) -> c_int;
    bind: fn(c_int, *const sockaddr, socklen_t) -> c_int;
    listen: fn(c_int, c_int) -> c_int;
    connect: fn(c_int, *const sockaddr, socklen_t) -> c_int;
    accept4: fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
    shutdown: fn(c_int, c_int) -> c_int;
    getsockname: fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    getpeername: fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    setsockopt: fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    getsockopt: fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    ioctl: fn(c_int, c_ulong, *mut c_void) -> c_int;
    fcntl64: fn(c_int, c_int, usize) -> c_int;
    close: fn(c_int) -> c_int;
    dup: fn(c_int) -> c_int;
    dup2: fn(c_int, c_int) -> c_int;
    dup3: fn(c_int, c_int, c_int) -> c_int;
    close_range: fn(c_uint, c_uint, c_int) -> c_int;
    poll: fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int;
    epoll_create: fn(c_int) -> c_int;
    epoll_create1: fn(c_int) -> c_int;
    epoll_ctl: fn(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    execve: fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    execvpe: fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    fexecve: fn(c_int, *const *const c_char, *const *const c_char) -> c_int;
    execveat: fn(c_int, *const c_char, *const *const c_char, *const *const c_char, c_int) -> c_int;
    posix_spawn: fn(*mut pid_t, *const c_char, *const posix_spawn_file_actions_t,
        *const posix_spawnattr_t, *const *mut c_char, *const *mut c_char) -> c_int;
    posix_spawnp: fn(*mut pid_t, *const c_char, *const posix_spawn_file_actions_t,
        *const posix_spawnattr_t, *const *mut c_char, *const *mut c_char) -> c_int;
    system: fn(*const c_char) -> c_int;
    popen: fn(*const c_char, *const c_char) -> *mut FILE;
    open: fn(*const c_char, c_int, usize) -> c_int;
    open64: fn(*const c_char, c_int, usize) -> c_int;
    openat: fn(c_int, *const c_char, c_int, usize) -> c_int;
    openat64: fn(c_int, *const c_char, c_int, usize) -> c_int;
    fopen: fn(*const c_char, *const c_char) -> *mut FILE;
    fopen64: fn(*const c_char, *const c_char) -> *mut FILE;
    fdopen: fn(c_int, *const c_char) -> *mut FILE;
    fileno: fn(*mut FILE) -> c_int;
    freopen: fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
    freopen64: fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
    vdprintf: fn(c_int, *const c_char, *mut c_void) -> c_int;
    __vdprintf_chk: fn(c_int, c_int, *const c_char, *mut c_void) -> c_int;
    getpid: fn() -> pid_t;
    prctl: fn(c_int, usize, usize, usize, usize) -> c_int;
    pthread_create: fn(*mut pthread_t, *const pthread_attr_t, usize, *mut c_void) -> c_int;
    thrd_create: fn(*mut pthread_t, usize, *mut c_void) -> c_int;
    _Fork: fn() -> pid_t;
    vfork: fn() -> pid_t;
    sigaction: fn(c_int, *const Action, *mut Action) -> c_int;
    siginterrupt: fn(c_int, c_int) -> c_int;
    signal: fn(c_int, usize) -> usize;
    sysv_signal: fn(c_int, usize) -> usize;
    sigset: fn(c_int, usize) -> usize;
    sigignore: fn(c_int) -> c_int;
    sighold: fn(c_int) -> c_int;
    sigblock: fn(c_int) -> c_int;
    sigsetmask: fn(c_int) -> c_int;
    sigprocmask: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
    pthread_sigmask: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
    sigsuspend: fn(*const sigset_t) -> c_int;
    ppoll: fn(*mut libc::pollfd, libc::nfds_t, *const timespec, *const sigset_t) -> c_int;
    pselect: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t) -> c_int;
    select: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
    epoll_wait: fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    epoll_pwait: fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;
    epoll_pwait2: fn(c_int, *mut epoll_event, c_int, *const timespec, *const sigset_t) -> c_int;
    getaddrinfo: fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int;
    getnameinfo: fn(*const sockaddr, socklen_t, *mut c_char, socklen_t, *mut c_char, socklen_t, c_int) -> c_int;
    getifaddrs: fn(*mut *mut ifaddrs) -> c_int;
    if_nametoindex: fn(*const c_char) -> c_uint;
    if_indextoname: fn(c_uint, *mut c_char) -> *mut c_char;
}

//! The kernel's side: system calls that the filter hands over (seccomp user notification, seccomp_unotify(2)).

use crate::sys::{Errno, Result, int};
use libc::c_int;
use std::os::fd::{AsRawFd, OwnedFd};

/// A call that waits for an answer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Notification {
    pub id: u64,
    /// The calling thread.
    pub thread: u32,
    _flags: u32,
    pub number: c_int,
    _architecture: u32,
    _instruction: u64,
    pub args: [u64; 6],
}
const _: () = assert!(size_of::<Notification>() == 80);

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddDescriptor {
    id: u64,
    flags: u32,
    source: u32,
    number: u32,
    its_flags: u32,
}

const fn request(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | (b'!' as u64) << 8 | number
}
const RECEIVE: u64 = request(3, 0, size_of::<Notification>());
const SEND: u64 = request(3, 1, size_of::<Response>());
const IS_VALID: u64 = request(1, 2, size_of::<u64>());
const ADD_DESCRIPTOR: u64 = request(1, 3, size_of::<AddDescriptor>());
const SET_FLAGS: u64 = request(1, 4, size_of::<u64>());

const CONTINUE: u32 = 1;
/// The descriptor's number is the call's result.
const ADD_AND_SEND: u32 = 2;
/// Wakes the other side on the same CPU.
const SYNC_WAKE_UP: u64 = 1;

/// The descriptor from which the calls come.
pub struct Listener(OwnedFd);

impl Listener {
    /// Takes over a listener, and makes sure that the kernel can do all that is needed (Linux 5.14).
    pub fn new(fd: OwnedFd) -> Result<Listener> {
        let listener = Listener(fd);
        // SAFETY: takes a number. Older kernels do not know the request and return an error, which does no harm.
        unsafe { libc::ioctl(listener.number(), SET_FLAGS as _, SYNC_WAKE_UP) };
        match listener.add(0, listener.number(), false) {
            // No call has this number, but the kernel knows the request.
            Err(Errno(libc::ENOENT)) => Ok(listener),
            Err(errno) => Err(errno),
            Ok(_) => Err(Errno(libc::EINVAL)),
        }
    }

    pub fn number(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// The next call. It was announced, but its thread may have ended meanwhile.
    pub fn next(&self) -> Result<Notification> {
        // SAFETY: all zeroes is a notification, as the kernel demands; it is ours.
        unsafe {
            let mut notification: Notification = std::mem::zeroed();
            int(libc::ioctl(self.number(), RECEIVE as _, &raw mut notification))?;
            Ok(notification)
        }
    }

    /// Whether the thread still waits for this answer. While it does, its id is not reused.
    pub fn is_valid(&self, id: u64) -> bool {
        // SAFETY: reads a number of ours.
        unsafe { libc::ioctl(self.number(), IS_VALID as _, &raw const id) == 0 }
    }

    /// Gives the call its result.
    pub fn answer(&self, id: u64, result: Result<i64>) {
        self.respond(match result {
            Ok(value) => Response { id, value, error: 0, flags: 0 },
            Err(Errno(errno)) => Response { id, value: 0, error: -errno, flags: 0 },
        });
    }

    /// Lets the kernel make the call, as if it had not been handed over.
    pub fn go_on(&self, id: u64) {
        self.respond(Response { id, value: 0, error: 0, flags: CONTINUE });
    }

    fn respond(&self, response: Response) {
        // SAFETY: reads a structure of ours. If the thread does not wait any more, nothing is left to do.
        unsafe { libc::ioctl(self.number(), SEND as _, &raw const response) };
    }

    /// Gives the call a descriptor as its result; returns the descriptor's number in the program. `ENOENT`: the thread
    /// does not wait any more.
    pub fn answer_descriptor(&self, id: u64, descriptor: &OwnedFd, cloexec: bool) -> Result<c_int> {
        self.add(id, descriptor.as_raw_fd(), cloexec)
    }

    fn add(&self, id: u64, source: c_int, cloexec: bool) -> Result<c_int> {
        let its_flags = if cloexec { libc::O_CLOEXEC as u32 } else { 0 };
        let add = AddDescriptor { id, flags: ADD_AND_SEND, source: source as u32, number: 0, its_flags };
        loop {
            // SAFETY: reads a structure of ours.
            match int(unsafe { libc::ioctl(self.number(), ADD_DESCRIPTOR as _, &raw const add) }) {
                Err(Errno(libc::EINTR)) => {}
                done => return done,
            }
        }
    }
}

//! The program's memory and descriptors.
//!
//! Lengths from the program are bounded before anything is allocated. A thread's number may be reused after the
//! thread's end, so whatever was found by it counts only if the kernel confirms afterwards that the thread still waits.
//! Memory is written through a file that was opened before that confirmation.

use crate::notify::{Listener, Notification};
use crate::sys::{Address, Errno, Result, int, long, owned};
use libc::{c_int, c_void};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

const EFAULT: Errno = Errno(libc::EFAULT);
/// The thread does not wait for the answer any more.
pub const GONE: Errno = Errno(libc::ESRCH);
/// The most threads that are remembered.
const THREADS_MAX: usize = 1024;
const PIDFD_THREAD: c_int = libc::O_EXCL;

/// Handles of the threads that have called.
#[derive(Default)]
pub struct Threads(HashMap<u32, OwnedFd>);

fn handle_of(id: u32, flags: c_int) -> Result<OwnedFd> {
    // SAFETY: takes no addresses.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) } as c_int)
}

fn duplicate(handle: &OwnedFd, fd: c_int) -> Result<OwnedFd> {
    // SAFETY: takes no addresses.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), fd, 0) } as c_int)
}

/// A duplicate of another process's descriptor.
pub fn descriptor_of_process(process: u32, fd: c_int) -> Result<OwnedFd> {
    duplicate(&handle_of(process, 0)?, fd)
}

impl Threads {
    /// A duplicate of the thread's descriptor of this number.
    pub fn descriptor(&mut self, thread: u32, fd: c_int) -> Result<OwnedFd> {
        if let Some(handle) = self.0.get(&thread) {
            match duplicate(handle, fd) {
                Err(Errno(libc::ESRCH)) => drop(self.0.remove(&thread)),
                done => return done,
            }
        }
        match handle_of(thread, PIDFD_THREAD) {
            Ok(handle) => {
                let found = duplicate(&handle, fd);
                if self.0.len() >= THREADS_MAX {
                    self.0.clear();
                }
                self.0.insert(thread, handle);
                found
            }
            // Before Linux 6.9 there are only handles of processes. They are not kept, because the thread's number may
            // become that of another process's thread.
            Err(Errno(libc::EINVAL)) => descriptor_of_process(process_of(thread)?, fd),
            Err(errno) => Err(errno),
        }
    }
}

fn process_of(thread: u32) -> Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).map_err(|_| GONE)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:")).ok_or(GONE)?;
    line.trim().parse().map_err(|_| GONE)
}

/// One call, and the memory of the thread that makes it.
pub struct Call<'a> {
    pub listener: &'a Listener,
    pub notification: Notification,
}

impl Call<'_> {
    pub fn id(&self) -> u64 {
        self.notification.id
    }

    pub fn thread(&self) -> u32 {
        self.notification.thread
    }

    /// The n-th argument.
    pub fn address(&self, n: usize) -> u64 {
        self.notification.args[n]
    }

    /// The n-th argument, as the kernel reads it where it expects an `int`.
    pub fn int(&self, n: usize) -> c_int {
        self.notification.args[n] as c_int
    }

    /// Whether the thread still waits.
    pub fn check(&self) -> Result<()> {
        if self.listener.is_valid(self.id()) { Ok(()) } else { Err(GONE) }
    }

    pub fn read_into(&self, from: u64, into: &mut [u8]) -> Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let own = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let theirs = libc::iovec { iov_base: from as *mut c_void, iov_len: into.len() };
        // SAFETY: the kernel writes into our buffer, and checks the other address.
        let done =
            long(unsafe { libc::process_vm_readv(self.thread() as libc::pid_t, &own, 1, &theirs, 1, 0) });
        self.check()?;
        match done {
            Ok(n) if n == into.len() => Ok(()),
            Err(Errno(libc::EPERM)) => Err(Errno(libc::EPERM)),
            _ => Err(EFAULT),
        }
    }

    /// Reads bytes. The caller has bounded the length.
    pub fn read(&self, from: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.read_into(from, &mut bytes)?;
        Ok(bytes)
    }

    pub fn read_u32(&self, from: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.read_into(from, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub fn write(&self, to: u64, bytes: &[u8]) -> Result<()> {
        self.write_all(&[(to, bytes)])
    }

    /// Writes several pieces; empty ones may have any address.
    pub fn write_all(&self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let path = format!("/proc/{}/mem", self.thread());
        let memory = std::fs::OpenOptions::new().write(true).open(path).map_err(|_| GONE)?;
        self.check()?;
        for (to, bytes) in pieces.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            memory.write_all_at(bytes, *to).map_err(|_| EFAULT)?;
        }
        Ok(())
    }

    /// The address that a call passes.
    pub fn read_address(&self, at: u64, len: c_int) -> Result<Address> {
        if !(0..=crate::sys::ADDRESS_MAX as c_int).contains(&len) {
            return Err(Errno(libc::EINVAL));
        }
        Address::new(&self.read(at, len as usize)?)
    }

    /// Returns an address (or an option) like the kernel: as much as there is room for, and its whole length.
    pub fn tell(&self, bytes: &[u8], to: u64, length_at: u64) -> Result<()> {
        let room = self.room(length_at)?;
        let told = &bytes[..bytes.len().min(room)];
        self.write_all(&[(to, told), (length_at, &(bytes.len() as u32).to_ne_bytes())])
    }

    /// How much room the program provides.
    pub fn room(&self, length_at: u64) -> Result<usize> {
        match self.read_u32(length_at)? as c_int {
            negative if negative < 0 => Err(Errno(libc::EINVAL)),
            room => Ok(room as usize),
        }
    }
}

/// Checks that this process may access another one's memory (ptrace(2), "Ptrace access mode checking").
pub fn may_access(process: u32) -> Result<()> {
    let mut byte = 0u8;
    let own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let theirs = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 };
    // SAFETY: writes a byte of ours; the other address is invalid, but the kernel checks the permission first.
    match int(unsafe { libc::process_vm_readv(process as libc::pid_t, &own, 1, &theirs, 1, 0) } as c_int) {
        Err(Errno(libc::EPERM)) => Err(Errno(libc::EPERM)),
        _ => Ok(()),
    }
}

//! Requests to sockets, over this process's control connection.
//!
//! One request at a time per process, signals blocked meanwhile (a handler that made a request would wait
//! for itself). The connection is made on first use by a Hello on the domain connection, which every
//! process of the domain inherits; a forked child makes its own.
//!
//! While there is no stack, every request fails at once, as without a network. If a new stack has replaced
//! an earlier one, a process makes a new connection first.
//!
//! If sockets is reborn before it replied, or hangs up, the request is sent again: all requests are
//! idempotent. The far ends that travel with a request stay open here until the reply is in.

use crate::domain::domain;
use crate::holder;
use crate::spin::Quiet;
use crate::sys::{self, Errno, Result};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use eft_base::{ComponentId, Role};
use eft_channel::socket::{INSTANCES_MAX, LAYOUT_VERSION};
use eft_messages::control::{REPLY_LEN, Reply, Request, op};
use zerocopy::{FromBytes, IntoBytes};

/// How long to wait before checking whether sockets was reborn.
const PATIENCE_MS: u64 = 250;
/// Descriptors that a reply may carry: that to Hello has the arena, its bell, and the transports' status pages.
const REPLY_DESCRIPTORS: usize = 2 + 2 * INSTANCES_MAX;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex is made to be shared.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static DOMAIN_FD: AtomicI32 = AtomicI32::new(-1);
static CONNECTION: AtomicI32 = AtomicI32::new(-1);
static SEQUENCE: AtomicU64 = AtomicU64::new(1);

pub fn lock_for_fork() {
    // SAFETY: a valid mutex.
    unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
}

pub fn unlock_after_fork() {
    // SAFETY: locked by the thread that forked.
    unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
}

/// For a child that ran no fork handlers: the lock's holder, if any, is not in this process.
pub fn reset_lock() {
    // SAFETY: the child has one thread, this one.
    unsafe { *LOCK.0.get() = libc::PTHREAD_MUTEX_INITIALIZER };
}

/// The lock held, and all signals blocked, while it lives.
struct Held {
    _quiet: Quiet,
}

impl Held {
    fn enter() -> Held {
        let quiet = Quiet::enter();
        lock_for_fork();
        Held { _quiet: quiet }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Before the signals come through again, which is when the field is dropped.
        unlock_after_fork();
    }
}

/// A reply and the descriptors that came with it.
pub struct Answer {
    pub reply: Reply,
    pub descriptors: Vec<c_int>,
}

impl Answer {
    fn close(self) {
        self.descriptors.into_iter().for_each(sys::close);
    }
}

/// The domain connection's number, for the environment of a new program.
pub fn domain_fd() -> c_int {
    DOMAIN_FD.load(Ordering::Relaxed)
}

pub fn set_domain_fd(fd: c_int) {
    DOMAIN_FD.store(fd, Ordering::Relaxed);
}

pub fn connection_fd() -> c_int {
    CONNECTION.load(Ordering::Relaxed)
}

pub fn set_connection_fd(fd: c_int) {
    CONNECTION.store(fd, Ordering::Relaxed);
}

/// In a fresh child: the connection is the parent's; drop our copy.
pub fn forget_connection() {
    holder::set_connection(0);
    let fd = CONNECTION.swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        crate::table::forget(fd);
        sys::close(fd);
    }
}

/// Says hello: returns a fresh connection and the reply of sockets (with the domain's descriptors).
/// `attempts` bounds how often it waits; `None` for ever, as long as the stack lives.
pub fn hello(attempts: Option<u32>) -> Result<(c_int, Answer)> {
    let mut left = attempts;
    loop {
        stack_is_there()?;
        let [near, far] = sys::pair()?;
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let request = Request {
            version: LAYOUT_VERSION,
            op: op::HELLO,
            sequence,
            args: [1, 1, 0, 0],
            ..Request::default()
        };
        let sent = send(domain_fd(), &request, Some(far));
        sys::close(far);
        if sent.is_err() {
            sys::close(near);
            return Err(Errno(libc::ENETDOWN));
        }
        match wait(near, sequence, 4) {
            Ok(answer) => return Ok((near, answer)),
            Err(_) => sys::close(near),
        }
        if let Some(n) = left.as_mut() {
            *n -= 1;
            if *n == 0 {
                return Err(Errno(libc::ETIMEDOUT));
            }
        }
    }
}

/// Whose the status pages are that came with a reply to Hello.
pub fn status_pages(reply: &Reply, descriptors: &[c_int]) -> Vec<(ComponentId, c_int)> {
    let [tcp, udp] = match reply.instances {
        [0, 0] => [1, 1],
        instances => instances,
    };
    let of = |role, count| (0..count).map(move |instance| ComponentId::new(role, instance));
    of(Role::Tcp, tcp).chain(of(Role::Udp, udp)).zip(descriptors.iter().copied()).collect()
}

/// ENETDOWN if there is no stack.
fn stack_is_there() -> Result<()> {
    match domain() {
        Some(domain) if domain.is_away() => Err(Errno(libc::ENETDOWN)),
        _ => Ok(()),
    }
}

fn connection() -> Result<c_int> {
    let known = CONNECTION.load(Ordering::Relaxed);
    if known >= 0 {
        return Ok(known);
    }
    let (fd, answer) = hello(None)?;
    let errno = answer.reply.errno;
    if let (0, Some(domain), [_, _, status @ ..]) = (errno, domain(), &answer.descriptors[..]) {
        domain.renew(&status_pages(&answer.reply, status));
    }
    answer.close();
    if errno != 0 {
        sys::close(fd);
        return Err(Errno(errno));
    }
    adopt_connection(fd)
}

/// Makes `fd` the process's connection, under a high number.
pub fn adopt_connection(fd: c_int) -> Result<c_int> {
    let fd = sys::move_high(fd, true)?;
    crate::table::set(fd, crate::table::Entry::Hidden);
    CONNECTION.store(fd, Ordering::Relaxed);
    Ok(fd)
}

/// Asks sockets and waits for the reply. `descriptor` travels along; the caller keeps it.
pub fn request(request: Request, descriptor: Option<c_int>) -> Result<Reply> {
    let answer = ask(request, descriptor)?;
    let reply = answer.reply;
    answer.close();
    Ok(reply)
}

/// The name of this process's connection, under which it may hold connections. `None`: sockets is of a version without that.
pub fn holder() -> Option<u64> {
    holder::connection().or_else(|| {
        let reply = request(Request { op: op::HOLD, ..Request::default() }, None).ok()?;
        holder::set_connection(reply.value);
        holder::connection()
    })
}

/// Asks sockets for a descriptor; it is close-on-exec.
pub fn fetch(request: Request) -> Result<c_int> {
    let mut answer = ask(request, None)?;
    let fetched = answer.descriptors.pop().ok_or(Errno(libc::EPROTO));
    answer.close();
    fetched
}

fn ask(mut request: Request, descriptor: Option<c_int>) -> Result<Answer> {
    let _held = Held::enter();
    request.version = LAYOUT_VERSION;
    request.sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    loop {
        let fd = connection()?;
        let generation = domain().map_or(0, |f| f.sockets_generation());
        let reply = send(fd, &request, descriptor)
            .map_err(|_| Trouble::HungUp)
            .and_then(|()| wait_generation(fd, request.sequence, generation));
        match reply {
            Ok(answer) => {
                return match answer.reply.errno {
                    0 => Ok(answer),
                    errno => {
                        answer.close();
                        Err(Errno(errno))
                    }
                };
            }
            Err(Trouble::Reborn) => {}
            Err(Trouble::HungUp) => forget_connection(),
        }
    }
}

/// Tells sockets something that has no reply.
pub fn tell(mut request: Request, descriptor: Option<c_int>) -> Result<()> {
    let _held = Held::enter();
    request.version = LAYOUT_VERSION;
    request.sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    loop {
        if send(connection()?, &request, descriptor).is_ok() {
            return Ok(());
        }
        forget_connection();
    }
}

enum Trouble {
    /// sockets began a new life; ask again.
    Reborn,
    /// The connection is dead; make another.
    HungUp,
}

fn wait_generation(fd: c_int, sequence: u64, generation: u32) -> core::result::Result<Answer, Trouble> {
    loop {
        match wait(fd, sequence, 1) {
            Ok(answer) => return Ok(answer),
            Err(Errno(libc::ETIMEDOUT)) => {
                if stack_is_there().is_err() {
                    return Err(Trouble::HungUp);
                }
                if domain().is_some_and(|f| f.sockets_generation() != generation) {
                    return Err(Trouble::Reborn);
                }
            }
            Err(_) => return Err(Trouble::HungUp),
        }
    }
}

/// Waits for the reply to `sequence`, up to `rounds` times [`PATIENCE_MS`].
fn wait(fd: c_int, sequence: u64, rounds: u32) -> Result<Answer> {
    let mut round = 0;
    while round < rounds {
        match sys::poll(fd, libc::POLLIN, Some(PATIENCE_MS)) {
            Ok(0) => round += 1,
            Ok(_) => {
                let answer = receive(fd)?;
                if answer.reply.sequence == sequence {
                    return Ok(answer);
                }
                // A late reply to a request that was sent twice.
                answer.close();
            }
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno(libc::ETIMEDOUT))
}

#[repr(align(8))]
struct ControlBuffer([u8; 128]);

fn send(fd: c_int, request: &Request, descriptor: Option<c_int>) -> Result<()> {
    let bytes = request.as_bytes();
    let mut iov = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let mut control = ControlBuffer([0; 128]);
    // SAFETY: all zeroes is a msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &mut iov;
    message.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the buffer is larger than one control message with a descriptor.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor);
        }
    }
    // SAFETY: all pointers are to locals.
    unsafe {
        sys::call(
            libc::SYS_sendmsg,
            [fd as usize, &raw const message as usize, libc::MSG_NOSIGNAL as usize, 0, 0, 0],
        )
        .map(drop)
    }
}

/// Takes one reply; EPROTO if it is malformed.
fn receive(fd: c_int) -> Result<Answer> {
    let mut bytes = [0u8; REPLY_LEN];
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: REPLY_LEN };
    let mut control = ControlBuffer([0; 128]);
    // SAFETY: all zeroes is a msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &mut iov;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = 128;
    // SAFETY: all pointers are to locals.
    let n = unsafe {
        sys::call(
            libc::SYS_recvmsg,
            [
                fd as usize,
                &raw mut message as usize,
                (libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as usize,
                0,
                0,
                0,
            ],
        )?
    };
    let mut descriptors = Vec::new();
    // SAFETY: the kernel filled in the control buffer.
    unsafe { crate::passed::each(&message, |fd| descriptors.push(fd)) };
    match Reply::read_from_bytes(&bytes) {
        Ok(reply) if n == REPLY_LEN && descriptors.len() <= REPLY_DESCRIPTORS => {
            Ok(Answer { reply, descriptors })
        }
        _ => {
            descriptors.into_iter().for_each(sys::close);
            Err(Errno(libc::EPROTO))
        }
    }
}

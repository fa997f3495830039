//! Who is signalled when urgent data come to a stream (SIGURG; fcntl(2): F_SETOWN).
//!
//! A transport may signal nobody. So the program gives it, by way of sockets, a datagram socket that is connected to itself and
//! has the descriptor's owner, and SIGURG as its signal: whatever the transport sends there makes the kernel signal the owner,
//! with the rights of the program that named it.

use crate::socket::Socket;
use crate::sys::{self, Result};
use crate::{confined, control, descriptor, process, real, table};
use core::ffi::c_int;
use eft_messages::control::{Request, op};
use libc::{sockaddr_un, socklen_t};

/// `F_SETSIG` of fcntl(2).
const F_SETSIG: c_int = 10;
/// How long a program waits at most until its owner is known.
const GREETING_MS: u64 = 1000;

/// The owner of this descriptor was set, or is no more.
pub fn changed(fd: c_int) {
    if let Some(Ok(socket)) = table::socket(fd) {
        tell(fd, socket);
    }
}

/// Tells the stream's transport whom its descriptor names. Without memory or a stack nobody is signalled.
pub fn tell(fd: c_int, socket: &Socket) {
    if !socket.is_stream() || !process::owns_memory() || confined::is_confined() {
        return;
    }
    let Ok(bell) = bell_of(fd) else { return };
    let request = Request { op: op::OWNER, slot: socket.slot, ..Request::default() };
    if control::request(request, Some(bell)).is_ok() {
        await_greeting(bell);
    }
    let _ = sys::fcntl(bell, libc::F_SETFL, (libc::O_ASYNC | libc::O_NONBLOCK) as usize);
    sys::close(bell);
}

/// Waits until the transport has the owner, since urgent data that it hears of before signal nobody. It says so by a message, by
/// which nobody is signalled yet. A stack that is being mended says it late, or not at all.
fn await_greeting(bell: c_int) {
    if sys::poll(bell, libc::POLLIN, Some(GREETING_MS)).is_ok_and(|events| events & libc::POLLIN != 0) {
        let _ = sys::take_message(bell);
    }
}

/// A socket that is connected to itself, for whose input the owner of `fd` gets SIGURG.
fn bell_of(fd: c_int) -> Result<c_int> {
    let bell = sys::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)?;
    prepare(bell, fd).inspect_err(|_| sys::close(bell))?;
    Ok(bell)
}

fn prepare(bell: c_int, fd: c_int) -> Result<()> {
    // SAFETY: all zeroes is a sockaddr_un.
    let mut name: sockaddr_un = unsafe { core::mem::zeroed() };
    name.sun_family = libc::AF_UNIX as _;
    let mut len = size_of::<libc::sa_family_t>() as socklen_t;
    // SAFETY: the address is ours. One without a name gets a free one.
    crate::errno::of(unsafe { real::bind.get()(bell, (&raw const name).cast(), len) })?;
    len = size_of::<sockaddr_un>() as socklen_t;
    // SAFETY: the address is ours.
    crate::errno::of(unsafe { real::getsockname.get()(bell, (&raw mut name).cast(), &mut len) })?;
    // SAFETY: as above.
    unsafe { sys::connect(bell, (&raw const name).cast(), len)? };
    descriptor::copy_owner(fd, bell);
    sys::fcntl(bell, F_SETSIG, libc::SIGURG as usize).map(drop)
}

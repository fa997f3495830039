//! The calls that the kernel hands over, one by one.
//!
//! The kernel itself continues a call on anything except the program's sockets, and a call that the program's end of a
//! pair answers correctly. The descriptor may then be another one than the proxy has checked; that affects only its
//! program, which gets every socket of AF_INET and AF_INET6 from here.

mod accept;
mod connect;
mod groups;
mod message;
mod names;
mod open;
mod options;
mod receive;
mod send;

use crate::notify::Notification;
use crate::sys::{self, Result};
use crate::world::{Held, World};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The result of a call.
pub enum Outcome {
    Value(i64),
    /// The kernel makes the call.
    GoOn,
    /// It has been answered.
    Done,
    /// It waits for the socket with this index, at most for this time.
    Wait(usize, Option<Duration>),
}

pub type Answer = Result<Outcome>;

/// Makes a call, or finds that it must wait. `resumed`: it has waited.
pub fn attempt(world: &mut World, notification: &Notification, resumed: bool) -> Answer {
    let number = i64::from(notification.number);
    if number == libc::SYS_socket {
        return open::socket(world, notification);
    }
    let Some(held) = world.find(notification) else { return Ok(Outcome::GoOn) };
    match number {
        libc::SYS_bind => names::bind(world, notification, &held),
        libc::SYS_getsockname => names::own(world, notification, &held),
        libc::SYS_getpeername => names::peer(world, notification, &held),
        libc::SYS_listen => accept::listen(world, notification, &held),
        libc::SYS_accept | libc::SYS_accept4 => accept::accept(world, notification, &held),
        libc::SYS_connect => connect::connect(world, notification, &held, resumed),
        libc::SYS_shutdown => connect::shutdown(world, notification, &held),
        libc::SYS_setsockopt => options::set(world, notification, &held),
        libc::SYS_getsockopt => options::get(world, notification, &held),
        libc::SYS_recvfrom => receive::from(world, notification, &held),
        libc::SYS_recvmsg => receive::message(world, notification, &held),
        libc::SYS_recvmmsg => receive::messages(world, notification, &held),
        libc::SYS_sendto => send::to(world, notification, &held),
        libc::SYS_sendmsg => send::message(world, notification, &held),
        libc::SYS_sendmmsg => send::messages(world, notification, &held),
        _ => Ok(Outcome::GoOn),
    }
}

/// The result of a call; or, if it would block and the program's end is blocking, that it waits for as long as
/// SO_RCVTIMEO or SO_SNDTIMEO allows.
fn or_wait(result: Result<i64>, held: &Held, flags: libc::c_int, timeout: libc::c_int) -> Answer {
    match result {
        Err(sys::AGAIN) if flags & libc::MSG_DONTWAIT == 0 && sys::waits(&held.program) => {
            Ok(Outcome::Wait(held.index, limit(&held.program, timeout)))
        }
        result => result.map(Outcome::Value),
    }
}

fn limit(program: &OwnedFd, timeout: libc::c_int) -> Option<Duration> {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let told = sys::option(program, libc::SOL_SOCKET, timeout, none).ok()?;
    let limit = Duration::new(told.tv_sec as u64, told.tv_usec as u32 * 1000);
    (!limit.is_zero()).then_some(limit)
}

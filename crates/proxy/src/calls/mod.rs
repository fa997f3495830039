//! The calls that the kernel hands over, one by one.
//!
//! A call on anything but the program's sockets, and one that the program's end of a pair answers rightly, goes on in the
//! kernel. It may then meet another descriptor than the one that was looked at; that harms nobody but its program, whose
//! every socket of AF_INET and AF_INET6 comes from here.

mod accept;
mod connect;
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

/// What becomes of a call.
pub enum Outcome {
    Value(i64),
    /// The kernel makes it.
    GoOn,
    /// It was answered.
    Done,
    /// It waits for its socket, for so long at most.
    Wait(usize, Option<Duration>),
}

pub type Answer = Result<Outcome>;

/// Makes a call, or finds out that it must wait. `resumed`: it has waited.
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

/// The result of a call, or that it waits, if its program's end waits: as long as SO_RCVTIMEO or SO_SNDTIMEO says.
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

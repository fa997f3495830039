//! `bind`, `getsockname`, `getpeername`.

use super::{Answer, Outcome};
use crate::notify::Notification;
use crate::sys::{self, Address, Errno, Result};
use crate::world::{Held, World};
use libc::{c_int, sockaddr, socklen_t};
use std::os::fd::AsRawFd;

pub fn bind(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    let address = {
        let call = world.call(*notification);
        call.read_address(call.address(1), call.int(2))?
    };
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    // SAFETY: the address is ours and has this length.
    sys::int(unsafe { libc::bind(socket.far.as_raw_fd(), address.pointer(), address.len()) })?;
    Ok(Outcome::Value(0))
}

pub fn own(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    tell(world, notification, held, libc::getsockname)
}

pub fn peer(world: &mut World, notification: &Notification, held: &Held) -> Answer {
    tell(world, notification, held, libc::getpeername)
}

type Asked = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;

fn tell(world: &mut World, notification: &Notification, held: &Held, ask: Asked) -> Answer {
    let socket = world.sockets.get(held.index).ok_or(Errno(libc::EBADF))?;
    let far = socket.far.as_raw_fd();
    let told: Result<((), Address)> =
        // SAFETY: `told` provides room for an address, and its length.
        Address::told(|to, len| sys::int(unsafe { ask(far, to, len) }).map(drop));
    let call = world.call(*notification);
    call.tell(told?.1.bytes(), call.address(1), call.address(2))?;
    Ok(Outcome::Value(0))
}

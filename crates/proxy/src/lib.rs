//! The proxy: programs on the stack that cannot be preloaded.
//!
//! A statically linked program makes its system calls itself, so it cannot load the library. The kernel hands its calls
//! on sockets over to the proxy ([`notify`], [`filter`]). The proxy is an ordinary program on the stack, with the
//! library preloaded, in the same domain: it has no more rights than any program there, and the servers do not know
//! about it. For each socket of the program ([`socket`]) the proxy has an eft socket. The program gets one end of a
//! Unix socket pair, so the kernel itself serves read, write, poll, epoll, dup, fork and exec; the proxy passes the
//! bytes between the other end and the eft socket ([`pump`]). So a connection's data go by plain reads and writes, and
//! only the other calls ([`calls`]) come here.
//!
//! Guarantees: no socket of AF_INET or AF_INET6 of the program is the kernel's, unless the library would give it to the
//! kernel. The program is not trusted: memory and counts are bounded, and what was read from it counts only if its
//! thread still waits ([`target`]). If the proxy dies, the program's sockets end, and its further calls fail with
//! ENOSYS.
//!
//! Invariant: the proxy never waits for a single socket. It buffers nothing beyond the socket pair except one buffer
//! for each direction.

mod calls;
mod filter;
mod label;
mod notify;
mod pump;
mod socket;
mod sockets;
pub mod start;
mod sys;
mod target;
mod world;

use calls::Outcome;
use notify::Notification;
use sockets::Event;
use world::World;

/// Serves a program and its descendants until all have ended and everything that they sent has been passed on.
fn serve(world: &mut World) {
    let mut ended = false;
    while !(ended && world.sockets.is_empty()) {
        for event in world.sockets.wait(world.patience()) {
            match event {
                Event::Call(true) => {
                    ended = true;
                    world.sockets.forget_listener(world.listener.number());
                }
                Event::Call(false) => {
                    if let Ok(notification) = world.listener.next() {
                        answer(world, notification, false);
                    }
                }
                Event::Socket { index, hung_up } => happened(world, index, hung_up),
            }
        }
        for index in std::mem::take(&mut world.again) {
            happened(world, index, false);
        }
        for notification in world.expired() {
            let errno = match i64::from(notification.number) {
                libc::SYS_connect => libc::EINPROGRESS,
                _ => libc::EAGAIN,
            };
            world.listener.answer(notification.id, Err(sys::Errno(errno)));
        }
    }
}

fn answer(world: &mut World, notification: Notification, resumed: bool) {
    match calls::attempt(world, &notification, resumed) {
        Ok(Outcome::Value(value)) => world.listener.answer(notification.id, Ok(value)),
        Ok(Outcome::GoOn) => world.listener.go_on(notification.id),
        Ok(Outcome::Done) => {}
        Ok(Outcome::Wait(index, limit)) => world.wait(index, notification, limit),
        Err(errno) => world.listener.answer(notification.id, Err(errno)),
    }
}

/// Something happened at a socket: passes on what is possible, and repeats the calls that wait.
fn happened(world: &mut World, index: usize, hung_up: bool) {
    if !world.serve(index, hung_up) {
        return;
    }
    let Some(socket) = world.sockets.get(index) else { return };
    if socket.state == socket::State::Listening && socket.has_connection() {
        socket.post_token();
    }
    for waiting in std::mem::take(&mut socket.waiting) {
        // A signal may have interrupted the call.
        if !world.listener.is_valid(waiting.notification.id) {
            continue;
        }
        let left = waiting.until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        match calls::attempt(world, &waiting.notification, true) {
            // It waits for the rest of its time.
            Ok(Outcome::Wait(index, _)) => world.wait(index, waiting.notification, left),
            Ok(Outcome::Value(value)) => world.listener.answer(waiting.notification.id, Ok(value)),
            Ok(Outcome::GoOn) => world.listener.go_on(waiting.notification.id),
            Ok(Outcome::Done) => {}
            Err(errno) => world.listener.answer(waiting.notification.id, Err(errno)),
        }
    }
}

//! Programs that cannot be preloaded, on the stack: the proxy.
//!
//! A statically linked program makes its system calls itself, so there is nothing to preload the library into. The kernel
//! hands its calls on sockets over to the proxy ([`notify`], [`filter`]), which is an ordinary program on the stack, with
//! the library preloaded, in the same domain: it has no more rights than any program there, and the servers know nothing
//! of it. For each socket of the program ([`socket`]) the proxy has a socket of eft's. The program gets one end of a Unix
//! socket pair, whose readiness the kernel gives to read, write, poll, epoll, dup, fork and exec; between the other end and
//! eft's socket the proxy passes the bytes on ([`pump`]). So data of a connection go by plain reads and writes, and only
//! the other calls ([`calls`]) come here.
//!
//! Guarantees: no socket of AF_INET or AF_INET6 of the program is the kernel's, unless the library would give it to the
//! kernel. What the program says is not trusted: memory and counts are bounded, and what was read counts only if its thread
//! still waits ([`target`]). If the proxy dies, the program's sockets end, and its further calls fail with ENOSYS.
//!
//! Invariant: the proxy never waits for one socket. Nothing is buffered beyond the socket pair but one buffer for each
//! direction.

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

/// Serves a program and its descendants until all have ended and all that they sent is passed on.
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

/// Something has happened at a socket: passes on what can be, and lets the calls that wait try again.
fn happened(world: &mut World, index: usize, hung_up: bool) {
    if !world.serve(index, hung_up) {
        return;
    }
    let Some(socket) = world.sockets.get(index) else { return };
    if socket.state == socket::State::Listening && socket.has_connection() {
        socket.post_token();
    }
    for waiting in std::mem::take(&mut socket.waiting) {
        // A signal may have interrupted it.
        if !world.listener.is_valid(waiting.notification.id) {
            continue;
        }
        let left = waiting.until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        match calls::attempt(world, &waiting.notification, true) {
            // As long as is left.
            Ok(Outcome::Wait(index, _)) => world.wait(index, waiting.notification, left),
            Ok(Outcome::Value(value)) => world.listener.answer(waiting.notification.id, Ok(value)),
            Ok(Outcome::GoOn) => world.listener.go_on(waiting.notification.id),
            Ok(Outcome::Done) => {}
            Err(errno) => world.listener.answer(waiting.notification.id, Err(errno)),
        }
    }
}

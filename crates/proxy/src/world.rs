//! What calls work on: the sockets, the threads that call, and the calls that wait.

use crate::notify::{Listener, Notification};
use crate::pump::{self, Next};
use crate::socket::{Socket, State, Waiting};
use crate::sockets::Sockets;
use crate::sys::{self, Result};
use crate::target::{Call, Threads};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// With more deadlines than this, it pays to drop those that do not matter any more.
const DEADLINES_MANY: usize = 64;

pub struct World {
    pub listener: Listener,
    pub sockets: Sockets,
    threads: Threads,
    /// Room for one datagram, or for what is passed on at once.
    pub buffer: Box<[u8]>,
    /// Sockets that have more to do.
    pub again: Vec<usize>,
    /// Deadlines of waiting calls: time, socket, call.
    deadlines: Vec<(Instant, usize, u64)>,
}

/// A socket of the program, as a call names it.
pub struct Held {
    pub index: usize,
    /// The program's own end.
    pub program: OwnedFd,
}

impl World {
    pub fn new(listener: Listener) -> Result<World> {
        let sockets = Sockets::new()?;
        sockets.watch_listener(listener.number())?;
        Ok(World {
            listener,
            sockets,
            threads: Threads::default(),
            buffer: vec![0; pump::BUFFER].into(),
            again: Vec::new(),
            deadlines: Vec::new(),
        })
    }

    pub fn call(&self, notification: Notification) -> Call<'_> {
        Call { listener: &self.listener, notification }
    }

    /// The socket that the first argument of a call names; `None` if it is not one of the program's.
    pub fn find(&mut self, notification: &Notification) -> Option<Held> {
        let (thread, fd) = (notification.thread, notification.args[0] as libc::c_int);
        let program = self.threads.descriptor(thread, fd).ok()?;
        let index = self.sockets.find(&program)?;
        self.sockets.get(index)?.seen = (thread, fd);
        Some(Held { index, program })
    }

    /// Does everything that is possible for a socket. Returns whether it still exists.
    pub fn serve(&mut self, index: usize, hung_up: bool) -> bool {
        let Some(socket) = self.sockets.get(index) else { return false };
        socket.hung_up |= hung_up;
        socket.check_attempt();
        match pump::pump(socket, &mut self.buffer) {
            Next::Rest => {
                self.sockets.watch_room(index);
                return true;
            }
            Next::Again => {
                self.again.push(index);
                return true;
            }
            Next::Close => {}
            Next::Reset => self.show_reset(index),
        }
        if let Some(socket) = self.sockets.remove(index) {
            close(&socket);
            for waiting in &socket.waiting {
                self.listener.answer(waiting.notification.id, Err(sys::Errno(libc::ECONNRESET)));
            }
        }
        false
    }

    fn show_reset(&mut self, index: usize) {
        let Some(socket) = self.sockets.get(index) else { return };
        let (thread, fd) = socket.seen;
        let program = self.threads.descriptor(thread, fd).ok();
        let program = program.filter(|program| self.sockets.find(program) == Some(index));
        if let Some(socket) = self.sockets.get(index) {
            // If this fails, the program sees the end of the stream instead.
            let _ = pump::reset(socket, program.as_ref());
        }
    }

    /// Makes a call wait until something happens at its socket. A thread waits in one call only.
    pub fn wait(&mut self, index: usize, notification: Notification, limit: Option<Duration>) {
        let until = limit.map(|limit| Instant::now() + limit);
        let Some(socket) = self.sockets.get(index) else { return };
        socket.waiting.retain(|other| other.notification.thread != notification.thread);
        socket.waiting.push(Waiting { notification, until });
        if let Some(until) = until {
            if self.deadlines.len() >= DEADLINES_MANY {
                self.forget_deadlines();
            }
            self.deadlines.push((until, index, notification.id));
        }
    }

    /// Drops the deadlines of calls that do not wait any more.
    fn forget_deadlines(&mut self) {
        let sockets = &mut self.sockets;
        self.deadlines.retain(|&(_, index, id)| {
            sockets.get(index).is_some_and(|socket| socket.waiting.iter().any(|w| w.notification.id == id))
        });
    }

    /// The milliseconds until the next deadline; -1: there is none.
    pub fn patience(&self) -> libc::c_int {
        if !self.again.is_empty() {
            return 0;
        }
        let now = Instant::now();
        let left = |until: &Instant| until.saturating_duration_since(now).as_micros().div_ceil(1000);
        self.deadlines.iter().map(|(until, ..)| left(until) as libc::c_int).min().unwrap_or(-1)
    }

    /// Takes the calls that have waited long enough.
    pub fn expired(&mut self) -> Vec<Notification> {
        let now = Instant::now();
        let mut expired = Vec::new();
        let sockets = &mut self.sockets;
        self.deadlines.retain(|&(until, index, id)| {
            if until > now {
                return true;
            }
            let waiting = sockets.get(index).map(|socket| &mut socket.waiting);
            if let Some(waiting) = waiting
                && let Some(at) = waiting.iter().position(|w| w.notification.id == id)
            {
                expired.push(waiting.swap_remove(at).notification);
            }
            false
        });
        expired
    }
}

/// Closes eft's socket. That must not wait: a lingering close does, and the program does not wait for it.
fn close(socket: &Socket) {
    if socket.state == State::Datagrams {
        return;
    }
    let none = libc::linger { l_onoff: 0, l_linger: 0 };
    if let Ok(linger) = sys::option(&socket.far, libc::SOL_SOCKET, libc::SO_LINGER, none)
        && linger.l_onoff != 0
        && linger.l_linger != 0
    {
        let _ = sys::set_option(&socket.far, libc::SOL_SOCKET, libc::SO_LINGER, &none);
    }
}

//! One socket of the program's: the program has one end of a Unix socket pair, we have the other and eft's socket.

use crate::label::Labels;
use crate::sys::{self, Errno, Result};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// What a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A stream that was not used yet.
    Fresh,
    Connecting,
    /// `told`: the program knows.
    Connected {
        told: bool,
    },
    Listening,
    /// It was not connected; nothing can be done with it any more.
    Failed,
    Datagrams,
}

/// What did not find room, and is passed on first.
#[derive(Default)]
pub struct Rest {
    pub bytes: Vec<u8>,
    /// Of a datagram, what its label says.
    pub label: Vec<u8>,
    /// A datagram may be empty.
    pub present: bool,
}

impl Rest {
    pub fn keep(&mut self, bytes: &[u8], label: &[u8]) {
        *self = Rest { bytes: bytes.to_vec(), label: label.to_vec(), present: true };
    }

    /// The first bytes have been passed on.
    pub fn passed(&mut self, n: usize) {
        self.bytes.drain(..n);
        if self.bytes.is_empty() {
            *self = Rest::default();
        }
    }
}

/// A call that waits for something to happen at its socket.
pub struct Waiting {
    pub notification: crate::notify::Notification,
    pub until: Option<Instant>,
}

pub struct Socket {
    /// The other end of what the program has.
    pub near: OwnedFd,
    /// eft's socket.
    pub far: OwnedFd,
    /// By which the program's end is recognised, whoever calls, and by whatever number.
    pub inode: u64,
    pub state: State,
    /// From the program to eft.
    pub up: Rest,
    /// From eft to the program.
    pub down: Rest,
    /// The program sends nothing more; it has heard that nothing more comes.
    pub up_over: bool,
    pub down_over: bool,
    /// The program's end is closed, or shut down in both directions.
    pub hung_up: bool,
    /// Nobody reads what comes.
    pub unread: bool,
    /// Bytes that keep the program's end from being writable.
    pub plug: usize,
    /// Messages that say that a connection waits.
    pub tokens: usize,
    /// Connections that were taken for a call that ended meanwhile.
    pub taken: VecDeque<(OwnedFd, sys::Address)>,
    pub error: Option<Errno>,
    /// Calls that wait for something to happen here.
    pub waiting: Vec<Waiting>,
    /// Where the program's end was last seen.
    pub seen: (u32, libc::c_int),
    pub labels: Labels,
}

/// Enough to take the room of any send buffer below half of it.
const PLUG: [u8; 16384] = [0; 16384];
const PLUGS_MAX: usize = 4096;

/// More wake-ups for edge-triggered waiters are not needed.
const TOKENS_MAX: usize = 4;

impl Socket {
    pub fn new(near: OwnedFd, far: OwnedFd, inode: u64, state: State) -> Socket {
        Socket {
            near,
            far,
            inode,
            state,
            up: Rest::default(),
            down: Rest::default(),
            up_over: false,
            down_over: false,
            hung_up: false,
            unread: false,
            plug: 0,
            tokens: 0,
            taken: VecDeque::new(),
            error: None,
            waiting: Vec::new(),
            seen: (0, -1),
            labels: Labels::default(),
        }
    }

    /// Keeps the program's end from being writable until the attempt to connect has ended.
    pub fn plug(&mut self, program: &OwnedFd) {
        for _ in 0..PLUGS_MAX {
            if sys::ready(program, libc::POLLOUT) & libc::POLLOUT == 0 {
                return;
            }
            match sys::send(program, &PLUG) {
                Ok(n) => self.plug += n,
                Err(_) => return,
            }
        }
    }

    fn unplug(&mut self) {
        let mut bytes = [0; PLUG.len()];
        while self.plug > 0 {
            let want = self.plug.min(bytes.len());
            match sys::receive(&self.near, &mut bytes[..want]) {
                Ok(0) | Err(_) => self.plug = 0,
                Ok(n) => self.plug -= n,
            }
        }
    }

    /// Whether the attempt to connect has ended; then the state says how.
    pub fn look_at_attempt(&mut self) {
        if self.state != State::Connecting
            || sys::ready(&self.far, libc::POLLOUT) & (libc::POLLOUT | libc::POLLHUP | libc::POLLERR) == 0
        {
            return;
        }
        match sys::take_error(&self.far) {
            Ok(()) => self.state = State::Connected { told: false },
            Err(errno) => {
                self.error = Some(errno);
                self.state = State::Failed;
                let _ = sys::shutdown(&self.near, libc::SHUT_WR);
            }
        }
        self.unplug();
    }

    /// Makes the program's end readable: a connection may wait.
    pub fn post_token(&mut self) {
        if self.tokens < TOKENS_MAX && sys::send(&self.near, &[1]).is_ok() {
            self.tokens += 1;
        }
    }

    /// Makes the program's end unreadable: no connection waits. One that arrives meanwhile is seen afterwards.
    pub fn retire_tokens(&mut self, program: &OwnedFd) {
        if self.tokens == 0 {
            return;
        }
        let _ = sys::receive(program, &mut [0; TOKENS_MAX]);
        self.tokens = 0;
        if self.has_connection() {
            self.post_token();
        }
    }

    pub fn has_connection(&self) -> bool {
        !self.taken.is_empty() || sys::ready(&self.far, libc::POLLIN) != 0
    }

    /// Takes a connection that waits.
    pub fn accept(&mut self) -> Result<(OwnedFd, sys::Address)> {
        use std::os::fd::AsRawFd;
        if let Some(taken) = self.taken.pop_front() {
            return Ok(taken);
        }
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `told` gives room for an address, and its length.
        sys::Address::told(|to, len| {
            sys::owned(unsafe { libc::accept4(self.far.as_raw_fd(), to, len, flags) })
        })
    }
}

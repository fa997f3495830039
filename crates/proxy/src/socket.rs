//! One socket of the program: the program has one end of a Unix socket pair, the proxy has the other and eft's socket.

use crate::label::Labels;
use crate::sys::{self, Errno, Result};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The state of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A stream that has not been used yet.
    Fresh,
    Connecting,
    /// `told`: the program knows it.
    Connected {
        told: bool,
    },
    Listening,
    /// The attempt to connect failed; the socket is of no further use.
    Failed,
    Datagrams,
}

/// Data that found no room and are passed on first.
#[derive(Default)]
pub struct Rest {
    pub bytes: Vec<u8>,
    /// The label of a datagram.
    pub label: Vec<u8>,
    /// Whether there is a rest: a datagram may be empty.
    pub present: bool,
    /// It is an urgent byte.
    pub urgent: bool,
}

impl Rest {
    pub fn keep(&mut self, bytes: &[u8], label: &[u8]) {
        *self = Rest { bytes: bytes.to_vec(), label: label.to_vec(), present: true, urgent: false };
    }

    /// The first `n` bytes have been passed on.
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
    /// The other end of the program's descriptor.
    pub near: OwnedFd,
    /// eft's socket.
    pub far: OwnedFd,
    /// Identifies the program's end, whichever process calls and whatever the descriptor's number is.
    pub inode: u64,
    pub state: State,
    /// From the program to eft.
    pub up: Rest,
    /// From eft to the program.
    pub down: Rest,
    /// Room for `down` is waited for.
    pub watches_room: bool,
    /// The program sends nothing more, and eft's socket was told.
    pub up_over: bool,
    pub down_over: bool,
    /// The program's end is closed, or shut down in both directions.
    pub hung_up: bool,
    /// The program does not read any more.
    pub unread: bool,
    /// Bytes that keep the program's end from being writable.
    pub plug: usize,
    /// Messages in the program's end that show that a connection waits.
    pub tokens: usize,
    /// Connections that were accepted for a call that ended meanwhile.
    pub taken: VecDeque<(OwnedFd, sys::Address)>,
    pub error: Option<Errno>,
    /// Calls that wait for an event at this socket.
    pub waiting: Vec<Waiting>,
    /// The thread and descriptor number by which the program's end was last used.
    pub seen: (u32, libc::c_int),
    pub labels: Labels,
    /// The program has sent urgent data.
    pub sends_urgent: bool,
}

/// Enough to take more than half of the room of any send buffer.
const PLUG: [u8; 16384] = [0; 16384];
const PLUGS_MAX: usize = 4096;

/// Edge-triggered waiters need no more wake-ups than this.
const TOKENS_MAX: usize = 4;

impl Socket {
    pub fn new(near: OwnedFd, far: OwnedFd, inode: u64, state: State) -> Socket {
        if state != State::Datagrams {
            // The program's end says for itself how it reads urgent data; here they are recognised at their place.
            let _ = sys::set_option(&far, libc::SOL_SOCKET, libc::SO_OOBINLINE, &1);
        }
        Socket {
            near,
            far,
            inode,
            state,
            up: Rest::default(),
            down: Rest::default(),
            watches_room: false,
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
            sends_urgent: false,
        }
    }

    /// The program is about to send urgent data into its end of the pair.
    pub fn expect_urgent(&mut self) {
        if !self.sends_urgent {
            self.sends_urgent = true;
            let _ = sys::set_option(&self.near, libc::SOL_SOCKET, libc::SO_OOBINLINE, &1);
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

    /// Checks whether the attempt to connect has ended; if so, the state holds the result.
    pub fn check_attempt(&mut self) {
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

    /// Makes the program's end unreadable: no connection waits. One that arrives meanwhile is noticed afterwards.
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

    /// Takes a waiting connection.
    pub fn accept(&mut self) -> Result<(OwnedFd, sys::Address)> {
        use std::os::fd::AsRawFd;
        if let Some(taken) = self.taken.pop_front() {
            return Ok(taken);
        }
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `told` provides room for an address, and its length.
        sys::Address::told(|to, len| {
            sys::owned(unsafe { libc::accept4(self.far.as_raw_fd(), to, len, flags) })
        })
    }
}

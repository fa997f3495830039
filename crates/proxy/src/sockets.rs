//! All sockets of the program, and the epoll set in which the proxy waits for them.

use crate::socket::Socket;
use crate::sys::{self, Result, int};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// A place that is reused gets another generation.
#[derive(Default)]
struct Place {
    generation: u32,
    socket: Option<Socket>,
}

pub struct Sockets {
    set: OwnedFd,
    places: Vec<Place>,
    free: Vec<usize>,
    by_inode: HashMap<u64, usize>,
}

/// An event from the epoll set.
#[derive(Clone, Copy)]
pub enum Event {
    /// The kernel hands a call over; `true`: it never will again.
    Call(bool),
    /// Something happened at a socket. `hung_up`: the program's end has hung up.
    Socket { index: usize, hung_up: bool },
}

const LISTENER: u64 = u64::MAX;
const NEAR: u64 = 0;
const FAR: u64 = 1;
const AT_ONCE: usize = 256;
const ARRIVALS: libc::c_int = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;

impl Sockets {
    pub fn new() -> Result<Sockets> {
        // SAFETY: takes no addresses.
        let set = sys::owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Sockets { set, places: Vec::new(), free: Vec::new(), by_inode: HashMap::new() })
    }

    fn watch(&self, number: libc::c_int, events: libc::c_int, token: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, number, events, token)
    }

    fn control(&self, how: libc::c_int, number: libc::c_int, events: libc::c_int, token: u64) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: an event of ours.
        int(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), how, number, &mut event) }).map(drop)
    }

    pub fn watch_listener(&self, number: libc::c_int) -> Result<()> {
        self.watch(number, libc::EPOLLIN, LISTENER)
    }

    pub fn forget_listener(&self, number: libc::c_int) {
        // SAFETY: takes no event.
        unsafe {
            libc::epoll_ctl(self.set.as_raw_fd(), libc::EPOLL_CTL_DEL, number, std::ptr::null_mut());
        }
    }

    /// Keeps a socket, and watches both of its sides.
    pub fn insert(&mut self, socket: Socket) -> Result<usize> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.places.push(Place::default());
                self.places.len() - 1
            }
        };
        let token = self.token(index);
        let watched = self
            .watch(socket.near.as_raw_fd(), ARRIVALS, token | NEAR)
            .and_then(|()| self.watch(socket.far.as_raw_fd(), ARRIVALS | libc::EPOLLOUT, token | FAR));
        if let Err(errno) = watched {
            self.free.push(index);
            return Err(errno);
        }
        self.by_inode.insert(socket.inode, index);
        self.places[index].socket = Some(socket);
        Ok(index)
    }

    fn token(&self, index: usize) -> u64 {
        (self.places[index].generation as u64) << 32 | (index as u64) << 1
    }

    /// Watches for room in the program's end only while something waits for it: else each read of the program would wake us.
    pub fn watch_room(&mut self, index: usize) {
        let token = self.places.get(index).map(|_| self.token(index) | NEAR);
        let (Some(token), Some(socket)) = (token, self.get(index)) else { return };
        if socket.watches_room == socket.down.present {
            return;
        }
        socket.watches_room = socket.down.present;
        let events = if socket.down.present { ARRIVALS | libc::EPOLLOUT } else { ARRIVALS };
        let number = socket.near.as_raw_fd();
        let _ = self.control(libc::EPOLL_CTL_MOD, number, events, token);
    }

    pub fn remove(&mut self, index: usize) -> Option<Socket> {
        let place = self.places.get_mut(index)?;
        let socket = place.socket.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        self.by_inode.remove(&socket.inode);
        Some(socket)
    }

    pub fn get(&mut self, index: usize) -> Option<&mut Socket> {
        self.places.get_mut(index)?.socket.as_mut()
    }

    /// The socket to which this end of the program's belongs.
    pub fn find(&self, program: &OwnedFd) -> Option<usize> {
        self.by_inode.get(&sys::socket_inode(program)?).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.by_inode.is_empty()
    }

    /// Waits (forever with -1) and returns what happened.
    pub fn wait(&self, milliseconds: libc::c_int) -> Vec<Event> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let (place, room) = (events.as_mut_ptr(), events.len() as libc::c_int);
        // SAFETY: room for this many events.
        let n = int(unsafe { libc::epoll_wait(self.set.as_raw_fd(), place, room, milliseconds) });
        events[..n.unwrap_or(0) as usize].iter().filter_map(|event| self.event(event)).collect()
    }

    fn event(&self, event: &libc::epoll_event) -> Option<Event> {
        let (token, hung_up) = (event.u64, event.events & libc::EPOLLHUP as u32 != 0);
        if token == LISTENER {
            return Some(Event::Call(hung_up && event.events & libc::EPOLLIN as u32 == 0));
        }
        let index = (token as u32 >> 1) as usize;
        let place = self.places.get(index)?;
        let is_same = place.socket.is_some() && place.generation == (token >> 32) as u32;
        is_same.then_some(Event::Socket { index, hung_up: hung_up && token & 1 == NEAR })
    }
}

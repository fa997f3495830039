//! The fake's sockets: one thread that serves control connections and watches far ends.

use super::network::Network;
use super::sys::{self, Watched};
use eft_channel::socket::LAYOUT_VERSION;
use eft_messages::control::{REQUEST_LEN, Reply, Request, op};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zerocopy::{FromBytes, IntoBytes};

pub struct Control {
    network: Arc<Mutex<Network>>,
    epoll: OwnedFd,
    /// Domain and control connections, with the domain they belong to.
    connections: Mutex<HashMap<RawFd, (usize, OwnedFd)>>,
    /// Drop the next request that needs a reply, as a crash of sockets would.
    pub drop_next: AtomicBool,
}

/// What an epoll event is about: a connection, a far end, or a hidden kernel socket.
const CONNECTION: u64 = 0;
const FAR_END: u64 = 1;
const HIDDEN: u64 = 2;

impl Control {
    pub fn new(network: Arc<Mutex<Network>>) -> Control {
        // SAFETY: a fresh descriptor.
        let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
        Control { network, epoll, connections: Mutex::new(HashMap::new()), drop_next: AtomicBool::new(false) }
    }

    fn watch(&self, fd: RawFd, events: i32, data: u64) {
        let mut event = libc::epoll_event { events: events as u32, u64: data };
        // SAFETY: the event is ours.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
    }

    pub fn add_domain(&self, domain: usize, far: OwnedFd) {
        let fd = far.as_raw_fd();
        self.connections.lock().unwrap().insert(fd, (domain, far));
        self.watch(fd, libc::EPOLLIN, CONNECTION | (fd as u64) << 8);
    }

    pub fn run(&self, stop: &AtomicBool) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        while !stop.load(Ordering::SeqCst) {
            // SAFETY: the array is ours.
            let n = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 64, 50) };
            for event in events.iter().take(n.max(0) as usize) {
                let (kind, value) = (event.u64 & 0xff, event.u64 >> 8);
                let (domain, slot) = ((value >> 32) as usize, value as u32);
                match kind {
                    CONNECTION => self.serve(value as RawFd),
                    FAR_END => self.network.lock().unwrap().far_end(domain, slot),
                    _ => self.network.lock().unwrap().kernel_ready(domain, slot),
                }
            }
        }
    }

    fn serve(&self, fd: RawFd) {
        let Some(domain) = self.connections.lock().unwrap().get(&fd).map(|c| c.0) else {
            return;
        };
        let mut bytes = [0; REQUEST_LEN];
        let Some((n, mut descriptors)) = sys::receive(fd, &mut bytes) else {
            return;
        };
        if n == 0 {
            self.connections.lock().unwrap().remove(&fd);
            self.network.lock().unwrap().release_held(domain, fd as u64);
            return;
        }
        let request = Request::read_from_bytes(&bytes).expect("a whole request");
        assert_eq!((n, request.version), (REQUEST_LEN, LAYOUT_VERSION));
        let descriptor = descriptors.pop();
        if request.op == op::HELLO {
            self.hello(domain, &request, descriptor.expect("Hello brings an end"));
            return;
        }
        if request.op == op::HOLD {
            let (version, sequence) = (LAYOUT_VERSION, request.sequence);
            let reply = Reply { version, sequence, value: fd as u64, ..Reply::default() };
            sys::send(fd, reply.as_bytes(), &[]);
            return;
        }
        if request.op != op::ACCEPTED && self.drop_next.swap(false, Ordering::SeqCst) {
            self.network.lock().unwrap().reborn();
            return;
        }
        if request.op == op::SHADOW {
            return self.shadow(fd, domain, &request, descriptor);
        }
        let reply = self.answer(domain, &request, descriptor);
        if request.op != op::ACCEPTED {
            sys::send(fd, reply.as_bytes(), &[]);
        }
    }

    fn hello(&self, domain: usize, request: &Request, end: OwnedFd) {
        let network = self.network.lock().unwrap();
        let (geometry, descriptors) = network.domain_memory(domain);
        let reply = Reply {
            version: LAYOUT_VERSION,
            sequence: request.sequence,
            value: domain as u64,
            args: [
                geometry.slots as u32,
                geometry.send_len as u32,
                geometry.receive_len as u32,
                domain as u32,
            ],
            ..Reply::default()
        };
        sys::send(end.as_raw_fd(), reply.as_bytes(), &descriptors);
        drop(network);
        self.add_domain(domain, end);
    }

    fn shadow(&self, fd: RawFd, domain: usize, request: &Request, descriptor: Option<OwnedFd>) {
        let mut network = self.network.lock().unwrap();
        // As sockets does: the event of a listener that was closed before may lie behind this request.
        network.far_end(domain, request.slot);
        let data = HIDDEN | (domain as u64) << 40 | (request.slot as u64) << 8;
        let events = libc::EPOLLIN | libc::EPOLLET;
        let brought = descriptor.map(|fd| Watched::new(fd, self.epoll.as_raw_fd(), events, data));
        let mut reply = Reply { version: LAYOUT_VERSION, sequence: request.sequence, ..Reply::default() };
        let shown = network.shadow(domain, (request.slot, request.args[0] as usize), brought).unwrap_or_else(
            |errno| {
                reply.errno = errno;
                None
            },
        );
        sys::send(fd, reply.as_bytes(), shown.as_slice());
    }

    fn answer(&self, domain: usize, request: &Request, descriptor: Option<OwnedFd>) -> Reply {
        // Held throughout, so that no event of a descriptor is served before its socket has it.
        let mut network = self.network.lock().unwrap();
        let watched = |kind: u64, slot: u32, events: i32, fd: OwnedFd| {
            let data = kind | (domain as u64) << 40 | (slot as u64) << 8;
            Watched::new(fd, self.epoll.as_raw_fd(), events, data)
        };
        let far = |slot: u32, fd: Option<OwnedFd>| {
            // OUT, too: who closes it has a message of ours unread for a moment yet, in which it seems to be open
            // (`look_again` of eft-linux), and the end of that message is an event of its own.
            let events = libc::EPOLLRDHUP | libc::EPOLLOUT | libc::EPOLLET;
            watched(FAR_END, slot, events, fd.expect("a far end comes along"))
        };
        let slot = request.slot;
        let result = match request.op {
            op::OPEN => network.open(domain, request.args[0], |slot| far(slot, descriptor)),
            op::BIND => network.bind(domain, request),
            op::LISTEN => {
                let events = libc::EPOLLIN | libc::EPOLLET;
                let hidden = descriptor.map(|fd| watched(HIDDEN, slot, events, fd));
                network.listen(domain, slot, hidden)
            }
            op::CONNECT => network.connect(domain, request),
            op::OWNER => network.owner(domain, slot, descriptor),
            op::ACCEPTED => network.accepted(domain, request, far(slot, descriptor)),
            other => panic!("unknown request {other}"),
        };
        let mut reply = Reply { version: LAYOUT_VERSION, sequence: request.sequence, ..Reply::default() };
        match result {
            Ok((slot, port)) => {
                (reply.slot, reply.port) = (slot, port);
                if request.op == op::CONNECT {
                    reply.value = network.taken(domain, slot);
                }
            }
            Err(errno) => reply.errno = errno,
        }
        reply
    }
}

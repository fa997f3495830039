//! Who is signalled when urgent data come to a stream (`op::OWNER`).

use eft_base::{DomainId, SocketId};
use eft_channel::socket::SocketPage;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Sockets that are connected to themselves, and have the owners of streams.
#[derive(Default)]
pub struct Owners(HashMap<SocketId, Owner>);

struct Owner {
    bell: OwnedFd,
    page: SocketPage,
    /// Of the stream.
    incarnation: u32,
}

impl Owners {
    pub fn insert(&mut self, socket: SocketId, bell: OwnedFd, page: SocketPage) {
        let incarnation = page.incarnation();
        self.0.insert(socket, Owner { bell, page, incarnation });
    }

    /// Tells the program that brought this that its owner is known; it signals nobody yet. Returns how many system calls were
    /// made.
    pub fn greet(bell: &OwnedFd) -> u64 {
        let _ = rustix::net::send(bell, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        1
    }

    pub fn remove(&mut self, socket: SocketId) {
        self.0.remove(&socket);
    }

    pub fn remove_domain(&mut self, domain: DomainId) {
        self.0.retain(|s, _| s.domain != domain);
    }

    /// The kernel signals the owner of a socket to which something comes. Returns how many system calls were made.
    pub fn signal(&self, socket: SocketId) -> u64 {
        let owner = self.0.get(&socket).filter(|owner| owner.page.incarnation() == owner.incarnation);
        let Some(Owner { bell, .. }) = owner else { return 0 };
        // Who brought the socket may have filled it, and gets no signal then.
        let _ = rustix::net::send(bell, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        let mut byte = [0u8; 1];
        let _ = rustix::net::recv(bell, &mut byte, RecvFlags::DONTWAIT);
        2
    }
}

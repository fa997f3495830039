//! Requests of sockets. Every one may come again after a rebirth of either side, and then does no
//! harm.

use super::block::{NONE, State, bit};
use super::engine::Tcp;
use super::ports::Sharing;
use crate::edge::Out;
use eft_base::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, EMFILE, ENOBUFS};
use eft_base::{FamilyId, PoolId, RequestId, SocketId, WireAddress};
use eft_component::{Context, Outbox};
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};

/// Connections that may wait to be accepted at most (Linux's somaxconn).
const BACKLOG_MAX: u32 = 4096;

impl Tcp {
    pub(super) fn receive_request(
        &mut self,
        cx: &mut Context,
        message: SocketsToTransport,
        out: &mut Outbox<Out>,
    ) {
        use SocketsToTransport::*;
        match message {
            Open { request, socket } => self.request_open(cx, request, socket.family, out),
            Bind { request, socket, incarnation, address, port, reuse } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.request_bind(cx, i, address, port, reuse));
                self.reply(out, request, errno, socket, meant);
            }
            Listen { request, socket, incarnation, backlog } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.request_listen(cx, i, backlog));
                self.reply(out, request, errno, socket, meant);
            }
            Connect { request, socket, incarnation, address, port } => {
                match self.find_incarnation(socket, incarnation) {
                    Some(i) => self.request_connect(cx, request, i, address, port, out),
                    None => self.reply(out, request, EINVAL, socket, None),
                }
            }
            Close { request, socket, incarnation } => {
                if let Some(i) = self.find_incarnation(socket, incarnation) {
                    self.close_socket(cx, i, out);
                }
                self.reply(out, request, 0, socket, None);
            }
            Attached { request, socket, incarnation } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.request_attached(i));
                self.reply(out, request, errno, socket, meant);
            }
            CloseFamily { request, socket, pool } => {
                self.request_close_family(cx, request, socket.family, pool, out)
            }
        }
    }

    /// Answers a request; `block` tells what the socket is bound to.
    pub(super) fn reply(
        &self,
        out: &mut Outbox<Out>,
        request: RequestId,
        errno: i32,
        socket: SocketId,
        block: Option<u32>,
    ) {
        let (incarnation, address, port) = block.map_or((0, WireAddress::default(), 0), |i| {
            let block = &self.blocks[i];
            (block.incarnation, block.tuple.local, block.tuple.local_port)
        });
        out.push(Out::Sockets(TransportToSockets::Reply {
            request,
            errno,
            socket,
            incarnation,
            address,
            port,
        }));
    }

    fn request_open(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        family: FamilyId,
        out: &mut Outbox<Out>,
    ) {
        let mut socket = SocketId { family, slot: NONE };
        let again = self.opened.remove(&(family.0, request.to_u64()));
        let block = match again {
            Some(i) => Ok(i),
            None => self.open_socket(cx, family, request),
        };
        let errno = match block {
            Ok(i) => {
                socket = self.socket(i);
                0
            }
            Err(errno) => errno,
        };
        self.reply(out, request, errno, socket, block.ok());
    }

    fn open_socket(&mut self, cx: &mut Context, family: FamilyId, request: RequestId) -> Result<u32, i32> {
        let limit = self.config.sockets_per_family;
        let f = self.families.get(family).ok_or(EINVAL)?;
        if f.arena.is_none() || f.closing.is_some() {
            return Err(EINVAL);
        }
        if f.sockets >= limit {
            return Err(EMFILE);
        }
        let i = self.allocate(cx).ok_or(ENOBUFS)?;
        if !self.give_slot(i, family) {
            self.free_block(cx, i);
            return Err(ENOBUFS);
        }
        let block = &mut self.blocks[i];
        block.set(bit::ATTACHED);
        block.open_request = request.to_u64();
        Ok(i)
    }

    fn request_bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, reuse: u8) -> i32 {
        let block = &self.blocks[i];
        if block.has(bit::BOUND) {
            let same = block.tuple.local == address
                && (block.tuple.local_port == port || (port == 0 && block.has(bit::ANY_PORT)));
            return if same { 0 } else { EINVAL };
        }
        if block.state() != State::Closed || block.has(bit::DEAD) {
            return EINVAL;
        }
        if !self.addresses.may_bind(address) {
            return EADDRNOTAVAIL;
        }
        let mut flags = bit::BOUND;
        if reuse & 1 != 0 {
            flags |= bit::REUSE_ADDRESS;
        }
        if reuse & 2 != 0 {
            flags |= bit::REUSE_PORT;
        }
        self.bind(cx, i, address, port, flags)
    }

    /// Binds an unbound socket.
    fn bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, mut flags: u32) -> i32 {
        let port = if port == 0 {
            flags |= bit::ANY_PORT;
            match self.choose_unused_port(cx) {
                Some(port) => port,
                None => return EADDRINUSE,
            }
        } else {
            let sharing = Sharing { flags, family: self.blocks[i].family.0 };
            if !self.ports.may_bind(&self.blocks, i, address, port, sharing) {
                return EADDRINUSE;
            }
            port
        };
        let block = &mut self.blocks[i];
        block.set(flags);
        block.open_request = 0;
        block.tuple.local = address;
        block.tuple.local_port = port;
        self.ports.bind(i, port);
        if let Some(page) = &self.live[i as usize].page {
            page.set_local(self.blocks[i].tuple.local_endpoint());
        }
        0
    }

    fn request_listen(&mut self, cx: &mut Context, i: u32, backlog: u32) -> i32 {
        let family = self.blocks[i].family;
        let backlog = backlog.clamp(1, BACKLOG_MAX);
        match self.blocks[i].state() {
            State::Listen => {
                self.blocks[i].backlog = backlog;
                return 0;
            }
            State::Closed if !self.blocks[i].has(bit::DEAD) => {}
            _ => return EINVAL,
        }
        let limit = self.config.listeners_per_family;
        if self.families.get(family).is_none_or(|f| f.listeners >= limit) {
            return ENOBUFS;
        }
        if !self.blocks[i].has(bit::BOUND) {
            let any = WireAddress::from(core::net::IpAddr::from([0u8; 4]));
            let errno = self.bind(cx, i, any, 0, bit::BOUND);
            if errno != 0 {
                return errno;
            }
        }
        if !self.ports.may_listen(&self.blocks, i) {
            return EADDRINUSE;
        }
        let block = &mut self.blocks[i];
        block.set_state(State::Listen);
        block.open_request = 0;
        block.backlog = backlog;
        let tuple = block.tuple;
        self.ports.listen(i, tuple.local, tuple.local_port);
        if let Some(f) = self.families.get_mut(family) {
            f.listeners += 1;
        }
        self.refresh_flags(i);
        0
    }

    /// The family is gone. Its sockets are closed as their descriptors' last close would, and what
    /// they still have to send is sent; the answer comes when the arena is no longer used.
    fn request_close_family(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        id: FamilyId,
        pool: PoolId,
        out: &mut Outbox<Out>,
    ) {
        let Some(f) = self.families.get_mut(id).filter(|f| f.is_life(pool)) else {
            let socket = SocketId { family: id, slot: NONE };
            return self.reply(out, request, 0, socket, None);
        };
        f.closing = Some(request);
        let members = f.members();
        for i in members {
            self.close_socket(cx, i, out);
            self.limit_orphan(cx, i);
        }
        self.finish_family(id, out);
    }

    /// Answers `CloseFamily` if the last socket of the family is gone.
    pub(super) fn finish_family(&mut self, id: FamilyId, out: &mut Outbox<Out>) {
        if let Some(request) = self.families.finish(id) {
            let socket = SocketId { family: id, slot: NONE };
            self.reply(out, request, 0, socket, None);
        }
    }
}

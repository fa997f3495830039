//! What sockets asks ([`crate::requests`]), as tcp does it.

use super::block::{State, Tuple, bit};
use super::engine::Tcp;
use super::ports::Sharing;
use crate::edge::Out;
use crate::families::Families;
use crate::requests::{Place, Transport};
use eft_base::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOBUFS};
use eft_base::{FamilyId, RequestId, SocketId, WireAddress};
use eft_component::{Context, Outbox};

/// Connections that may wait to be accepted at most (Linux's somaxconn).
const BACKLOG_MAX: u32 = 4096;

impl Transport for Tcp {
    fn families(&mut self) -> &mut Families {
        &mut self.families
    }

    fn held(&self, i: u32) -> Option<SocketId> {
        (!self.blocks[i].has(bit::ORPHAN)).then(|| self.socket(i))
    }

    fn place(&self, i: u32) -> Place {
        let block = &self.blocks[i];
        let Tuple { local: address, local_port: port, .. } = block.tuple;
        Place { incarnation: self.cold[i].incarnation, address, port }
    }

    fn open(&mut self, cx: &mut Context, family: FamilyId, request: RequestId) -> Result<u32, i32> {
        self.families.may_open(family, self.config.sockets_per_family)?;
        let i = self.allocate(cx).ok_or(ENOBUFS)?;
        if !self.give_slot(i, family) {
            self.free_block(cx, i);
            return Err(ENOBUFS);
        }
        let block = &mut self.blocks[i];
        block.set(bit::ATTACHED);
        self.cold[i].open_request = request.to_u64();
        Ok(i)
    }

    fn restore(&mut self, cx: &mut Context, socket: SocketId, incarnation: u32) -> Result<u32, i32> {
        self.families.may_open(socket.family, self.config.sockets_per_family)?;
        let i = self.allocate(cx).ok_or(ENOBUFS)?;
        if !self.give_slot_again(i, socket, incarnation) {
            self.free_block(cx, i);
            return Err(EINVAL);
        }
        self.blocks[i].set(bit::ATTACHED);
        Ok(i)
    }

    fn bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, reuse: u8) -> i32 {
        self.request_bind(cx, i, address, port, reuse)
    }

    fn listen(&mut self, cx: &mut Context, i: u32, backlog: u32) -> i32 {
        self.request_listen(cx, i, backlog)
    }

    fn attach(&mut self, i: u32) -> i32 {
        self.request_attached(i)
    }

    fn connect(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        i: u32,
        (address, port): (WireAddress, u16),
        out: &mut Outbox<Out>,
    ) {
        self.request_connect(cx, request, i, address, port, out)
    }

    fn close(&mut self, cx: &mut Context, i: u32) {
        self.close_socket(cx, i)
    }

    fn close_with_family(&mut self, cx: &mut Context, i: u32) {
        self.close_socket(cx, i);
        self.connection(i).limit_orphan(cx);
    }
}

impl Tcp {
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
        self.bind_to(cx, i, address, port, flags)
    }

    /// Binds an unbound socket.
    fn bind_to(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, mut flags: u32) -> i32 {
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
        self.cold[i].open_request = 0;
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
                self.cold[i].backlog = backlog;
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
            let errno = self.bind_to(cx, i, any, 0, bit::BOUND);
            if errno != 0 {
                return errno;
            }
        }
        if !self.ports.may_listen(&self.blocks, i) {
            return EADDRINUSE;
        }
        let block = &mut self.blocks[i];
        block.set_state(State::Listen);
        self.cold[i].open_request = 0;
        self.cold[i].backlog = backlog;
        let tuple = block.tuple;
        self.ports.listen(i, tuple.local, tuple.local_port);
        if let Some(f) = self.families.get_mut(family) {
            f.listeners += 1;
        }
        self.connection(i).refresh_flags();
        0
    }
}

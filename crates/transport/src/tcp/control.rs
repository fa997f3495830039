//! tcp's handling of requests of sockets ([`crate::requests`]).

use super::block::{State, Tuple, bit};
use super::connection::{Connection, View};
use super::engine::Tcp;
use super::ports::Sharing;
use crate::addresses::any4;
use crate::domains::Domains;
use crate::edge::Out;
use crate::requests::{Place, Transport};
use eft_arena::docket::Kind;
use eft_base::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOBUFS};
use eft_base::ports::is_spread;
use eft_base::{DomainId, RequestId, SocketId, WireAddress};
use eft_component::{Context, Outbox};
use eft_messages::sockets::{BESIDE, reuse};

/// Most connections that may wait to be accepted (Linux's somaxconn).
const BACKLOG_MAX: u32 = 4096;

impl Transport for Tcp {
    fn domains(&mut self) -> &mut Domains {
        &mut self.domains
    }

    fn held(&self, i: u32) -> Option<SocketId> {
        let c = self.view(i);
        (!c.block.has(bit::ORPHAN)).then(|| c.socket())
    }

    fn place(&self, i: u32) -> Place {
        let c = self.view(i);
        let Tuple { local: address, local_port: port, .. } = c.block.tuple;
        let taken = c.block.snd_end.min(u32::MAX as u64) as u32;
        Place { incarnation: c.cold.incarnation, address, port, taken }
    }

    fn open(&mut self, cx: &mut Context, domain: DomainId, request: RequestId) -> Result<u32, i32> {
        self.domains.may_open(domain, self.config.sockets_per_domain)?;
        let i = self.allocate(cx).ok_or(ENOBUFS)?;
        if !self.give_slot(i, domain) {
            self.free_block(cx, i);
            return Err(ENOBUFS);
        }
        let mut c = self.connection(i);
        c.block.set(bit::ATTACHED);
        c.cold.open_request = request.to_u64();
        Ok(i)
    }

    fn opened_for(&self, i: u32) -> u64 {
        self.view(i).cold.open_request
    }

    fn restore(&mut self, cx: &mut Context, socket: SocketId, incarnation: u32) -> Result<u32, i32> {
        self.domains.may_open(socket.domain, self.config.sockets_per_domain)?;
        let i = self.allocate(cx).ok_or(ENOBUFS)?;
        if !self.give_slot_again(i, socket, incarnation) {
            self.free_block(cx, i);
            return Err(EINVAL);
        }
        self.connection(i).block.set(bit::ATTACHED);
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

    fn close_with_domain(&mut self, cx: &mut Context, i: u32) {
        if !self.enter_state(cx, Kind::Serve, i) {
            if !self.free.contains(i) {
                self.say_reset(i);
                self.release(cx, i);
            }
        } else if !self.is_to_be_orphaned(i) {
            self.close_socket(cx, i);
            self.connection(i).limit_orphan(cx);
        }
    }

    fn give_up(&mut self, cx: &Context, i: u32) {
        Tcp::give_up(self, cx, i)
    }

    fn release(&mut self, cx: &Context, i: u32) {
        Tcp::release(self, cx, i)
    }
}

impl View<'_> {
    /// A socket that neither is nor was connected.
    fn is_unused(&self) -> bool {
        self.block.state() == State::Closed && !self.block.has(bit::DEAD)
    }

    /// Whether the socket is already bound to this address.
    fn is_bound_to(&self, address: WireAddress, port: u16) -> bool {
        let Tuple { local, local_port, .. } = self.block.tuple;
        local == address && (local_port == port || (port == 0 && self.block.has(bit::ANY_PORT)))
    }
}

impl Connection<'_> {
    /// Records its address; `flags` say how it is bound.
    fn take_address(&mut self, address: WireAddress, port: u16, flags: u32) {
        self.block.set(flags);
        self.cold.open_request = 0;
        self.block.tuple.local = address;
        self.block.tuple.local_port = port;
        if let Some(page) = &self.live.page {
            page.set_local(self.block.tuple.local_endpoint());
        }
    }

    fn begin_listening(&mut self, backlog: u32) {
        self.block.set_state(State::Listen);
        self.cold.open_request = 0;
        self.cold.backlog = backlog;
        self.refresh_flags();
    }
}

impl Tcp {
    fn request_bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, wishes: u8) -> i32 {
        let c = self.view(i);
        if c.block.has(bit::BOUND) {
            return if c.is_bound_to(address, port) { 0 } else { EINVAL };
        }
        if !c.is_unused() {
            return EINVAL;
        }
        if !self.addresses.may_bind(address, wishes) {
            return EADDRNOTAVAIL;
        }
        let mut flags = bit::BOUND;
        if wishes & reuse::ADDRESS != 0 {
            flags |= bit::REUSE_ADDRESS;
        }
        if wishes & reuse::PORT != 0 {
            flags |= bit::REUSE_PORT;
        }
        if wishes & reuse::V6ONLY != 0 {
            flags |= bit::V6ONLY;
        }
        if wishes & reuse::NEW != 0 && port != 0 && !self.ports.is_unused(port) {
            return EADDRINUSE;
        }
        self.bind_to(cx, i, address, port, flags, wishes & reuse::ELSEWHERE != 0)
    }

    /// Binds an unbound socket.
    pub(super) fn bind_to(
        &mut self,
        cx: &mut Context,
        i: u32,
        address: WireAddress,
        port: u16,
        mut flags: u32,
        is_elsewhere: bool,
    ) -> i32 {
        let port = if port == 0 {
            flags |= bit::ANY_PORT;
            match self.choose_unused_port(cx) {
                Some(port) => port,
                None => return EADDRINUSE,
            }
        } else if !self.ports.share.has(port) {
            // Whoever asks for it has asked the port's owner, too.
            if !is_elsewhere || !is_spread(port) {
                return EADDRNOTAVAIL;
            }
            port
        } else {
            let sharing = Sharing { flags, domain: self.view(i).block.domain.0 };
            if !self.ports.may_bind(&self.blocks, i, address, port, sharing) {
                return EADDRINUSE;
            }
            port
        };
        self.ports.bind(i, port);
        self.connection(i).take_address(address, port, flags);
        0
    }

    pub(super) fn request_listen(&mut self, cx: &mut Context, i: u32, backlog: u32) -> i32 {
        let is_beside = backlog & BESIDE != 0;
        let backlog = (backlog & !BESIDE).clamp(1, BACKLOG_MAX);
        let mut c = self.connection(i);
        let (domain, is_bound) = (c.block.domain, c.block.has(bit::BOUND));
        if c.block.state() == State::Listen {
            c.cold.backlog = backlog;
            return 0;
        }
        if !c.view().is_unused() {
            return EINVAL;
        }
        let limit = self.config.listeners_per_domain;
        if self.domains.get(domain).is_none_or(|f| f.listeners >= limit) {
            return ENOBUFS;
        }
        if !is_bound {
            let errno = self.bind_to(cx, i, any4(), 0, bit::BOUND, false);
            if errno != 0 {
                return errno;
            }
        }
        if !is_beside && !self.ports.share.has(self.view(i).block.tuple.local_port) {
            return EINVAL;
        }
        if !is_beside && !self.ports.may_listen(&self.blocks, i) {
            return EADDRINUSE;
        }
        let mut c = self.connection(i);
        c.begin_listening(backlog);
        self.ports.listen(i, &self.blocks[i]);
        if let Some(f) = self.domains.get_mut(domain) {
            f.listeners += 1;
        }
        0
    }
}

//! udp's handling of requests of sockets ([`crate::requests`]).

use super::counters::Counter;
use super::durable::{Block, bit};
use super::engine::Udp;
use super::live::{Live, due};
use crate::addresses::{ANY6, Reach, any_towards, is_unspecified, overlap};
use crate::domains::Domains;
use crate::edge::Out;
use crate::requests::{MembershipChange, POSITION_MAX, Place, Transport, left_to_receive};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use eft_arena::docket::Kind;
use eft_base::errno::{EACCES, EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOBUFS, EOPNOTSUPP};
use eft_base::{DomainId, Instant, RequestId, SocketId, WireAddress};
use eft_channel::socket::{Opt, SocketInfo};
use eft_component::{Context, Outbox};
use eft_messages::sockets::reuse;

const EPHEMERAL_FIRST: u16 = 32768;
const EPHEMERAL_COUNT: u32 = 28232;
/// How long an orphan's last datagrams may wait for ip.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);

impl Transport for Udp {
    fn domains(&mut self) -> &mut Domains {
        &mut self.domains
    }

    fn held(&self, i: u32) -> Option<SocketId> {
        (!self.blocks[i].has(bit::ORPHAN)).then(|| self.socket(i))
    }

    fn place(&self, i: u32) -> Place {
        let Block { incarnation, local: address, local_port: port, .. } = self.blocks[i];
        Place { incarnation, address, port, taken: 0 }
    }

    fn open(&mut self, cx: &mut Context, domain: DomainId, request: RequestId) -> Result<u32, i32> {
        self.domains.may_open(domain, self.config.sockets_per_domain)?;
        let i = self.allocate()?;
        let Some(slot) = self.domains.enter(domain).allocate(i) else {
            self.free.put(i);
            return Err(ENOBUFS);
        };
        self.live[i as usize] = Live::default();
        let generation = self.blocks[i].generation.wrapping_add(1);
        self.blocks[i] = Block {
            flags: bit::USED,
            domain,
            slot,
            open_request: request.to_u64(),
            ..Block::free(generation)
        };
        self.attach_page(i);
        if let Some(page) = &self.live[i as usize].page {
            self.blocks[i].incarnation = page.reset(self.config.slots.owner);
            page.set_receive_notify(u64::MAX);
        }
        cx.count(Counter::Opened);
        self.gauge_blocks(cx);
        Ok(i)
    }

    fn opened_for(&self, i: u32) -> u64 {
        self.blocks[i].open_request
    }

    fn restore(&mut self, cx: &mut Context, socket: SocketId, incarnation: u32) -> Result<u32, i32> {
        self.domains.may_open(socket.domain, self.config.sockets_per_domain)?;
        let (page, _) = self.domains.page(socket).ok_or(EINVAL)?;
        let (receive_taken, receive_end) = left_to_receive(&page).ok_or(EINVAL)?;
        // Datagrams that were not sent while there was no stack are not sent now.
        let sent = page.send_end();
        let sane = sent <= POSITION_MAX && sent.is_multiple_of(8) && receive_end.is_multiple_of(8);
        if page.incarnation() != incarnation || !sane {
            return Err(EINVAL);
        }
        let i = self.allocate()?;
        if !self.domains.enter(socket.domain).allocate_at(socket.slot, i) {
            self.free.put(i);
            return Err(EINVAL);
        }
        self.live[i as usize] = Live::default();
        let generation = self.blocks[i].generation.wrapping_add(1);
        self.blocks[i] = Block {
            flags: bit::USED,
            domain: socket.domain,
            slot: socket.slot,
            incarnation,
            sent,
            released: sent,
            receive_end,
            receive_taken,
            ..Block::free(generation)
        };
        self.attach_page(i);
        if let Some(page) = &self.live[i as usize].page {
            page.set_send_released(sent);
        }
        self.publish(i);
        self.mark(i, due::WRITABLE);
        cx.count(Counter::Opened);
        self.gauge_blocks(cx);
        Ok(i)
    }

    fn bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, reuse: u8) -> i32 {
        self.request_bind(cx, i, address, port, reuse)
    }

    fn listen(&mut self, _cx: &mut Context, _i: u32, _backlog: u32) -> i32 {
        EOPNOTSUPP
    }

    fn attach(&mut self, _i: u32) -> i32 {
        EOPNOTSUPP
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
        self.memberships.release(i);
        self.close_socket(cx, i)
    }

    fn change_membership(
        &mut self,
        request: RequestId,
        i: u32,
        change: MembershipChange,
        out: &mut Outbox<Out>,
    ) {
        self.request_membership(request, i, change, out)
    }

    fn close_with_domain(&mut self, cx: &mut Context, i: u32) {
        if !self.enter_work(cx, Kind::Serve, i) {
            self.release(cx, i);
        } else if !self.blocks[i].has(bit::ORPHAN) {
            self.close(cx, i);
        }
    }

    fn give_up(&mut self, cx: &Context, i: u32) {
        Udp::give_up(self, cx, i)
    }

    fn release(&mut self, cx: &Context, i: u32) {
        Udp::release(self, cx, i)
    }
}

impl Udp {
    fn request_bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, wishes: u8) -> i32 {
        let block = &self.blocks[i];
        if block.has(bit::BOUND) {
            let same = block.local == address
                && (block.local_port == port || (port == 0 && block.has(bit::ANY_PORT)));
            return if same { 0 } else { EINVAL };
        }
        if !self.addresses.may_bind(address, wishes) && !self.is_group(address) {
            return EADDRNOTAVAIL;
        }
        let mut flags = 0;
        if wishes & reuse::ADDRESS != 0 {
            flags |= bit::REUSE_ADDRESS;
        }
        if wishes & reuse::PORT != 0 {
            flags |= bit::REUSE_PORT;
        }
        if wishes & reuse::V6ONLY != 0 {
            flags |= bit::V6ONLY;
        }
        if wishes & reuse::NEW != 0 && self.ports.contains_key(&port) {
            return EADDRINUSE;
        }
        self.blocks[i].flags |= flags;
        let errno = self.bind_to(cx, i, address, port);
        if errno != 0 {
            self.blocks[i].flags &= !flags;
        }
        errno
    }

    /// Binds an unbound socket; port 0 chooses one.
    pub(super) fn bind_to(&mut self, cx: &mut Context, i: u32, address: WireAddress, mut port: u16) -> i32 {
        if port == 0 {
            let start = cx.random.below(EPHEMERAL_COUNT as u64) as u32;
            let chosen = (0..EPHEMERAL_COUNT)
                .map(|n| EPHEMERAL_FIRST + ((start + n) % EPHEMERAL_COUNT) as u16)
                .find(|p| self.share.has(*p) && !self.ports.contains_key(p));
            match chosen {
                Some(p) => port = p,
                None => return EADDRINUSE,
            }
            self.blocks[i].flags |= bit::ANY_PORT;
        } else if !self.share.has(port) {
            return EADDRNOTAVAIL;
        } else if !self.may_bind(i, address, port) {
            return EADDRINUSE;
        }
        let block = &mut self.blocks[i];
        block.flags |= bit::BOUND;
        if address == ANY6 {
            block.flags |= bit::ANY6;
        }
        block.open_request = 0;
        block.local = address;
        block.local_port = port;
        self.ports.entry(port).or_default().push(i);
        self.publish(i);
        0
    }

    fn may_bind(&self, i: u32, address: WireAddress, port: u16) -> bool {
        let block = &self.blocks[i];
        let reuse = bit::REUSE_ADDRESS | bit::REUSE_PORT;
        self.ports.get(&port).is_none_or(|others| {
            others.iter().all(|o| {
                let other = &self.blocks[*o];
                let shared = other.flags & block.flags & reuse != 0;
                // Ports are shared only within a domain.
                !overlap(other.reach(), Reach { address, ..block.reach() })
                    || (shared && other.domain == block.domain)
            })
        })
    }

    fn request_connect(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        i: u32,
        address: WireAddress,
        port: u16,
        out: &mut Outbox<Out>,
    ) {
        if self.live[i as usize].connect_request == Some(request) {
            // It is repeated while the route is asked for.
            return;
        }
        let socket = self.socket(i);
        if is_unspecified(address) {
            self.disconnect(i);
            return self.reply(out, request, 0, socket, Some(i));
        }
        let allowed = self.live[i as usize].page.as_ref().is_some_and(|p| p.option(Opt::Broadcast) != 0);
        if self.addresses.is_broadcast(address) && !allowed {
            return self.reply(out, request, EACCES, socket, Some(i));
        }
        if !self.blocks[i].has(bit::BOUND) {
            let errno = self.bind_to(cx, i, any_towards(address), 0);
            if errno != 0 {
                return self.reply(out, request, errno, socket, Some(i));
            }
        }
        let block = &mut self.blocks[i];
        if block.has(bit::ANY_ADDRESS) {
            block.local = block.wildcard();
            block.flags &= !bit::ANY_ADDRESS;
        }
        block.open_request = 0;
        block.flags &= !bit::CONNECTED;
        block.remote = address;
        block.remote_port = port;
        // The source address is chosen with the peer; the answer waits for it.
        self.live[i as usize].connect_request = Some(request);
        if IpAddr::from(address).is_loopback() {
            // The shim reaches the peer through the kernel; nothing from the stack must be received
            // meanwhile.
            let source = match IpAddr::from(address) {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST).into(),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST).into(),
            };
            return self.finish_connect(i, Ok(source), out);
        }
        self.mark(i, due::SEND);
    }

    /// The route to the peer is known, or there is none.
    pub(super) fn finish_connect(&mut self, i: u32, answer: Result<WireAddress, i32>, out: &mut Outbox<Out>) {
        let Some(request) = self.live[i as usize].connect_request.take() else {
            return;
        };
        let block = &mut self.blocks[i];
        let errno = match answer {
            Ok(source) => {
                if is_unspecified(block.local) {
                    block.local = source;
                    block.flags |= bit::ANY_ADDRESS;
                }
                block.flags |= bit::CONNECTED;
                // What was known of the way to another peer ([`super::errors`]).
                if let Some(page) = &self.live[i as usize].page {
                    page.set_info(&SocketInfo::default());
                }
                0
            }
            Err(errno) => {
                block.remote = WireAddress::default();
                block.remote_port = 0;
                errno
            }
        };
        self.publish(i);
        let socket = self.socket(i);
        self.reply(out, request, errno, socket, Some(i));
    }

    fn disconnect(&mut self, i: u32) {
        let block = &mut self.blocks[i];
        block.remote = WireAddress::default();
        block.remote_port = 0;
        if block.has(bit::ANY_ADDRESS) {
            block.local = block.wildcard();
        }
        block.flags &= !(bit::CONNECTED | bit::ANY_ADDRESS);
        self.publish(i);
    }

    /// The last descriptor is gone: datagrams put in are still sent, then the socket is freed.
    fn close_socket(&mut self, cx: &Context, i: u32) {
        self.blocks[i].flags |= bit::ORPHAN;
        self.live[i as usize].connect_request = None;
        self.limit_orphan(cx.now, i);
        self.mark(i, due::SEND);
    }

    pub(super) fn limit_orphan(&mut self, now: Instant, i: u32) {
        self.timers.arm(i, now + ORPHAN_PATIENCE);
    }

    /// An orphan's time is up: drops its unsent datagrams.
    pub(super) fn give_up_orphan(&mut self, cx: &Context, i: u32) {
        let block = &mut self.blocks[i];
        if !block.has(bit::USED | bit::ORPHAN) {
            return;
        }
        if let Some(page) = &self.live[i as usize].page {
            block.sent = block.sent.max(page.send_end());
        }
        self.finish_orphan(cx, i);
        if self.blocks[i].has(bit::USED) {
            // ip still refers to its ring.
            self.limit_orphan(cx.now, i);
        }
    }

    /// Frees an orphan that has nothing left to send.
    pub(super) fn finish_orphan(&mut self, cx: &Context, i: u32) {
        let block = &self.blocks[i];
        let live = &self.live[i as usize];
        let unsent = live.page.as_ref().is_some_and(|p| p.send_end() > block.sent && !block.has(bit::DEAD));
        if block.has(bit::USED | bit::ORPHAN) && !unsent && live.in_flight.count() == 0 {
            self.release(cx, i);
        }
    }

    /// Frees a socket and its slot, once.
    pub(super) fn release(&mut self, cx: &Context, i: u32) {
        if !self.free.put(i) {
            return;
        }
        let block = self.blocks[i];
        if block.has(bit::BOUND)
            && let Some(list) = self.ports.get_mut(&block.local_port)
        {
            list.retain(|o| *o != i);
            if list.is_empty() {
                self.ports.remove(&block.local_port);
            }
        }
        self.memberships.release(i);
        self.timers.cancel(i);
        if let Some(page) = self.live[i as usize].page.take() {
            page.set_free();
        }
        self.domains.free(self.socket(i));
        self.blocks[i] = Block::free(block.generation.wrapping_add(1));
        self.live[i as usize] = Live::default();
        cx.count(Counter::Closed);
        self.gauge_blocks(cx);
    }
}

//! Departing datagrams: from the send ring's records to ip, by reference.

mod answers;
mod record;

use super::asked::Request;
use super::counters::Counter;
use super::durable::bit;
use super::engine::Udp;
use super::live::{Path, due};
use crate::addresses::{any_towards, is_unspecified};
use crate::edge::Out;
use crate::page::Page;
use crate::routes::LIFETIME;
use core::net::IpAddr;
use core::time::Duration;
use eft_base::checksum::Checksum;
use eft_base::errno::{EACCES, EDESTADDRREQ, EINVAL, EMSGSIZE};
use eft_base::wire::{PROTOCOL_UDP, UdpHeader};
use eft_base::{PacketRef, RequestId, WireAddress};
use eft_channel::socket::{
    DatagramHeader, Opt, SEGMENTS_MAX, datagram_record_len, fragment, marks, payload_max,
};
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::transport::{
    PAYLOAD_REFS_MAX, SEND_DONT_FRAGMENT, SEND_HOST_ONLY, SEND_NO_LOOP, SendDescriptor, TRANSPORT_HEADER_MAX,
    TransportToIp, Wish,
};
use record::{Next, Piece, RECORD_HEADER, next_piece, next_record};
use zerocopy::IntoBytes;

const CHECKSUM_OFFSET: u16 = 6;
/// Datagrams that one socket sends before another has its turn.
const QUANTUM: usize = 64;
/// A refusal is used only for the datagrams that waited for it.
const REFUSAL_LIFETIME: Duration = Duration::from_millis(10);

/// Where a datagram goes, and how.
struct Way {
    path: Path,
    destination: WireAddress,
    port: u16,
    /// 0: as ip's default.
    hops: u8,
    /// Of a [`SendDescriptor`], for groups.
    flags: u8,
}

impl Udp {
    /// Sends what a socket's ring holds, as far as there is room.
    pub(super) fn send_datagrams(&mut self, cx: &mut Context, i: u32, out: &mut Outbox<Out>) {
        self.advance_connect(cx, i, out);
        for _ in 0..QUANTUM {
            let block = &self.blocks[i];
            if !block.has(bit::USED) || block.has(bit::DEAD) || self.waits_for_route(i) {
                break;
            }
            let Some(page) = self.live[i as usize].page.clone() else {
                break;
            };
            match next_record(&page, block.sent) {
                Next::Nothing => break,
                Next::Hostile => {
                    self.distrust(cx, i);
                    break;
                }
                Next::Datagram(header) if !self.enter_datagram(cx, i, header.len) => {
                    self.pass_over(i, &header);
                }
                Next::Datagram(header) => {
                    if !self.send_record(cx, i, &page, &header, out) {
                        return;
                    }
                }
            }
        }
        let block = &self.blocks[i];
        let more = self.live[i as usize].page.as_ref().is_some_and(|p| p.send_end() > block.sent);
        let go_on = more && !block.has(bit::DEAD) && !self.waits_for_route(i);
        let live = &mut self.live[i as usize];
        if !go_on {
            live.due &= !due::SEND;
        }
        self.finish_orphan(cx, i);
    }

    fn waits_for_route(&self, i: u32) -> bool {
        self.live[i as usize].route_request.is_some()
    }

    /// Continues a connect that waits for its route, if the route is known.
    fn advance_connect(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        if self.live[i as usize].connect_request.is_none() || self.waits_for_route(i) {
            return;
        }
        let block = &self.blocks[i];
        let (source, destination) = (block.local, block.remote);
        if let Some(answer) = self.way(cx, i, source, destination, out) {
            self.finish_connect(i, answer.map(|path| path.source), out);
        }
    }

    fn distrust(&mut self, cx: &Context, i: u32) {
        cx.count(Counter::HostilePages);
        self.give_up(cx, i);
    }

    /// A record is not sent.
    fn pass_over(&mut self, i: u32, header: &DatagramHeader) {
        self.blocks[i].sent += datagram_record_len(header.len as usize) as u64;
        self.live[i as usize].segmented = 0;
        self.release_ring(i);
    }

    /// Sends the next datagram of a record, which is mostly the only one, or gives the record up. False if it must wait.
    fn send_record(
        &mut self,
        cx: &mut Context,
        i: u32,
        page: &Page,
        header: &DatagramHeader,
        out: &mut Outbox<Out>,
    ) -> bool {
        let way = match self.direct(cx, i, page, header, out) {
            Ok(Some(way)) => way,
            Ok(None) => return false,
            Err((counter, errno)) => {
                cx.count(counter);
                if errno != 0 {
                    self.set_error(i, errno);
                }
                self.pass_over(i, header);
                return true;
            }
        };
        let piece = next_piece(header, self.live[i as usize].segmented, way.path.segment_max);
        if !self.transmit(cx, i, page, (header, piece), &way, out) {
            return false;
        }
        let end = piece.at + piece.len;
        let rest = end < header.len;
        self.live[i as usize].segmented = if rest { end } else { 0 };
        if !rest {
            self.blocks[i].sent += datagram_record_len(header.len as usize) as u64;
        }
        true
    }

    /// Where a datagram goes. `Ok(None)`: the route is being asked for. An error of 0: it goes nowhere, and nobody is told.
    fn direct(
        &mut self,
        cx: &mut Context,
        i: u32,
        page: &Page,
        header: &DatagramHeader,
        out: &mut Outbox<Out>,
    ) -> Result<Option<Way>, (Counter, i32)> {
        if header.segment != 0 && header.len as usize > header.segment as usize * SEGMENTS_MAX {
            return Err((Counter::DropTooLong, EINVAL));
        }
        if !self.blocks[i].has(bit::BOUND) {
            let errno = self.bind_to(cx, i, any_towards(header.address), 0);
            if errno != 0 {
                return Err((Counter::DropUnroutable, errno));
            }
        }
        let block = &self.blocks[i];
        let (destination, port) = if is_unspecified(header.address) && header.port == 0 {
            (block.remote, block.remote_port)
        } else {
            (header.address, header.port)
        };
        if header.len as usize > payload_max(destination.into()) {
            return Err((Counter::DropTooLong, EMSGSIZE));
        }
        if port == 0 || is_unspecified(destination) {
            return Err((Counter::DropNoDestination, EDESTADDRREQ));
        }
        if self.addresses.is_broadcast(destination) && page.option(Opt::Broadcast) == 0 {
            return Err((Counter::DropNotAllowed, EACCES));
        }
        let wanted = if is_unspecified(header.local) { block.local } else { header.local };
        // Nothing is sent from a group.
        let wanted = if self.is_group(wanted) { any_towards(destination) } else { wanted };
        if !self.addresses.may_bind(wanted, 0) {
            return Err((Counter::DropNotAllowed, EINVAL));
        }
        let path = match self.way(cx, i, wanted, destination, out) {
            None => return Ok(None),
            Some(Err(errno)) => return Err((Counter::DropUnroutable, errno)),
            Some(Ok(path)) => path,
        };
        let mut flags = match header.quiet & marks::QUIET {
            0 => 0,
            _ => SEND_NO_LOOP,
        };
        let hops = match hops(page, header, destination) {
            Some(hops) => hops,
            // It is for this host alone, if somebody here is a member.
            None if flags == 0 && self.memberships.has_members(destination) => {
                flags |= SEND_HOST_ONLY;
                1
            }
            None => return Err((Counter::DropNoHops, 0)),
        };
        Ok(Some(Way { path, destination, port, hops, flags }))
    }

    /// The route to a destination, if it is known; else it is asked for.
    fn way(
        &mut self,
        cx: &Context,
        i: u32,
        source: WireAddress,
        destination: WireAddress,
        out: &mut Outbox<Out>,
    ) -> Option<Result<Path, i32>> {
        if let Some(answer) = self.routes.get(cx.now, (source, destination)) {
            return Some(answer);
        }
        if out.room(ComponentId::IP) == 0 || self.waits_for_route(i) {
            return None;
        }
        let generation = self.blocks[i].generation;
        let request = self.requests.insert(Request::Route { block: i, generation, source, destination });
        if let Ok(request) = request {
            self.live[i as usize].route_request = Some(request);
            out.push(Out::Ip(TransportToIp::Route { request, source, destination }));
        }
        None
    }

    pub(super) fn receive_routed(
        &mut self,
        cx: &Context,
        id: RequestId,
        errno: i32,
        path: Path,
        out: &mut Outbox<Out>,
    ) {
        let Some(&Request::Route { block, generation, source: wanted, destination }) = self.requests.get(id)
        else {
            return cx.count(Counter::StaleReplies);
        };
        self.requests.remove(id);
        let answer = if errno == 0 { Ok(path) } else { Err(errno) };
        let lifetime = if answer.is_ok() { LIFETIME } else { REFUSAL_LIFETIME };
        self.routes.put(cx.now, (wanted, destination), answer, lifetime);
        if self.blocks[block].generation == generation {
            self.live[block as usize].route_request = None;
            self.advance_connect(cx, block, out);
            self.mark(block, due::SEND);
        }
    }

    /// Whether a datagram can be sent now.
    pub(super) fn has_room(&self, out: &Outbox<Out>) -> bool {
        out.room(ComponentId::IP) > 0 && self.headers.available() > 0 && self.requests.room() > 0
    }

    /// Gives ip a datagram, or several that go as one packet. False if there is no room.
    fn transmit(
        &mut self,
        cx: &Context,
        i: u32,
        page: &Page,
        (header, piece): (&DatagramHeader, Piece),
        way: &Way,
        out: &mut Outbox<Out>,
    ) -> bool {
        if !self.has_room(out) {
            return false;
        }
        let Some(slot) = self.headers.allocate() else {
            return false;
        };
        let descriptor = PacketRef { len: size_of::<SendDescriptor>() as u32, ..slot };
        let bytes = self.describe(i, page, (header, piece), way);
        self.headers.write(descriptor, 0, bytes.as_bytes());
        // As on Linux, of several datagrams the first tells.
        let stamp = if piece.at == 0 { self.stamp_scheduled(cx.now, i, header) } else { None };
        let block = &self.blocks[i];
        let live = &mut self.live[i as usize];
        let group = live.in_flight.add(block.sent, page.send_len());
        let inserted = self.requests.insert(Request::Datagram {
            block: i,
            generation: block.generation,
            group,
            descriptor,
            stamp,
        });
        let Ok(request) = inserted else {
            live.in_flight.remove(group);
            self.headers.free(descriptor);
            return false;
        };
        out.push(Out::Ip(TransportToIp::Send { request, descriptor }));
        cx.add(Counter::SentDatagrams, piece.datagrams().into());
        cx.add(Counter::SentBytes, piece.len as u64);
        true
    }

    fn describe(
        &self,
        i: u32,
        page: &Page,
        (header, piece): (&DatagramHeader, Piece),
        way: &Way,
    ) -> SendDescriptor {
        let block = &self.blocks[i];
        let length = size_of::<UdpHeader>() as u32 + piece.len;
        let sum = Checksum::new().add_pseudo_header(
            IpAddr::from(way.path.source),
            IpAddr::from(way.destination),
            PROTOCOL_UDP,
            length,
        );
        let udp = UdpHeader {
            source_port: block.local_port.into(),
            destination_port: way.port.into(),
            length: (length as u16).into(),
            checksum: sum.partial().into(),
        };
        let mut bytes = [0; TRANSPORT_HEADER_MAX];
        bytes[..size_of::<UdpHeader>()].copy_from_slice(udp.as_bytes());
        let refs = page.send_refs(
            self.live[i as usize].pool,
            block.slot,
            block.sent + RECORD_HEADER + u64::from(piece.at),
            piece.len as usize,
        );
        let mut payload = [PacketRef::default(); PAYLOAD_REFS_MAX];
        let mut count = 0;
        for r in refs.into_iter().filter(|r| r.len > 0) {
            payload[count] = r;
            count += 1;
        }
        // As on Linux, what is segmented fits its way.
        let never = match IpAddr::from(way.destination) {
            IpAddr::V4(_) => fragment::NEVER,
            IpAddr::V6(_) => fragment::NEVER | fragment::NEVER_IPV6,
        };
        let may_fragment = page.option(Opt::DontFragment) & never == 0 && header.segment == 0;
        SendDescriptor {
            source: way.path.source,
            destination: way.destination,
            protocol: PROTOCOL_UDP,
            ttl: way.hops,
            tos: own_or(header.tos, page, Opt::Tos),
            flags: way.flags | if may_fragment { 0 } else { SEND_DONT_FRAGMENT },
            header_len: size_of::<UdpHeader>() as u16,
            checksum_offset: CHECKSUM_OFFSET,
            segment_size: piece.segment,
            payload_count: count as u16,
            wish: wish(page, header).to_word(),
            payload,
            header: bytes,
            seal: 0,
        }
        .sealed()
    }
}

/// What the program wants of IPv6 packets.
fn wish(page: &Page, header: &DatagramHeader) -> Wish {
    let largest = page.option(Opt::LargestPacket) / u32::from(Wish::UNIT);
    Wish { label: header.label(), largest: largest.min(Wish::LARGEST_MAX.into()) as u16 }
}

/// A record's own value, or else the socket's.
fn own_or(own: u8, page: &Page, option: Opt) -> u8 {
    match own {
        0 => page.option(option).min(255) as u8,
        own => own,
    }
}

/// How far a datagram goes: to a group one hop unless the application says otherwise (RFC 1112 §6.1, RFC 3493 §5.2).
/// `None`: it must not leave the host.
fn hops(page: &Page, header: &DatagramHeader, destination: WireAddress) -> Option<u8> {
    if header.ttl != 0 || !IpAddr::from(destination).is_multicast() {
        return Some(own_or(header.ttl, page, Opt::Ttl));
    }
    match page.option(Opt::MulticastHops) {
        0 => Some(1),
        set => Some((set - 1).min(255) as u8).filter(|hops| *hops != 0),
    }
}

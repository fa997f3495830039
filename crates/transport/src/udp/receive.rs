//! Arriving datagrams: from ip to the receive ring's records.

use super::counters::Counter;
use super::durable::{Block, bit};
use super::engine::Udp;
use super::live::due;
use super::merge::Placed;
use crate::addresses::{IP_HEADERS_MAX, hops_and_class, ip_addresses, is_unspecified, is_whole};
use crate::edge::Out;
use core::net::IpAddr;
use eft_arena::docket::BEHIND;
use eft_base::address::zone_of_nic;
use eft_base::checksum::Checksum;
use eft_base::wire::{PROTOCOL_UDP, UdpHeader};
use eft_base::{PacketRef, WireAddress};
use eft_channel::Copied;
use eft_channel::socket::{DatagramHeader, Opt, SEGMENTS_MAX, stamping};
use eft_component::{Context, Outbox};
use eft_messages::transport::{IpToTransport, TransportToIp};
use zerocopy::{FromBytes, IntoBytes};

pub(super) const HEADERS_MAX: usize = IP_HEADERS_MAX + size_of::<UdpHeader>();

/// Both ends, as we see them, and fields of the IP header.
#[derive(Clone, Copy, Hash)]
pub(super) struct Ends {
    pub local: WireAddress,
    pub remote: WireAddress,
    pub local_port: u16,
    pub remote_port: u16,
}

impl Ends {
    pub fn is_ipv6(&self) -> bool {
        IpAddr::from(self.remote).is_ipv6()
    }
}

#[derive(Clone, Copy)]
struct Datagram {
    ends: Ends,
    /// The payload.
    data: PacketRef,
    /// The payload was verified in our buffer, and is taken from here in it.
    in_scratch: Option<usize>,
    ttl: u8,
    tos: u8,
    /// The number of the NIC that it came by.
    interface: u8,
}

impl Datagram {
    fn header(&self) -> DatagramHeader {
        DatagramHeader {
            len: self.data.len,
            port: self.ends.remote_port,
            local_port: self.ends.local_port,
            address: self.ends.remote,
            local: self.ends.local,
            ttl: self.ttl,
            tos: self.tos,
            interface: match self.interface {
                u8::MAX => 0,
                nic => zone_of_nic(nic),
            },
            ..DatagramHeader::default()
        }
    }

    /// The datagrams that were merged into this one, which have `segment_size` bytes each but the last, or itself if there is
    /// none of that.
    fn pieces(self, segment_size: u16) -> impl Iterator<Item = Datagram> {
        let whole = self.data.len;
        let size = match segment_size {
            0 => whole.max(1),
            size => size.into(),
        };
        (0..whole.div_ceil(size).max(1)).map(move |n| {
            let at = n * size;
            let data = PacketRef { len: size.min(whole - at), ..self.data.skip(at) };
            Datagram { data, in_scratch: self.in_scratch.map(|begin| begin + at as usize), ..self }
        })
    }
}

impl Udp {
    /// Handles a packet from ip, of one datagram or of several that were merged on their way.
    pub(super) fn receive_delivered(&mut self, cx: &Context, message: IpToTransport, out: &mut Outbox<Out>) {
        if let IpToTransport::Deliver { packet, header_len, checksum_ok, segment_size, zone, interface } =
            message
        {
            let offload = (checksum_ok, segment_size);
            let answer = self.receive_packet(cx, packet, header_len, offload, (zone, interface));
            out.push(Out::Ip(answer));
        }
    }

    /// Returns what ip is to do with the packet.
    fn receive_packet(
        &mut self,
        cx: &Context,
        packet: PacketRef,
        header_len: u16,
        (checksum_ok, segment_size): (bool, u16),
        (zone, interface): (u16, u8),
    ) -> TransportToIp {
        let done = TransportToIp::Done { packet };
        let datagram = match self.parse(cx, packet, header_len, checksum_ok, (zone, interface)) {
            Ok(datagram) => datagram,
            Err(counter) => {
                cx.count(counter);
                return done;
            }
        };
        if segment_size != 0 && datagram.data.len as usize > segment_size as usize * SEGMENTS_MAX {
            cx.count(Counter::DropMalformed);
            return done;
        }
        if self.is_group(datagram.ends.local) {
            for piece in datagram.pieces(segment_size) {
                self.receive_for_all(cx, &piece);
            }
            return done;
        }
        let Some(i) = self.find(&datagram.ends) else {
            cx.count(Counter::DropNoSocket);
            return TransportToIp::Refuse { packet };
        };
        for piece in datagram.pieces(segment_size) {
            self.put(cx, i, &piece);
        }
        done
    }

    fn parse(
        &mut self,
        cx: &Context,
        packet: PacketRef,
        header_len: u16,
        checksum_ok: bool,
        (zone, interface): (u16, u8),
    ) -> Result<Datagram, Counter> {
        let ip_len = header_len as usize;
        let headers = ip_len + size_of::<UdpHeader>();
        if headers > HEADERS_MAX || (packet.len as usize) < headers {
            return Err(Counter::DropMalformed);
        }
        let mut bytes = [0; IP_HEADERS_MAX + BEHIND];
        let bytes = &mut bytes[..(ip_len + BEHIND).min(packet.len as usize)];
        cx.memory.read(packet, bytes).ok_or(Counter::DropUnreadable)?;
        if !self.enter_packet(bytes) {
            return Err(Counter::DropFatal);
        }
        let (ip, udp) = bytes[..headers].split_at(ip_len);
        let (remote, local) = ip_addresses(ip, zone).ok_or(Counter::DropMalformed)?;
        if !is_whole(ip, packet.len) {
            return Err(Counter::DropMalformed);
        }
        let (ttl, tos) = hops_and_class(ip);
        let header = UdpHeader::read_from_bytes(udp).map_err(|_| Counter::DropMalformed)?;
        let length = header.length.get() as u32;
        let all = packet.skip(ip_len as u32);
        if length < size_of::<UdpHeader>() as u32 || length > all.len {
            return Err(Counter::DropMalformed);
        }
        let data = PacketRef {
            len: length - size_of::<UdpHeader>() as u32,
            ..all.skip(size_of::<UdpHeader>() as u32)
        };
        // Zero means that the sender did not sum (RFC 768); IPv6 does not allow that (RFC 8200 §8.1).
        let summed = header.checksum.get() != 0 || ip[0] >> 4 == 6;
        let verify = !checksum_ok && summed;
        if verify {
            self.verify(cx, data, udp, remote, local)?;
        }
        Ok(Datagram {
            ends: Ends {
                local,
                remote,
                local_port: header.destination_port.get(),
                remote_port: header.source_port.get(),
            },
            data,
            in_scratch: verify.then_some(0),
            ttl,
            tos,
            interface,
        })
    }

    /// Copies the payload into our buffer and verifies it there, so that the verified bytes are the
    /// ones used.
    fn verify(
        &mut self,
        cx: &Context,
        data: PacketRef,
        udp: &[u8],
        source: WireAddress,
        destination: WireAddress,
    ) -> Result<(), Counter> {
        let copy = self.scratch.get_mut(..data.len as usize).ok_or(Counter::DropMalformed)?;
        cx.memory.read(data, copy).ok_or(Counter::DropUnreadable)?;
        let sum = Checksum::new()
            .add_pseudo_header(source.into(), destination.into(), PROTOCOL_UDP, udp.len() as u32 + data.len)
            .add_bytes(udp)
            .add_bytes(copy);
        match sum.finish() {
            0 => Ok(()),
            _ => Err(Counter::DropChecksum),
        }
    }

    /// The socket that fits best: a connected one before one with our address before a wildcard;
    /// among equals (SO_REUSEPORT) the sender's hash decides.
    pub(super) fn find(&self, ends: &Ends) -> Option<u32> {
        let candidates = self.ports.get(&ends.local_port)?;
        let best = candidates.iter().filter_map(|i| fit(&self.blocks[*i], ends)).max()?;
        let mut equals = candidates.iter().copied().filter(|i| fit(&self.blocks[*i], ends) == Some(best));
        let count = equals.clone().count();
        match count {
            1 => equals.next(),
            _ => equals.nth((self.key.hash(b'U', ends) % count as u64) as usize),
        }
    }

    /// A broadcast, or a datagram to a group: every socket that fits and wants it gets a copy (RFC 1122 §4.1.3.5).
    fn receive_for_all(&mut self, cx: &Context, datagram: &Datagram) {
        let Datagram { ends, interface, .. } = datagram;
        let group = IpAddr::from(ends.local).is_multicast();
        let mut places = 0..;
        let mut nobody = true;
        // By place, since what a socket gets changes its block, and never which sockets a port has.
        while let Some(i) = places.next().and_then(|n| self.ports.get(&ends.local_port)?.get(n).copied()) {
            let gets = fit(&self.blocks[i], ends).is_some()
                && (!group || self.admits(i, *interface, ends.local, ends.remote));
            if gets {
                nobody = false;
                self.put(cx, i, datagram);
            }
        }
        if nobody {
            cx.count(Counter::DropNoSocket);
        }
    }

    /// Appends a record to a socket's ring, or drops the datagram.
    fn put(&mut self, cx: &Context, i: u32, datagram: &Datagram) {
        let Some(page) = &self.live[i as usize].page else {
            return cx.count(Counter::DropNoDomain);
        };
        let block = &mut self.blocks[i];
        let taken = page.receive_taken();
        if taken < block.receive_taken || taken > block.receive_end {
            cx.count(Counter::HostilePages);
            block.flags |= bit::DEAD;
            self.publish(i);
            return self.mark(i, due::HANG_UP);
        }
        block.receive_taken = taken;
        let mut header = datagram.header();
        header.stamps = u8::from(page.option(Opt::Timestamping) & stamping::RX_ANY != 0);
        let (newest, len) = (&self.live[i as usize].open_record, datagram.data.len as usize);
        let record = Placed::of(newest, self.turn, block.receive_end, &header, page);
        let limit = match page.option(Opt::ReceiveBuffer) as usize {
            0 => page.receive_len(),
            n => n.clamp(4096, page.receive_len()),
        };
        if record.end - taken > limit as u64 {
            return cx.count(Counter::DropRingFull);
        }
        if let Some(at) = datagram.in_scratch {
            page.write_receive(record.payload, &self.scratch[at..at + len]);
        } else {
            let source = cx.memory.resolve(datagram.data);
            let copied = source.map(|(from, at)| page.fill_receive(record.payload, from, at, len));
            let Some(copied @ (Copied::Well | Copied::Again)) = copied else {
                return cx.count(Counter::DropUnreadable);
            };
            cx.add(Counter::CopiedAgain, u64::from(copied == Copied::Again));
        }
        page.write_receive(record.newest.at, record.newest.header.as_bytes());
        if header.stamps != 0 {
            page.write_receive(record.end - 8, &cx.now.as_nanos().to_ne_bytes());
        }
        block.receive_end = record.end;
        page.set_receive_end(block.receive_end);
        cx.count(Counter::ReceivedDatagrams);
        cx.add(Counter::Merged, u64::from(record.newest.count > 1));
        cx.add(Counter::ReceivedBytes, len as u64);
        self.live[i as usize].open_record = Some(record.newest);
        self.mark_input(i);
    }
}

/// How well a socket fits a datagram; `None` if not at all.
fn fit(block: &Block, ends: &Ends) -> Option<u32> {
    let mut score = 0;
    if block.has(bit::DEAD) || block.has(bit::ORPHAN) {
        return None;
    }
    if block.has(bit::CONNECTED) {
        if block.remote != ends.remote || block.remote_port != ends.remote_port {
            return None;
        }
        score += 2;
    }
    if !is_unspecified(block.local) {
        if block.local != ends.local {
            return None;
        }
        score += 1;
    } else if !block.reach().covers(ends.local) {
        return None;
    }
    Some(score)
}

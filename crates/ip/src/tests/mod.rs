//! The engine with plain messages: a bench that plays NIC, filter and transports.

mod arriving;
mod autoconf;
mod configuring;
mod dhcp;
mod fatal;
mod fatal_others;
mod granting;
mod groups;
mod instances;
mod ipv6;
mod leaving;
mod rebirth;
mod redirects;
mod rejecting;
mod resolving;
mod wild;
mod wishes;

use crate::{Counter, DOCKET_LEN, FromPeer, Ip, IpConfig, ToPeer, running_input};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::checksum::Checksum;
use eft_base::wire::*;
use eft_base::{Instant, MacAddress, PacketRef, PoolId, Random, RequestId};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, Segment};
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Configure, Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, IpToFilter, Judgement};
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_SLOT_LEN, FrameDescriptor, IpToNic, NicToIp, PACKET_SLOT_LEN};
use eft_messages::transport::{
    IpToTransport, SEND_DONT_FRAGMENT, SEND_SLOT_LEN, SendDescriptor, TRANSPORT_HEADER_MAX, TransportToIp,
};
use std::time::Duration;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const FRAMES: PoolId = PoolId(1);
const PACKETS: PoolId = PoolId(2);
const NIC: PoolId = PoolId(3);
const HEADERS: PoolId = PoolId(4);
const PAYLOAD: PoolId = PoolId(5);

const US: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const THEM: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
const OUR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const THEIR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const CONFIG: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\"]\n\
    [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.77.0.1\"\n";
const PEERS: [ComponentId; 4] =
    [ComponentId::TCP, ComponentId::UDP, ComponentId::FILTER, ComponentId::nic(0)];
const SLOT: usize = 70000;

struct Bench {
    ip: Ip,
    memory: Memory,
    status: Status,
    random: Random,
    now: Instant,
    out: Outbox<ToPeer>,
    nic: Pool,
    headers: Pool,
    payload: Pool,
}

impl Bench {
    /// Neither configured nor connected.
    fn raw(with_filter: bool) -> Bench {
        Bench::raw_after(Segment::heap(DOCKET_LEN), with_filter)
    }

    /// The same for the successor of one that recorded in `docket` what it handled.
    fn raw_after(docket: Segment, with_filter: bool) -> Bench {
        let pool = |id, slots: usize, len: usize| Pool::new(id, Segment::heap(slots * len), len);
        let frames = pool(FRAMES, 128, FRAME_SLOT_LEN);
        let packets = pool(PACKETS, 8, PACKET_SLOT_LEN);
        let nic = pool(NIC, 160, SLOT);
        let headers = pool(HEADERS, 512, SEND_SLOT_LEN);
        let payload = pool(PAYLOAD, 2, SLOT);
        let mut memory = Memory::new();
        for p in [&frames, &packets, &nic, &headers, &payload] {
            memory.insert(p.id(), p.view().clone());
        }
        Bench {
            ip: Ip::open(docket, frames, packets, IpConfig { with_filter, seed: 9 }),
            memory,
            status: Status::heap(),
            random: Random::new(1),
            now: Instant::from_millis(1),
            out: Outbox::with_room(&PEERS, 1024),
            nic,
            headers,
            payload,
        }
    }

    /// Ready to work, with a device that checks and segments.
    fn new(with_filter: bool) -> Bench {
        Bench::raw(with_filter).begin()
    }

    fn begin(mut self) -> Bench {
        let b = &mut self;
        b.configure(CONFIG);
        for peer in PEERS {
            b.reborn(peer);
        }
        b.link(true, 60000);
        let announcements = b.drain();
        b.confirm(&announcements);
        self
    }

    /// As `new`, and the neighbour is known.
    fn met(with_filter: bool) -> Bench {
        Bench::new(with_filter).meet()
    }

    fn meet(mut self) -> Bench {
        let b = &mut self;
        b.arp(ARP_REQUEST, THEIR_MAC, THEM, US);
        let reply = b.drain();
        b.confirm(&reply);
        if let [ToPeer::Nic(0, IpToNic::Send { .. }), ToPeer::Nic(0, IpToNic::Done { packet })] = reply[..] {
            b.nic.free(packet);
        }
        self
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut Ip, &mut Context, &mut Outbox<ToPeer>) -> T) -> T {
        let mut cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        let result = f(&mut self.ip, &mut cx, &mut self.out);
        self.ip.flush(&mut cx, &mut self.out);
        result
    }

    fn configure(&mut self, text: &str) {
        let event = Configure { key: "ip".into(), value: text.into() };
        self.with(|ip, cx, out| ip.event(cx, event, out));
    }

    fn reborn(&mut self, peer: ComponentId) {
        self.with(|ip, cx, out| ip.peer_reborn(cx, peer, out));
    }

    fn nic_says(&mut self, m: NicToIp) {
        self.with(|ip, cx, out| ip.receive(cx, ComponentId::nic(0), FromPeer::Nic(m), out));
    }

    fn transport_says(&mut self, peer: ComponentId, m: TransportToIp) {
        self.with(|ip, cx, out| ip.receive(cx, peer, FromPeer::Transport(m), out));
    }

    /// The transports give back what they were given.
    fn give_back(&mut self, given: &[ToPeer]) {
        for message in given {
            if let ToPeer::Transport(peer, IpToTransport::Deliver { packet, .. }) = *message {
                self.transport_says(peer, TransportToIp::Done { packet });
            }
        }
        self.drain();
    }

    fn verdict(&mut self, request: RequestId, pass: bool) {
        self.judgement(request, if pass { Judgement::Pass } else { Judgement::Drop });
    }

    fn judgement(&mut self, request: RequestId, judgement: Judgement) {
        let m = FromPeer::Filter(FilterToIp::Verdict { request, judgement });
        self.with(|ip, cx, out| ip.receive(cx, ComponentId::FILTER, m, out));
    }

    fn link(&mut self, checksum: bool, segment_max: u32) {
        self.nic_says(NicToIp::Link { mac: OUR_MAC, mtu: 1500, up: true, checksum, segment_max });
    }

    /// Lets time pass, deadline by deadline.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(d) = self.ip.deadline().filter(|d| *d <= end) {
            self.now = self.now.max(d);
            self.with(|ip, cx, out| ip.expire(cx, out));
        }
        self.now = end;
    }

    fn drain(&mut self) -> Vec<ToPeer> {
        let all = self.out.drain().collect();
        for p in PEERS {
            self.out.set_room(p, 1024, 1024);
        }
        all
    }

    fn count(&self, c: Counter) -> u64 {
        self.status.get(FRAME_COUNTERS.len() + c as usize)
    }

    /// Puts a frame into the NIC's pool and hands it over.
    fn arrive(&mut self, frame: &[u8]) -> PacketRef {
        let slot = self.nic.allocate().unwrap();
        assert!(self.nic.write(slot, 0, frame));
        let packet = PacketRef { len: frame.len() as u32, ..slot };
        self.nic_says(NicToIp::Received { packet, checksum_ok: true, segment_size: 0 });
        packet
    }

    fn arp(&mut self, operation: u16, mac: MacAddress, from: Ipv4Addr, to: Ipv4Addr) -> PacketRef {
        let p = ArpPacket {
            hardware_type: 1.into(),
            protocol_type: ETHERTYPE_IPV4.into(),
            hardware_len: 6,
            protocol_len: 4,
            operation: operation.into(),
            sender_mac: mac,
            sender_ip: from.octets(),
            target_mac: MacAddress::default(),
            target_ip: to.octets(),
        };
        let f = ethernet(ETHERTYPE_ARP, p.as_bytes());
        self.arrive(&f)
    }

    /// A request descriptor in tcp's or udp's header pool, with `len` bytes of payload.
    fn descriptor(&mut self, d: &SendDescriptor) -> PacketRef {
        let slot = self.headers.allocate().unwrap();
        let fits = d.header_len as usize <= d.header.len() && d.payload_count as usize <= d.payload.len();
        let d = if fits && d.seal == 0 { &d.sealed() } else { d };
        assert!(self.headers.write(slot, 0, d.as_bytes()));
        slot
    }

    fn send(&mut self, peer: ComponentId, index: u32, d: &SendDescriptor) -> PacketRef {
        let descriptor = self.descriptor(d);
        let request = request(index);
        self.transport_says(peer, TransportToIp::Send { request, descriptor });
        descriptor
    }

    /// The frame that a `Send` describes, gathered as a device does; checksum offload done.
    fn frame(&self, m: &ToPeer) -> Vec<u8> {
        let ToPeer::Nic(0, IpToNic::Send { descriptor, .. }) = m else {
            panic!("no frame: {m:?}");
        };
        let d: FrameDescriptor = self.memory.read_value(*descriptor).unwrap();
        assert!(d.is_as_sealed());
        let mut bytes = d.header[..d.header_len as usize].to_vec();
        for r in &d.payload[..d.payload_count as usize] {
            let mut piece = vec![0; r.len as usize];
            self.memory.read(*r, &mut piece).unwrap();
            bytes.extend(piece);
        }
        if d.flags & FRAME_CHECKSUM != 0 {
            let start = d.checksum_start as usize;
            let sum = Checksum::new().add_bytes(&bytes[start..]).finish();
            let field = start + d.checksum_offset as usize;
            bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    /// The device took all frames of these messages.
    fn confirm(&mut self, messages: &[ToPeer]) {
        for m in messages {
            if let ToPeer::Nic(0, IpToNic::Send { request, .. }) = m {
                self.nic_says(NicToIp::Sent { request: *request, errno: 0 });
            }
        }
    }

    /// Nothing of ours is held any more.
    fn assert_idle(&self) {
        assert!(self.ip.lanes.iter().all(|lane| lane.resolving == 0));
        assert_eq!(self.ip.frames.available(), self.ip.frames.slots());
        assert_eq!(self.ip.packets.available(), self.ip.packets.slots());
        assert!(self.ip.transmissions.is_empty() && self.ip.arrivals.is_empty());
        assert!(self.ip.datagrams.is_empty());
    }
}

fn request(index: u32) -> RequestId {
    RequestId { index, generation: 1 }
}

fn ethernet(ethertype: u16, body: &[u8]) -> Vec<u8> {
    let h = EthernetHeader { destination: OUR_MAC, source: THEIR_MAC, ethertype: ethertype.into() };
    let mut f = h.as_bytes().to_vec();
    f.extend(body);
    f
}

/// An IPv4 packet in a frame from THEM to US. `fragment` is the flags and offset field.
fn packet(protocol: u8, fragment: u16, id: u16, body: &[u8]) -> Vec<u8> {
    let h = Ipv4Header {
        version_ihl: 0x45,
        tos: 0,
        total_len: ((20 + body.len()) as u16).into(),
        id: id.into(),
        flags_fragment: fragment.into(),
        ttl: 64,
        protocol,
        checksum: 0.into(),
        source: THEM.octets(),
        destination: US.octets(),
    };
    let mut p = h.as_bytes().to_vec();
    p.extend(body);
    let mut f = ethernet(ETHERTYPE_IPV4, &p);
    fix_header(&mut f);
    f
}

/// Makes the IPv4 header's checksum right.
fn fix_header(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let n = 14 + (frame[14] & 15) as usize * 4;
    let sum = Checksum::new().add_bytes(&frame[14..n]).finish();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let h = UdpHeader {
        source_port: from.into(),
        destination_port: to.into(),
        length: ((8 + payload.len()) as u16).into(),
        checksum: 0.into(),
    };
    let mut p = h.as_bytes().to_vec();
    p.extend(payload);
    p
}

fn icmp(kind: u8, code: u8, rest: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let h = IcmpHeader { kind, code, checksum: 0.into(), rest };
    let mut p = h.as_bytes().to_vec();
    p.extend(payload);
    let sum = Checksum::new().add_bytes(&p).finish();
    p[2..4].copy_from_slice(&sum.to_be_bytes());
    p
}

/// What udp asks to send: a header, and `len` bytes at `offset` of the first payload slot.
fn datagram(destination: Ipv4Addr, offset: u32, len: u32) -> SendDescriptor {
    let mut d = SendDescriptor::new_zeroed();
    d.source = IpAddr::V4(US).into();
    d.destination = IpAddr::V4(destination).into();
    d.protocol = PROTOCOL_UDP;
    let pseudo = Checksum::new().add_pseudo_header(US.into(), destination.into(), 17, 8 + len);
    let h = UdpHeader {
        source_port: 1000.into(),
        destination_port: 53.into(),
        length: ((8 + len) as u16).into(),
        checksum: pseudo.partial().into(),
    };
    d.header[..8].copy_from_slice(h.as_bytes());
    d.header_len = 8;
    d.checksum_offset = 6;
    if len > 0 {
        d.payload_count = 1;
        d.payload[0] = PacketRef { pool: PAYLOAD, generation: 0, slot: 0, offset, len };
    }
    d
}

/// What tcp asks to send.
fn segment(destination: Ipv4Addr, len: u32, segment_size: u16) -> SendDescriptor {
    let mut d = datagram(destination, 0, len);
    d.protocol = PROTOCOL_TCP;
    d.segment_size = segment_size;
    d.flags = 1;
    d.header_len = 20;
    d.header = [0; TRANSPORT_HEADER_MAX];
    d.header[12] = 0x50;
    d.header[13] = TCP_ACK;
    d.checksum_offset = 16;
    let pseudo = Checksum::new().add_pseudo_header(US.into(), destination.into(), 6, 20 + len);
    d.header[16..18].copy_from_slice(&pseudo.partial().to_be_bytes());
    d
}

/// Whether the transport checksum of an unfragmented frame is right.
fn checksum_holds(frame: &[u8]) -> bool {
    let (h, _) = Ipv4Header::ref_from_prefix(&frame[14..]).unwrap();
    let body = &frame[34..14 + h.total_len.get() as usize];
    let (s, d) = (Ipv4Addr::from(h.source), Ipv4Addr::from(h.destination));
    let sum = Checksum::new().add_pseudo_header(s.into(), d.into(), h.protocol, body.len() as u32);
    sum.add_bytes(body).finish() == 0
}

fn sent(peer: ComponentId, index: u32, errno: i32) -> ToPeer {
    let request = request(index);
    ToPeer::Transport(peer, IpToTransport::Sent { request, errno })
}

fn done(packet: PacketRef) -> ToPeer {
    ToPeer::Nic(0, IpToNic::Done { packet })
}

/// The request id of an `Ask`.
fn asked(m: &ToPeer) -> RequestId {
    match m {
        ToPeer::Filter(IpToFilter::Ask { request, .. }) => *request,
        m => panic!("no question: {m:?}"),
    }
}

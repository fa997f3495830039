//! The wire between two devices: delay, rate, loss, repetition, reordering, corruption.

use crate::device::{End, WireFrame};
use eft_base::checksum::Checksum;
use eft_base::wire::{
    EthernetHeader, Ipv4Header, Ipv6Header, PROTOCOL_TCP, PROTOCOL_UDP, TCP_FIN, TCP_PSH, TcpHeader,
    UdpHeader,
};
use eft_base::{Instant, Random};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use zerocopy::FromBytes;

/// How the wire behaves, in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    pub delay: Duration,
    /// The most additional delay of a frame, by which frames may overtake others.
    pub jitter: Duration,
    pub loss: f64,
    /// The share of frames that come `late`, and are overtaken meanwhile.
    pub reorder: f64,
    pub late: Duration,
    pub duplicate: f64,
    /// The share of frames with a flipped bit; only frames whose checksum is verified on arrival.
    pub corrupt: f64,
    /// Bytes per second; 0: unlimited.
    pub rate: u64,
    /// Most bytes that wait for a wire with a rate: further frames are lost. 0: unlimited.
    pub queue: u64,
    /// The largest IP packet that passes: larger ones are lost, and nobody is told. 0: all pass.
    pub mtu: u16,
    /// Large segments are cut into wire segments, as on an Ethernet; a TAP does not cut them.
    pub cut: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            delay: Duration::from_micros(50),
            jitter: Duration::ZERO,
            loss: 0.0,
            reorder: 0.0,
            late: Duration::ZERO,
            duplicate: 0.0,
            corrupt: 0.0,
            rate: 0,
            queue: 0,
            mtu: 0,
            cut: false,
        }
    }
}

/// A wire with a device at each end.
pub struct Link {
    pub conditions: Conditions,
    pub ends: [Rc<RefCell<End>>; 2],
    /// By arrival, then by order of sending: the side it arrives at, and the frame.
    flying: BTreeMap<(Instant, u64), (usize, WireFrame)>,
    order: u64,
    /// When each direction has sent its waiting frames.
    busy_until: [Instant; 2],
    /// The most bytes of either direction that ever waited for a rate; whoever measures sets it back.
    pub most_waiting: u64,
    pub delivered: u64,
    pub lost: u64,
}

impl Link {
    pub fn new(conditions: Conditions, ends: [Rc<RefCell<End>>; 2]) -> Link {
        Link {
            conditions,
            ends,
            flying: BTreeMap::new(),
            order: 0,
            busy_until: [Instant::ZERO; 2],
            most_waiting: 0,
            delivered: 0,
            lost: 0,
        }
    }

    /// When the next frame arrives.
    pub fn deadline(&self) -> Option<Instant> {
        self.flying.keys().next().map(|(at, _)| *at)
    }

    /// Takes what the devices want to send. True for the sides whose devices have room again.
    pub fn take(&mut self, now: Instant, random: &mut Random) -> [bool; 2] {
        let mut took = [false; 2];
        for (side, took) in took.iter_mut().enumerate() {
            let frames: Vec<WireFrame> = self.ends[side].borrow_mut().outgoing.drain(..).collect();
            *took = !frames.is_empty();
            for frame in frames {
                if self.conditions.cut && frame.segment_size > 0 {
                    for piece in cut(&frame) {
                        self.launch(now, side, piece, random);
                    }
                } else {
                    self.launch(now, side, frame, random);
                }
            }
        }
        took
    }

    fn launch(&mut self, now: Instant, side: usize, mut frame: WireFrame, random: &mut Random) {
        let c = self.conditions;
        if c.mtu > 0 && frame.bytes.len() > c.mtu as usize + size_of::<EthernetHeader>() {
            self.lost += 1;
            return;
        }
        let mut at = now.max(self.busy_until[side]);
        let waiting = at.saturating_since(now).as_nanos() as u64 / 1000 * c.rate / 1_000_000;
        if c.queue > 0 && waiting + frame.bytes.len() as u64 > c.queue {
            self.lost += 1;
            return;
        }
        self.most_waiting = self.most_waiting.max(waiting);
        if let Some(nanos) = (frame.bytes.len() as u64 * 1_000_000_000).checked_div(c.rate) {
            at += Duration::from_nanos(nanos);
            self.busy_until[side] = at;
        }
        if random.chance(c.loss) {
            self.lost += 1;
            return;
        }
        if !frame.checksum_ok && random.chance(c.corrupt) {
            // Behind the Ethernet header, whose own check sequence is not simulated.
            let at = 14 + random.below(frame.bytes.len() as u64 - 14) as usize;
            frame.bytes[at] ^= 1 << random.below(8);
        }
        let copies = 1 + random.chance(c.duplicate) as usize;
        for _ in 0..copies {
            let jitter = Duration::from_nanos(random.below(c.jitter.as_nanos() as u64));
            let late = if random.chance(c.reorder) { c.late } else { Duration::ZERO };
            self.order += 1;
            let key = (at + c.delay + jitter + late, self.order);
            self.flying.insert(key, (1 - side, frame.clone()));
        }
    }

    /// Sends a foreign frame, undamaged, to `side`.
    pub fn inject(&mut self, now: Instant, side: usize, bytes: Vec<u8>) {
        self.order += 1;
        let frame = WireFrame { bytes, segment_size: 0, checksum_ok: false };
        self.flying.insert((now + self.conditions.delay, self.order), (side, frame));
    }

    /// Hands over what has arrived. True for the sides that got something.
    pub fn deliver(&mut self, now: Instant) -> [bool; 2] {
        let mut got = [false; 2];
        while let Some(entry) = self.flying.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (side, frame) = entry.remove();
            self.ends[side].borrow_mut().incoming.push_back(frame);
            self.delivered += 1;
            got[side] = true;
        }
        got
    }
}

/// Cuts a frame of several datagrams or a large TCP segment as a device does: each piece with its own headers and checksums.
fn cut(frame: &WireFrame) -> Vec<WireFrame> {
    let eth = size_of::<EthernetHeader>();
    let Some(ip) = IpHeader::read(&frame.bytes[eth..]) else {
        return Vec::new();
    };
    match ip.protocol {
        PROTOCOL_UDP => cut_datagrams(frame, &ip),
        _ => cut_segment(frame, &ip),
    }
}

fn cut_datagrams(frame: &WireFrame, ip: &IpHeader) -> Vec<WireFrame> {
    let eth = size_of::<EthernetHeader>();
    let udp_at = eth + ip.len;
    let (headers, data) = frame.bytes.split_at(udp_at + size_of::<UdpHeader>());
    let cut = data.chunks(frame.segment_size as usize).enumerate().map(|(i, piece)| {
        let mut bytes = [headers, piece].concat();
        let len = bytes.len() - eth;
        ip.write_piece(&mut bytes[eth..udp_at], i as u16, len);
        let len = (bytes.len() - udp_at) as u16;
        let (udp, _) = UdpHeader::mut_from_prefix(&mut bytes[udp_at..]).expect("it is as long as headers");
        (udp.length, udp.checksum) = (len.into(), 0.into());
        let sum = Checksum::new()
            .add_pseudo_header(ip.source, ip.destination, PROTOCOL_UDP, len.into())
            .add_bytes(&bytes[udp_at..])
            .finish();
        // RFC 768: zero would mean "no checksum".
        let sum = if sum == 0 { 0xffff } else { sum };
        bytes[udp_at + 6..udp_at + 8].copy_from_slice(&sum.to_be_bytes());
        WireFrame { bytes, segment_size: 0, checksum_ok: false }
    });
    cut.collect()
}

fn cut_segment(frame: &WireFrame, ip: &IpHeader) -> Vec<WireFrame> {
    let eth = size_of::<EthernetHeader>();
    let tcp_at = eth + ip.len;
    let Ok((tcp, _)) = TcpHeader::read_from_prefix(&frame.bytes[tcp_at..]) else {
        return Vec::new();
    };
    let data_at = tcp_at + tcp.header_len();
    let (headers, data) = frame.bytes.split_at(data_at);
    let pieces: Vec<&[u8]> = data.chunks(frame.segment_size as usize).collect();
    let last = pieces.len() - 1;
    let mut offset = 0;
    let mut cut = Vec::new();
    for (i, piece) in pieces.into_iter().enumerate() {
        let mut bytes = [headers, piece].concat();
        let len = bytes.len() - eth;
        ip.write_piece(&mut bytes[eth..tcp_at], i as u16, len);
        let (t, _) = TcpHeader::mut_from_prefix(&mut bytes[tcp_at..]).expect("as above");
        t.sequence = tcp.sequence.get().wrapping_add(offset).into();
        if i < last {
            t.flags &= !(TCP_FIN | TCP_PSH);
        }
        t.checksum = 0.into();
        let len = (bytes.len() - tcp_at) as u32;
        let sum = Checksum::new()
            .add_pseudo_header(ip.source, ip.destination, PROTOCOL_TCP, len)
            .add_bytes(&bytes[tcp_at..])
            .finish();
        bytes[tcp_at + 16..tcp_at + 18].copy_from_slice(&sum.to_be_bytes());
        cut.push(WireFrame { bytes, segment_size: 0, checksum_ok: false });
        offset += piece.len() as u32;
    }
    cut
}

/// The fields of an IP header of either version that a segmenting device needs.
struct IpHeader {
    len: usize,
    /// Of what follows.
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    /// IPv4's identification.
    id: Option<u16>,
}

impl IpHeader {
    fn read(bytes: &[u8]) -> Option<IpHeader> {
        if bytes.first()? >> 4 == 6 {
            let (h, _) = Ipv6Header::read_from_prefix(bytes).ok()?;
            let (source, destination) = (IpAddr::from(h.source), IpAddr::from(h.destination));
            let (len, protocol) = (size_of::<Ipv6Header>(), h.next_header);
            return Some(IpHeader { len, protocol, source, destination, id: None });
        }
        let (h, _) = Ipv4Header::read_from_prefix(bytes).ok()?;
        let (source, destination) = (IpAddr::from(h.source), IpAddr::from(h.destination));
        let (len, protocol) = (h.header_len(), h.protocol);
        Some(IpHeader { len, protocol, source, destination, id: Some(h.id.get()) })
    }

    /// Makes the header that of piece `i`, a packet of `len` bytes.
    fn write_piece(&self, header: &mut [u8], i: u16, len: usize) {
        match self.id {
            None => {
                let (h, _) = Ipv6Header::mut_from_prefix(header).expect("as read");
                h.payload_len = ((len - self.len) as u16).into();
            }
            Some(id) => {
                let (h, _) = Ipv4Header::mut_from_prefix(header).expect("as read");
                h.total_len = (len as u16).into();
                h.id = id.wrapping_add(i).into();
                h.checksum = 0.into();
                let sum = Checksum::new().add_bytes(header).finish();
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

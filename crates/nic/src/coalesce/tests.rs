//! What may be merged and what may not, and that nothing is changed by it.

use super::{Arrived, Coalescer, Fate};
use eft_base::checksum::Checksum;
use eft_base::wire::{EthernetHeader, IPV4_DONT_FRAGMENT, Ipv4Header, Ipv6Header, PROTOCOL_TCP, TcpHeader};
use eft_base::wire::{TCP_ACK, TCP_ECE, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TCP_URG};
use eft_base::{PacketRef, PoolId};
use eft_channel::{Pool, Segment};
use eft_component::ReceivedFrame;
use zerocopy::{FromZeros, IntoBytes};

const SLOT: usize = 17 * 4096;
const SIZE: usize = 1000;

/// A segment as a peer would send it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    v6: bool,
    port: u16,
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    window: u16,
    urgent: u16,
    options: [u8; 12],
    tos: u8,
    hops: u8,
    id: u16,
    dont_fragment: bool,
    pub payload: Vec<u8>,
    bad_sum: bool,
    verified: bool,
}

impl Sent {
    /// The `n`th of a stream.
    pub fn nth(n: usize) -> Sent {
        let first = Sent {
            v6: false,
            port: 4000,
            sequence: 0xffff_fc00,
            acknowledgment: 7,
            flags: TCP_ACK,
            window: 500,
            urgent: 0,
            options: [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8],
            tos: 0,
            hops: 64,
            id: 65535,
            dont_fragment: false,
            payload: (0..SIZE).map(|i| (n * 31 + i) as u8).collect(),
            bad_sum: false,
            verified: false,
        };
        first.at(n, SIZE)
    }

    /// As the `n`th of segments of so many bytes.
    pub fn at(self, n: usize, size: usize) -> Sent {
        let sequence = self.sequence.wrapping_add((n * size) as u32);
        Sent { sequence, id: self.id.wrapping_add(n as u16), ..self }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut tcp = TcpHeader::new_zeroed();
        tcp.source_port = self.port.into();
        tcp.destination_port = 80.into();
        tcp.sequence = self.sequence.into();
        tcp.acknowledgment = self.acknowledgment.into();
        tcp.data_offset = 8 << 4;
        tcp.flags = self.flags;
        tcp.window = self.window.into();
        tcp.urgent = self.urgent.into();
        let mut segment = [tcp.as_bytes(), &self.options, &self.payload].concat();
        let (ethertype, ip) = if self.v6 { self.ipv6(&mut segment) } else { self.ipv4(&mut segment) };
        let mut ethernet = EthernetHeader::new_zeroed();
        ethernet.ethertype = ethertype.into();
        [ethernet.as_bytes(), &ip, &segment].concat()
    }

    fn ipv4(&self, segment: &mut [u8]) -> (u16, Vec<u8>) {
        let mut ip = Ipv4Header::new_zeroed();
        ip.version_ihl = 0x45;
        ip.tos = self.tos;
        ip.total_len = (20 + segment.len() as u16).into();
        ip.id = self.id.into();
        ip.flags_fragment = if self.dont_fragment { IPV4_DONT_FRAGMENT } else { 0 }.into();
        ip.ttl = self.hops;
        ip.protocol = PROTOCOL_TCP;
        (ip.source, ip.destination) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        ip.checksum = Checksum::new().add_bytes(ip.as_bytes()).finish().into();
        self.sum(segment, [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        (0x0800, ip.as_bytes().to_vec())
    }

    fn ipv6(&self, segment: &mut [u8]) -> (u16, Vec<u8>) {
        let mut ip = Ipv6Header::new_zeroed();
        ip.version_class_flow = (6 << 28 | u32::from(self.tos) << 20).into();
        ip.payload_len = (segment.len() as u16).into();
        ip.next_header = PROTOCOL_TCP;
        ip.hop_limit = self.hops;
        (ip.source, ip.destination) = ([1; 16], [2; 16]);
        self.sum(segment, [1; 16].into(), [2; 16].into());
        (0x86dd, ip.as_bytes().to_vec())
    }

    fn sum(&self, segment: &mut [u8], source: std::net::IpAddr, destination: std::net::IpAddr) {
        let sum = Checksum::new()
            .add_pseudo_header(source, destination, PROTOCOL_TCP, segment.len() as u32)
            .add_bytes(segment)
            .finish();
        segment[16..18].copy_from_slice(&(sum ^ u16::from(self.bad_sum)).to_be_bytes());
    }
}

/// What ip gets: bytes, whether the checksum is known to be right, and the size of segments.
type Got = (Vec<u8>, bool, u16);

/// Gives frames to a coalescer as the engine does.
struct Device {
    pool: Pool,
    coalescer: Coalescer,
    got: Vec<Got>,
}

impl Device {
    fn new() -> Device {
        let pool = Pool::new(PoolId(1), Segment::heap(16 * SLOT), SLOT);
        Device { pool, coalescer: Coalescer::new(), got: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8], checksum_ok: bool, segment_size: u16) {
        let slot = self.pool.allocate().expect("a slot");
        assert!(self.pool.write(slot, 0, bytes));
        let frame = ReceivedFrame { len: bytes.len() as u32, checksum_ok, segment_size };
        let arrived = Arrived { slot, frame };
        let fate = self.coalescer.put(&self.pool, arrived);
        self.deliver_closed();
        match fate {
            Fate::Merged(_) => assert!(self.pool.free(slot)),
            Fate::Kept => {}
            Fate::Passes => self.deliver(arrived),
        }
    }

    fn deliver_closed(&mut self) {
        while let Some(arrived) = self.coalescer.next(&self.pool) {
            self.deliver(arrived);
        }
    }

    fn deliver(&mut self, arrived: Arrived) {
        let packet = arrived.packet();
        let mut bytes = vec![0; packet.len as usize];
        let view = self.pool.view();
        view.segment.read(view.locate(packet).expect("in its slot"), &mut bytes).expect("there");
        self.got.push((bytes, arrived.frame.checksum_ok, arrived.frame.segment_size));
        assert!(self.pool.free(PacketRef { len: arrived.slot.len, ..packet }));
    }

    fn end(mut self) -> Vec<Got> {
        self.coalescer.close_all();
        self.deliver_closed();
        assert_eq!(self.pool.available(), self.pool.slots(), "each slot comes back once");
        self.got
    }
}

fn delivered(sent: &[Sent]) -> Vec<Got> {
    let mut device = Device::new();
    for s in sent {
        device.take(&s.bytes(), s.verified, 0);
    }
    device.end()
}

/// As one frame with all their payload would have been, but for its TCP checksum.
fn as_one(sent: &[Sent]) -> Vec<u8> {
    let mut one = sent[0].clone();
    one.payload = sent.iter().flat_map(|s| s.payload.clone()).collect();
    one.flags |= sent.last().expect("one").flags & TCP_PSH;
    without_sum(&one.bytes())
}

fn without_sum(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let at = if frame[12] == 8 { 14 + 20 } else { 14 + 40 };
    frame[at + 16..at + 18].fill(0);
    frame
}

fn stream(count: usize, v6: bool) -> Vec<Sent> {
    (0..count).map(|n| Sent { v6, ..Sent::nth(n) }).collect()
}

#[test]
fn segments_of_one_stream_become_one() {
    for (v6, verified) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut sent = stream(5, v6);
        sent.iter_mut().for_each(|s| s.verified = verified);
        sent[4].payload.truncate(300);
        sent[4].flags |= TCP_PSH;
        let got = delivered(&sent);
        assert_eq!(got.len(), 1, "v6 {v6}, verified {verified}");
        let (bytes, checksum_ok, size) = &got[0];
        assert_eq!(without_sum(bytes), as_one(&sent));
        assert!(*checksum_ok);
        assert_eq!(usize::from(*size), SIZE);
    }
}

#[test]
fn one_alone_passes_unchanged() {
    for s in [Sent::nth(0), Sent { bad_sum: true, ..Sent::nth(0) }, Sent { verified: true, ..Sent::nth(0) }] {
        assert_eq!(delivered(std::slice::from_ref(&s)), [(s.bytes(), s.verified, 0)]);
    }
}

#[test]
fn what_differs_is_not_merged() {
    type Change = fn(&mut Sent);
    let changes: [(&str, Change); 15] = [
        ("a gap", |s| s.sequence += 1),
        ("a repetition", |s| s.sequence = s.sequence.wrapping_sub(SIZE as u32)),
        ("another acknowledgment", |s| s.acknowledgment += 1),
        ("another window", |s| s.window += 1),
        ("another time stamp", |s| s.options[7] += 1),
        ("another class", |s| s.tos = 3),
        ("another hop limit", |s| s.hops -= 1),
        ("another identification", |s| s.id += 1),
        ("don't fragment", |s| s.dont_fragment = true),
        ("an echoed mark", |s| s.flags |= TCP_ECE),
        ("the end", |s| s.flags |= TCP_FIN),
        ("urgent data", |s| (s.flags, s.urgent) = (s.flags | TCP_URG, 1)),
        ("a wrong checksum", |s| s.bad_sum = true),
        ("a longer one", |s| s.payload.push(0)),
        ("none but an acknowledgment", |s| s.payload.clear()),
    ];
    for (what, change) in changes {
        let mut sent = [Sent::nth(0), Sent::nth(1)];
        change(&mut sent[1]);
        let got = delivered(&sent);
        let alone: Vec<(Vec<u8>, u16)> = got.iter().map(|(bytes, _, size)| (bytes.clone(), *size)).collect();
        assert_eq!(alone, sent.each_ref().map(|s| (s.bytes(), 0)), "{what}");
        assert!(!got[1].1, "{what}");
    }
}

#[test]
fn nothing_follows_a_short_or_a_pushed_one() {
    let mut sent = stream(3, false);
    sent[1].payload.truncate(999);
    sent[2].sequence -= 1;
    assert_eq!(delivered(&sent).len(), 2);
    let mut sent = stream(4, false);
    sent[1].flags |= TCP_PSH;
    let got = delivered(&sent);
    assert_eq!(got.len(), 2);
    assert_eq!(without_sum(&got[0].0), as_one(&sent[..2]));
    assert_eq!(without_sum(&got[1].0), as_one(&sent[2..]));
}

#[test]
fn a_wrong_checksum_of_the_first_one_stays_its_own() {
    let mut sent = stream(3, false);
    sent[0].bad_sum = true;
    let got = delivered(&sent);
    assert_eq!(got[0], (sent[0].bytes(), false, 0));
    assert_eq!(got.len(), 2);
    assert_eq!(without_sum(&got[1].0), as_one(&sent[1..]));
}

#[test]
fn identifications_count_unless_nothing_may_be_fragmented() {
    let mut sent = stream(3, false);
    for s in &mut sent {
        (s.id, s.dont_fragment) = (0, true);
    }
    assert_eq!(delivered(&sent).len(), 1);
}

#[test]
fn nothing_of_a_connection_overtakes_what_waits_and_no_other_frame_does() {
    for flags in [TCP_ACK, TCP_ACK | TCP_FIN, TCP_ACK | TCP_RST, TCP_SYN] {
        let mut sent = stream(2, false);
        sent.push(Sent { flags, payload: Vec::new(), ..Sent::nth(2) });
        let got = delivered(&sent);
        assert_eq!(without_sum(&got[0].0), as_one(&sent[..2]));
        assert_eq!(got[1].0, sent[2].bytes());
    }
    let mut device = Device::new();
    let (first, other) = (Sent::nth(0).bytes(), vec![0x55; 60]);
    device.take(&first, false, 0);
    device.take(&other, false, 0);
    assert_eq!(device.end(), [(first, false, 0), (other, false, 0)]);
}

#[test]
fn connections_that_take_turns_are_merged_each_and_the_ninth_pushes_out_the_first() {
    let of = |port, n| Sent { port, ..Sent::nth(n) };
    let turns =
        |ports: u16| -> Vec<Sent> { (0..3).flat_map(|n| (0..ports).map(move |port| of(port, n))).collect() };
    let got = delivered(&turns(8));
    assert_eq!(got.len(), 8);
    for (port, (bytes, ..)) in got.iter().enumerate() {
        assert_eq!(without_sum(bytes), as_one(&[0, 1, 2].map(|n| of(port as u16, n))));
    }
    assert_eq!(delivered(&turns(9)).len(), 27);
}

#[test]
fn it_grows_as_long_as_a_length_field_can_say() {
    let sent = stream(70, true);
    let got = delivered(&sent);
    let lengths: Vec<usize> = got.iter().map(|(bytes, ..)| bytes.len()).collect();
    assert_eq!(lengths, [86 + 65 * SIZE, 86 + 5 * SIZE]);
    let mut all: Vec<u8> = Vec::new();
    got.iter().for_each(|(bytes, ..)| all.extend(&bytes[86..]));
    assert_eq!(all, sent.iter().flat_map(|s| s.payload.clone()).collect::<Vec<u8>>());
}

#[test]
fn what_the_device_merged_goes_on() {
    let sent = stream(5, false);
    let mut device = Device::new();
    let mut first = sent[0].clone();
    first.payload = sent[..3].iter().flat_map(|s| s.payload.clone()).collect();
    device.take(&first.bytes(), true, SIZE as u16);
    device.take(&sent[3].bytes(), false, 0);
    device.take(&sent[4].bytes(), false, 0);
    let got = device.end();
    assert_eq!(got.len(), 1);
    assert_eq!(without_sum(&got[0].0), as_one(&sent));
}

#[test]
fn any_bytes_pass_unchanged_if_no_other_follows() {
    let mut random = eft_base::Random::new(1);
    for _ in 0..20_000 {
        let mut bytes = Sent { v6: random.below(2) == 0, ..Sent::nth(0) }.bytes();
        for _ in 0..random.below(4) {
            let at = random.below(80) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 * 2) as usize);
        let mut device = Device::new();
        device.take(&bytes, false, 0);
        assert_eq!(device.end(), [(bytes, false, 0)]);
    }
}

/// What a peer sent, as far as a segment says it: port, sequence number, flags, acknowledgment, window, time stamp, payload.
type Seen = (u16, u32, u8, u32, u16, u8, Vec<u8>);

/// The segments of which a frame of IPv4 consists.
fn cut((bytes, _, size): &Got) -> Vec<Seen> {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (port, sequence) = (word(34) >> 16, word(38));
    let payload = &bytes[66..];
    let size = if *size == 0 { payload.len().max(1) } else { usize::from(*size) };
    let mut pieces: Vec<&[u8]> = payload.chunks(size).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let last = pieces.len() - 1;
    let of = |(n, piece): (usize, &&[u8])| {
        let flags = if n == last { bytes[47] } else { bytes[47] & !TCP_PSH };
        let window = (word(48) >> 16) as u16;
        (
            port as u16,
            sequence.wrapping_add((n * size) as u32),
            flags,
            word(42),
            window,
            bytes[61],
            piece.to_vec(),
        )
    };
    pieces.iter().enumerate().map(of).collect()
}

#[test]
fn whatever_comes_can_be_cut_into_what_was_sent() {
    for seed in 0..2000 {
        let mut random = eft_base::Random::new(seed);
        let mut streams: Vec<Sent> = (0..3).map(|port| Sent { port, ..Sent::nth(0) }).collect();
        let mut sent = Vec::new();
        for _ in 0..40 {
            let stream = &mut streams[random.below(3) as usize];
            let size = if random.chance(0.8) { 700 } else { random.below(701) as usize };
            let mut next = stream.clone();
            next.payload = (0..size).map(|_| random.next_u32() as u8).collect();
            next.verified = random.chance(0.5);
            next.bad_sum = random.chance(0.03);
            match random.below(30) {
                0 => next.flags |= TCP_PSH,
                1 => next.flags |= TCP_FIN,
                2 => next.options[7] += 1,
                3 => next.acknowledgment += 9,
                4 => next.window += 1,
                5 => next.sequence = next.sequence.wrapping_add(random.below(3) as u32),
                _ => {}
            }
            sent.push(next.clone());
            *stream = Sent { flags: TCP_ACK, ..next }.at(1, size);
        }
        let got = delivered(&sent);
        for port in 0..3 {
            let expected: Vec<Seen> =
                sent.iter().flat_map(|s| cut(&(s.bytes(), false, 0))).filter(|s| s.0 == port).collect();
            let seen: Vec<Seen> = got.iter().flat_map(cut).filter(|s| s.0 == port).collect();
            assert_eq!(seen, expected, "seed {seed}, port {port}");
        }
        let bad = sent.iter().filter(|s| s.bad_sum && !s.verified).count();
        let doubted = got.iter().filter(|(bytes, ok, _)| !ok && !verifies(bytes)).count();
        assert_eq!(doubted, bad, "seed {seed}");
    }
}

fn verifies(frame: &[u8]) -> bool {
    let segment = &frame[34..];
    let sum =
        Checksum::new().add_bytes(&frame[26..34]).add_u16(PROTOCOL_TCP.into()).add_u16(segment.len() as u16);
    sum.add_bytes(segment).finish() == 0
}

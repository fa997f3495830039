//! The engine with a device made of two queues.

mod inherited;

use crate::coalesce::tests::Sent;
use crate::{Counter, Nic, ToIp};
use eft_base::{Instant, MacAddress, PacketRef, PoolId, Random, RequestId};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, PoolView, Segment, journal};
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Context, Device, DeviceError, DeviceInfo, Frame, Outbox, ReceivedFrame};
use eft_messages::ComponentId;
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_SLOT_LEN, FrameDescriptor, IpToNic, NicToIp};
use eft_messages::seal::seal;
use std::collections::VecDeque;
use std::time::Duration;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

struct TestDevice {
    info: DeviceInfo,
    /// Frames that may still be sent before it blocks.
    credit: usize,
    /// It finds out that it does not cut datagrams.
    refuses_datagrams: bool,
    sent: Vec<Vec<u8>>,
    arriving: VecDeque<Vec<u8>>,
    /// After so many frames it dies, before it has read another one or after that.
    dies: Option<(usize, When)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    BeforeReading,
    AfterReading,
}

impl Device for TestDevice {
    fn info(&mut self) -> DeviceInfo {
        self.info
    }

    fn send(&mut self, frame: &Frame) -> Result<(), DeviceError> {
        if self.credit == 0 {
            return Err(DeviceError::WouldBlock);
        }
        self.credit -= 1;
        let d = frame.descriptor;
        if self.refuses_datagrams && crate::cut::has_datagrams(d) {
            self.info.datagrams = false;
            return Err(DeviceError::Failed(22));
        }
        let mut bytes = d.header[..d.header_len as usize].to_vec();
        for r in &d.payload[..d.payload_count as usize] {
            let mut piece = vec![0; r.len as usize];
            frame.memory.read(*r, &mut piece).unwrap();
            bytes.extend(piece);
        }
        self.sent.push(bytes);
        Ok(())
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> Result<ReceivedFrame, DeviceError> {
        let dies = self.dies.filter(|(frames, _)| *frames == 0).map(|(_, when)| when);
        assert!(dies != Some(When::BeforeReading), "{DEATH}");
        let bytes = self.arriving.pop_front().ok_or(DeviceError::WouldBlock)?;
        assert!(pool.write(slot, 0, &bytes));
        if let Some(note) = journal::note(pool.view()) {
            pool.view().segment.write(note, &(bytes.len() as u32).to_ne_bytes()).unwrap();
        }
        assert!(dies.is_none(), "{DEATH}");
        self.dies = self.dies.map(|(frames, when)| (frames - 1, when));
        Ok(ReceivedFrame { len: bytes.len() as u32, checksum_ok: true, segment_size: 0 })
    }

    fn recover(&mut self, pool: &PoolView, _: PacketRef) -> Option<ReceivedFrame> {
        let mut note = [0; 4];
        pool.segment.read(journal::note(pool)?, &mut note).unwrap();
        let is_read = note != [journal::WIPED; 4];
        let len = u32::from_ne_bytes(note);
        is_read.then_some(ReceivedFrame { len, checksum_ok: true, segment_size: 0 })
    }
}

const DEATH: &str = "the device's death";

const FRAMES: PoolId = PoolId(1);
const PAYLOAD: PoolId = PoolId(2);

struct Bench {
    nic: Nic<TestDevice>,
    memory: Memory,
    status: Status,
    random: Random,
    now: Instant,
    out: Outbox<ToIp>,
    frames: Pool,
}

impl Bench {
    fn new(slots: usize) -> Bench {
        Bench::of(PoolId(9), slots)
    }

    fn of(id: PoolId, slots: usize) -> Bench {
        let device = TestDevice {
            info: DeviceInfo {
                mac: MacAddress([2, 0, 0, 0, 0, 1]),
                mtu: 1500,
                up: true,
                checksum: true,
                segment_max: 60000,
                datagrams: true,
                coalesce: true,
            },
            credit: usize::MAX,
            refuses_datagrams: false,
            sent: Vec::new(),
            arriving: VecDeque::new(),
            dies: None,
        };
        let pool = Pool::new(id, Segment::heap(slots * 2048 + journal::len(slots)), 2048);
        let frames = Pool::new(FRAMES, Segment::heap(64 * FRAME_SLOT_LEN), FRAME_SLOT_LEN);
        let mut memory = Memory::new();
        memory.insert(FRAMES, frames.view().clone());
        memory.insert(PAYLOAD, PoolView::new(Segment::heap(70000), 0, 70000, 1));
        Bench {
            nic: Nic::new(device, pool, 0),
            memory,
            status: Status::heap(),
            random: Random::new(1),
            now: Instant::from_millis(1),
            out: Outbox::with_room(&[ComponentId::IP], 64),
            frames,
        }
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut Nic<TestDevice>, &mut Context, &mut Outbox<ToIp>) -> T) -> T {
        let mut cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        f(&mut self.nic, &mut cx, &mut self.out)
    }

    fn drain(&mut self) -> Vec<NicToIp> {
        let all = self.out.drain().map(|o| o.0).collect();
        self.out.set_room(ComponentId::IP, 64, 64);
        all
    }

    fn connect(&mut self) -> Vec<NicToIp> {
        self.with(|n, cx, out| n.peer_reborn(cx, ComponentId::IP, out));
        self.drain()
    }

    fn poll(&mut self) -> Vec<NicToIp> {
        self.with(|n, cx, out| n.poll(cx, 64, out));
        self.drain()
    }

    /// Lets time pass, deadline by deadline. Returns what was said beside the state of the link.
    fn pass(&mut self, time: Duration) -> Vec<NicToIp> {
        let end = self.now + time;
        self.with(|n, cx, out| n.flush(cx, out));
        let mut said = Vec::new();
        while let Some(at) = self.nic.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.with(|n, cx, out| {
                n.expire(cx, out);
                n.flush(cx, out);
            });
            said.extend(self.out.drain().map(|o| o.0).filter(|m| !matches!(m, NicToIp::Link { .. })));
        }
        self.now = end;
        self.drain();
        said
    }

    fn send(&mut self, index: u32, d: &FrameDescriptor) -> Vec<NicToIp> {
        let slot = self.frames.allocate().unwrap();
        assert!(self.frames.write(slot, 0, d.as_bytes()));
        let request = request(index);
        let message = IpToNic::Send { request, descriptor: slot };
        self.with(|n, cx, out| n.receive(cx, ComponentId::IP, message, out));
        self.frames.free(slot);
        self.drain()
    }

    fn count(&self, c: Counter) -> u64 {
        self.status.get(FRAME_COUNTERS.len() + c as usize)
    }
}

fn request(index: u32) -> RequestId {
    RequestId { index, generation: 1 }
}

fn sent(index: u32, errno: i32) -> NicToIp {
    NicToIp::Sent { request: request(index), errno }
}

fn descriptor(tag: u8, payload: u32) -> FrameDescriptor {
    let mut d = FrameDescriptor::new_zeroed();
    d.header_len = 14;
    d.header[0] = tag;
    if payload > 0 {
        d.payload_count = 1;
        d.payload[0] = PacketRef { pool: PAYLOAD, len: payload, ..PacketRef::default() };
    }
    d
}

#[test]
fn order_is_kept_when_the_device_blocks() {
    let mut b = Bench::new(4);
    assert!(matches!(b.connect()[..], [NicToIp::Link { up: true, .. }]));
    b.nic.device().credit = 1;
    assert_eq!(b.send(1, &descriptor(1, 10)), [sent(1, 0)]);
    assert_eq!(b.send(2, &descriptor(2, 10)), []);
    b.nic.device().credit = 1;
    // 3 may not overtake 2 although the device would take it now.
    assert_eq!(b.send(3, &descriptor(3, 10)), []);
    assert!(b.nic.deadline().unwrap() <= b.now + core::time::Duration::from_millis(1));
    assert_eq!(b.poll(), [sent(2, 0)]);
    b.nic.device().credit = 9;
    assert_eq!(b.poll(), [sent(3, 0)]);
    let order: Vec<u8> = b.nic.device().sent.iter().map(|f| f[0]).collect();
    assert_eq!(order, [1, 2, 3]);
    assert_eq!(b.nic.device().sent[0].len(), 24);
}

#[test]
fn descriptors_are_checked() {
    let mut b = Bench::new(4);
    b.connect();
    let good = descriptor(0, 100);
    let foreign = PacketRef { pool: PoolId(77), ..good.payload[0] };
    let over_the_end = PacketRef { offset: u32::MAX, ..good.payload[0] };
    let segmented = FrameDescriptor { segment_size: 1000, flags: FRAME_CHECKSUM, ..descriptor(0, 50000) };
    let cases: [(FrameDescriptor, i32); 11] = [
        (FrameDescriptor { header_len: 13, ..good }, 22),
        (FrameDescriptor { header_len: 129, ..good }, 22),
        (FrameDescriptor { payload_count: 5, ..good }, 22),
        (FrameDescriptor { payload: [foreign; 4], ..good }, 22),
        (FrameDescriptor { payload: [over_the_end; 4], ..good }, 22),
        (FrameDescriptor { flags: FRAME_CHECKSUM, checksum_start: 13, ..good }, 22),
        (
            FrameDescriptor { flags: FRAME_CHECKSUM, checksum_start: 65535, checksum_offset: 65535, ..good },
            22,
        ),
        (descriptor(0, 1501 + 4), 90),
        (segmented, 0),
        (FrameDescriptor { flags: 0, ..segmented }, 22),
        (FrameDescriptor { segment_size: 1000, flags: FRAME_CHECKSUM, ..descriptor(0, 60001) }, 90),
    ];
    for (i, (d, errno)) in cases.into_iter().enumerate() {
        assert_eq!(b.send(i as u32, &d), [sent(i as u32, errno)], "case {i}");
    }
}

/// A frame of IPv4 with datagrams of 1000 bytes; `total` bytes of payload.
fn datagrams(total: u32) -> FrameDescriptor {
    let mut d = FrameDescriptor {
        segment_size: 1000,
        flags: FRAME_CHECKSUM,
        checksum_start: 34,
        checksum_offset: 6,
        header_len: 42,
        ..descriptor(0, total)
    };
    d.header[12..15].copy_from_slice(&[8, 0, 0x45]);
    d.header[23] = 17;
    d
}

#[test]
fn datagrams_are_cut_for_a_device_that_does_not() {
    let lengths = |b: &mut Bench| b.nic.device().sent.drain(..).map(|f| f.len()).collect::<Vec<_>>();
    let mut b = Bench::new(4);
    b.connect();
    assert_eq!(b.send(1, &datagrams(3500)), [sent(1, 0)]);
    assert_eq!(lengths(&mut b), [3542]);
    b.nic.device().refuses_datagrams = true;
    for i in 2..4 {
        assert_eq!(b.send(i, &datagrams(3500)), [sent(i, 0)]);
        assert_eq!(lengths(&mut b), [1042, 1042, 1042, 542]);
    }
    assert_eq!(b.count(Counter::DropDevice), 1, "the frame by which it found out");
    // The device is full in the middle: the rest goes later, before what comes after.
    b.nic.device().credit = 2;
    assert_eq!(b.send(4, &datagrams(3500)), []);
    assert_eq!(b.send(5, &descriptor(5, 10)), []);
    assert_eq!(lengths(&mut b), [1042, 1042]);
    b.nic.device().credit = 9;
    assert_eq!(b.poll(), [sent(4, 0), sent(5, 0)]);
    assert_eq!(lengths(&mut b), [1042, 542, 24]);
}

#[test]
fn random_descriptors_do_no_harm() {
    let mut b = Bench::new(4);
    b.connect();
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let mut bytes = [0u8; size_of::<FrameDescriptor>()];
        for b in &mut bytes {
            *b = if random.chance(0.7) { random.below(4) as u8 } else { random.next_u32() as u8 };
        }
        let d = FrameDescriptor::read_from_bytes(&bytes).unwrap();
        assert_eq!(b.send(1, &d).len(), 1);
    }
    let wild = IpToNic::Send {
        request: request(1),
        descriptor: PacketRef { pool: FRAMES, slot: 1 << 30, generation: 0, offset: 1, len: 4000 },
    };
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, wild, out));
    assert_eq!(b.drain(), [sent(1, 22)]);
}

#[test]
fn frames_stay_until_given_back_and_come_again_to_a_reborn_ip() {
    let mut b = Bench::new(3);
    b.connect();
    for i in 0..5u8 {
        b.nic.device().arriving.push_back(vec![i; 60]);
    }
    let first = b.poll();
    assert_eq!(first.len(), 3, "three slots");
    assert_eq!(b.poll(), []);
    assert!(b.count(Counter::NoSlot) > 0);
    let NicToIp::Received { packet, .. } = first[1] else { panic!() };
    let done = IpToNic::Done { packet };
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, done, out));
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, done, out));
    assert_eq!(b.count(Counter::BadDone), 1);
    let second = b.poll();
    assert_eq!(second.len(), 1);
    let again = b.connect();
    assert_eq!(again[1..], [first[0], first[2], second[0]]);
}

#[test]
fn segments_that_arrive_together_are_one_frame_also_for_a_reborn_ip() {
    let mut b = Bench::new(4);
    b.connect();
    for n in 0..6 {
        let mut sent = Sent::nth(0).at(n, 200);
        sent.payload = vec![n as u8; 200];
        b.nic.device().arriving.push_back(sent.bytes());
    }
    let got = b.poll();
    let [NicToIp::Received { packet, checksum_ok: true, segment_size: 200 }] = got[..] else {
        panic!("{got:?}")
    };
    assert_eq!(packet.len, 14 + 20 + 32 + 6 * 200);
    assert_eq!(
        [Counter::FramesIn, Counter::Coalesced, Counter::BytesIn].map(|c| b.count(c)),
        [6, 5, 6 * 266]
    );
    b.nic.check();
    assert_eq!(b.connect()[1..], got, "the same frame again");
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, IpToNic::Done { packet }, out));
    assert_eq!(b.nic.pool.available(), 4);
    b.nic.check();
}

#[test]
#[should_panic(expected = "slots that hold a frame")]
fn a_leaked_slot_is_found() {
    let mut b = Bench::new(3);
    b.connect();
    b.nic.device().arriving.push_back(vec![0; 60]);
    b.poll();
    b.nic.check();
    b.nic.pool.allocate();
    b.nic.check();
}

#[test]
fn a_busy_ip_leaves_frames_in_the_device() {
    let mut b = Bench::new(64);
    b.connect();
    for i in 0..60u8 {
        b.nic.device().arriving.push_back(vec![i; 60]);
    }
    b.out.set_room(ComponentId::IP, 40, 64);
    assert_eq!(b.poll().len(), 8);
    assert_eq!(b.nic.device().arriving.len(), 52);
    assert!(!b.nic.wants_readable());
    assert!(b.nic.deadline().unwrap() <= b.now + core::time::Duration::from_millis(1));
    assert_eq!(b.poll().len(), 32);
}

#[test]
fn link_changes_are_told() {
    let mut b = Bench::new(4);
    b.connect();
    b.nic.device().info.up = false;
    b.now += core::time::Duration::from_secs(1);
    b.with(|n, cx, out| n.expire(cx, out));
    assert!(matches!(b.drain()[..], [NicToIp::Link { up: false, .. }]));
    b.now += core::time::Duration::from_secs(1);
    b.with(|n, cx, out| n.expire(cx, out));
    assert_eq!(b.drain(), []);
}

/// A damaged message about a frame may have told ip of another link.
#[test]
fn the_link_is_told_again_after_frames() {
    let mut b = Bench::new(4);
    let link = b.connect();
    let later = |b: &mut Bench| {
        b.now += core::time::Duration::from_secs(1);
        b.with(|n, cx, out| n.expire(cx, out));
        b.drain()
    };
    assert_eq!(later(&mut b), [], "nobody has said anything since");
    b.nic.device().arriving.push_back(vec![7; 60]);
    let frame = b.poll();
    assert_eq!(later(&mut b), link);
    assert_eq!(later(&mut b), []);
    let [NicToIp::Received { packet, .. }] = frame[..] else { panic!("{frame:?}") };
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, IpToNic::Done { packet }, out));
    assert_eq!(later(&mut b), link);
    assert_eq!(later(&mut b), [], "no wake-ups of an idle stack");
}

/// ip repeats a frame whose answer it did not get.
#[test]
fn a_repeated_frame_is_answered_again_but_sent_once() {
    let mut b = Bench::new(4);
    b.connect();
    let slot = b.frames.allocate().unwrap();
    b.frames.write(slot, 0, descriptor(1, 0).as_bytes());
    let message = IpToNic::Send { request: request(7), descriptor: slot };
    b.nic.device().credit = 0;
    for _ in 0..2 {
        b.with(|n, cx, out| n.receive(cx, ComponentId::IP, message, out));
        assert_eq!(b.drain(), [], "it waits for the device");
    }
    b.nic.device().credit = usize::MAX;
    assert_eq!(b.poll(), [sent(7, 0)]);
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, message, out));
    assert_eq!((b.drain(), b.nic.device().sent.len()), (vec![sent(7, 0)], 1));
}

#[test]
fn ip_is_told_again_of_a_frame_that_it_does_not_give_back() {
    let mut b = Bench::new(4);
    b.connect();
    b.nic.device().arriving.push_back(vec![7; 60]);
    let first = b.poll();
    let [NicToIp::Received { packet, .. }] = first[..] else { panic!("{first:?}") };
    assert_eq!(b.pass(Duration::from_millis(900)), [], "ip may take that long");
    assert_eq!(b.pass(Duration::from_secs(2)), first);
    assert_eq!(b.count(Counter::Repeated), 1);
    b.connect();
    assert_eq!(b.pass(Duration::from_millis(900)), [], "a reborn ip has just been told");
    b.with(|n, cx, out| n.receive(cx, ComponentId::IP, IpToNic::Done { packet }, out));
    assert_eq!(b.pass(Duration::from_secs(5)), []);
    assert_eq!(b.nic.pool.available(), 4);
}

#[test]
fn a_full_queue_is_not_filled_with_repetitions() {
    let mut b = Bench::new(4);
    b.connect();
    b.nic.device().arriving.push_back(vec![7; 60]);
    let first = b.poll();
    b.out.set_room(ComponentId::IP, 32, 64);
    assert_eq!(b.pass(Duration::from_millis(2100)), []);
    assert_eq!(b.pass(Duration::from_secs(1)), first, "it is not forgotten");
}

#[test]
fn a_frame_that_is_not_what_a_transport_has_sealed_does_not_go_out() {
    let mut b = Bench::new(8);
    b.connect();
    let mut good = FrameDescriptor { checksum_start: 34, checksum_offset: 16, ..descriptor(7, 1000) };
    good.header_len = 54;
    good.flags = FRAME_CHECKSUM;
    let mut request = 100;
    let mut goes = |b: &mut Bench, d: &FrameDescriptor| {
        b.nic.device().sent.clear();
        request += 1;
        assert!(matches!(b.send(request, d)[..], [NicToIp::Sent { .. }]), "it is answered");
        !b.nic.device().sent.is_empty()
    };
    assert!(goes(&mut b, &good), "without a seal");
    good.seal = seal(&good.header[34..54], 16, &good.payload[..1]);
    assert!(goes(&mut b, &good));
    let at = core::mem::offset_of!(FrameDescriptor, header);
    let (header, refs) = ((at + 34..at + 54), core::mem::offset_of!(FrameDescriptor, payload));
    let checksum = at + 50..at + 52;
    for byte in header.chain(refs..refs + size_of::<PacketRef>()).chain([0, 2]) {
        for bit in 0..8 {
            let mut d = good;
            d.as_mut_bytes()[byte] ^= 1 << bit;
            assert_eq!(goes(&mut b, &d), checksum.contains(&byte), "byte {byte}, bit {bit}");
        }
    }
    assert!(b.count(Counter::DropDamaged) > 100);
}

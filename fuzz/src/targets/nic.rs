//! Frame descriptors of a hostile ip into a NIC, over a device that blocks, fails and comes and goes.

use super::Target;
use crate::mutate::{hostile_u64, write_edge};
use crate::source::Source;
use eft_base::{MacAddress, PacketRef, PoolId, Random, RequestId};
use eft_channel::{Memory, Pool, PoolView, Segment};
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use eft_harness::Host;
use eft_messages::ComponentId;
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_SLOT_LEN, FrameDescriptor, IpToNic, NicToIp};
use eft_nic::Nic;
use std::collections::BTreeSet;
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

const FRAMES: PoolId = PoolId(1);
const PAYLOAD: PoolId = PoolId(2);
const SLOTS: u64 = 32;

/// A device that checks what it is given.
pub struct FuzzDevice {
    random: Random,
    /// Of which each frame is full: its number.
    received: u8,
}

impl Device for FuzzDevice {
    fn info(&mut self) -> DeviceInfo {
        DeviceInfo {
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            up: self.random.chance(0.95),
            checksum: true,
            segment_max: 60000,
            datagrams: self.random.chance(0.5),
            coalesce: self.random.chance(0.9),
        }
    }

    fn send(&mut self, frame: &Frame) -> Result<(), DeviceError> {
        match self.random.below(20) {
            0..4 => return Err(DeviceError::WouldBlock),
            4 => return Err(DeviceError::Failed(105)),
            _ => {}
        }
        let d = frame.descriptor;
        let mut len = d.header_len as usize;
        assert!((14..=d.header.len()).contains(&len));
        for r in &d.payload[..d.payload_count as usize] {
            assert!(frame.memory.resolve(*r).is_some(), "the device was given {r:?}");
            len += r.len as usize;
        }
        if d.flags & FRAME_CHECKSUM != 0 {
            assert!(d.checksum_start as usize + d.checksum_offset as usize + 2 <= len);
        }
        Ok(())
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> Result<ReceivedFrame, DeviceError> {
        if self.random.chance(0.6) {
            return Err(DeviceError::WouldBlock);
        }
        let len = self.random.below(pool.slot_size() as u64 + 1) as usize;
        self.received = self.received.wrapping_add(1);
        assert!(pool.write(slot, 0, &vec![self.received; len]));
        Ok(ReceivedFrame { len: len as u32, checksum_ok: true, segment_size: self.random.next_u32() as u16 })
    }
}

/// A NIC with ip connected.
pub fn host(source: &mut Source) -> Host<Nic<FuzzDevice>> {
    let frames = Pool::new(FRAMES, Segment::heap(SLOTS as usize * FRAME_SLOT_LEN), FRAME_SLOT_LEN);
    let mut memory = Memory::new();
    memory.insert(FRAMES, frames.view().clone());
    memory.insert(PAYLOAD, PoolView::new(Segment::heap(70000), 0, 70000, 1));
    let pool = Pool::new(PoolId(9), Segment::heap(16 * 2048), 2048);
    memory.insert(PoolId(9), pool.view().clone());
    let device = FuzzDevice { random: source.generator(), received: 0 };
    Host::new(Nic::new(device, pool, 0), memory, &[ComponentId::IP], source.generator())
}

pub struct NicFrames {
    host: Host<Nic<FuzzDevice>>,
    next: u32,
    unanswered: BTreeSet<RequestId>,
    /// Received frames that were not given back.
    held: Vec<(PacketRef, [u8; 1])>,
}

impl NicFrames {
    pub fn new(source: &mut Source) -> NicFrames {
        NicFrames { host: host(source), next: 0, unanswered: BTreeSet::new(), held: Vec::new() }
    }

    fn check(&mut self) {
        for m in self.host.take() {
            match m.0 {
                NicToIp::Sent { request, .. } => {
                    assert!(self.unanswered.remove(&request), "{request:?} was answered twice");
                }
                NicToIp::Received { packet, .. } => {
                    let mut first = [0; 1];
                    if packet.len > 0 {
                        self.host.memory.read(packet, &mut first).expect("a frame in the nic's pool");
                    }
                    // ip is told again of a frame that it does not give back.
                    match self.held.iter().find(|(held, _)| held.slot == packet.slot) {
                        None => self.held.push((packet, first)),
                        Some(held) => assert_eq!(*held, (packet, first), "a slot was used while ip has it"),
                    }
                }
                NicToIp::Link { .. } => {}
            }
        }
    }
}

fn descriptor(source: &mut Source) -> FrameDescriptor {
    let mut d = FrameDescriptor::new_zeroed();
    d.header_len = 14 + source.below(115) as u16;
    d.payload_count = source.below(5) as u16;
    for r in &mut d.payload {
        let len = source.below(1500) as u32;
        *r = PacketRef { pool: PAYLOAD, generation: 0, slot: 0, offset: source.below(60000) as u32, len };
    }
    if source.chance(0.5) {
        (d.flags, d.checksum_start, d.checksum_offset) = (FRAME_CHECKSUM, 34, 16);
        d.segment_size = source.below(1460) as u16;
    }
    for _ in 0..source.below(3) {
        let bytes = d.as_mut_bytes();
        let at = source.below(bytes.len() as u64) as usize;
        match source.below(2) {
            0 => write_edge(bytes, at, source),
            _ => bytes[at] = source.byte(),
        }
    }
    d
}

impl Target for NicFrames {
    fn feed(&mut self, source: &mut Source) {
        let slot = source.below(SLOTS) as u32;
        let frames = &self.host.memory.view(FRAMES).expect("made in host").segment;
        let d = descriptor(source);
        frames.write(slot as usize * FRAME_SLOT_LEN, d.as_bytes()).expect("slot lies in the pool");
        let mut descriptor = PacketRef { pool: FRAMES, generation: 1, slot, offset: 0, len: 256 };
        if source.chance(0.05) {
            descriptor.pool = PoolId(source.below(11) as u16);
            descriptor.slot = hostile_u64(SLOTS, source) as u32;
            descriptor.len = hostile_u64(256, source) as u32;
        }
        self.next += 1;
        let request = RequestId { index: self.next, generation: 1 };
        self.unanswered.insert(request);
        self.host.receive(ComponentId::IP, IpToNic::Send { request, descriptor });
        self.host.poll();
        self.check();
        while self.held.len() > source.below(12) as usize {
            let (packet, _) = self.held.swap_remove(source.below(self.held.len() as u64) as usize);
            self.host.receive(ComponentId::IP, IpToNic::Done { packet });
        }
        if source.chance(0.1) {
            let packet = PacketRef { pool: PoolId(9), slot: source.below(20) as u32, ..PacketRef::default() };
            self.host.receive(ComponentId::IP, IpToNic::Done { packet });
        }
        self.host.pass(Duration::from_micros(source.below(1_000_000)));
        self.check();
        if source.chance(0.002) {
            // A new ip gets every frame again and asks anew.
            self.unanswered.clear();
            self.held.clear();
            self.host.take();
            self.host.reborn(ComponentId::IP);
            self.check();
        }
    }
}

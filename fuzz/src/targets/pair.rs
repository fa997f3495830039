//! The pair device's shared memory: two stacks of one machine, one of which goes mad.

use super::Target;
use crate::mutate::hostile_u64;
use crate::source::Source;
use eft_base::{MacAddress, PacketRef, PoolId};
use eft_channel::{Memory, Pool, Segment};
use eft_component::{Device, DeviceError, Frame};
use eft_linux::devices::pair::{HALF_LEN, PairDevice, TAKEN_LEN};
use eft_linux::memory;
use eft_linux::protocol::{DeviceKind, DeviceSetup};
use eft_messages::nic::{FRAME_CHECKSUM, FrameDescriptor};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use zerocopy::FromZeros;

const OUTGOING: PoolId = PoolId(1);
const SLOT_LEN: usize = eft_messages::nic::PACKET_SLOT_LEN;
/// The queue's lines lie behind the first page of a half.
const LINES_END: u64 = 4096 + 128 * 64;

/// What one stack makes for a pair.
struct Made {
    half: OwnedFd,
    taken: OwnedFd,
    event: OwnedFd,
}

impl Made {
    fn new() -> Made {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        Made {
            half: memory::create("eft-fuzz-half", HALF_LEN).expect("memory for a half"),
            taken: memory::create("eft-fuzz-taken", TAKEN_LEN).expect("memory for a page"),
            event: rustix::event::eventfd(0, flags).expect("an eventfd"),
        }
    }
}

/// The device of the side that made `own`, opposite to `peer`.
fn device(own: &Made, peer: &Made) -> PairDevice {
    let copy = |fd: &OwnedFd| fd.try_clone().expect("a descriptor");
    let shown = |fd: &OwnedFd| memory::read_only(fd).expect("a descriptor");
    let rest =
        vec![copy(&own.half), copy(&own.taken), shown(&peer.half), shown(&peer.taken), copy(&peer.event)];
    let setup =
        DeviceSetup { kind: DeviceKind::Pair, interface: 0, mac: MacAddress([2; 6]), mtu: 1500, ring: None };
    PairDevice::new(copy(&own.event), rest, &setup).expect("a device")
}

pub struct Pair {
    ours: Made,
    theirs: Made,
    device: PairDevice,
    peer: PairDevice,
    /// What a mad peer can write.
    half: Segment,
    taken: Segment,
    /// It has begun to.
    mad: bool,
    /// Frames on their way to us, and to the peer, while it is sane.
    to_us: VecDeque<Vec<u8>>,
    to_peer: VecDeque<Vec<u8>>,
    received: Pool,
    outgoing: Pool,
    /// Its only slot.
    payload: PacketRef,
    memory: Memory,
}

impl Pair {
    pub fn new() -> Pair {
        let (ours, theirs) = (Made::new(), Made::new());
        let mut outgoing = Pool::new(OUTGOING, Segment::heap(SLOT_LEN), SLOT_LEN);
        let mut memory = Memory::new();
        memory.insert(OUTGOING, outgoing.view().clone());
        Pair {
            device: device(&ours, &theirs),
            peer: device(&theirs, &ours),
            half: memory::map(&theirs.half, true).expect("a mapping"),
            taken: memory::map(&theirs.taken, true).expect("a mapping"),
            ours,
            theirs,
            mad: false,
            to_us: VecDeque::new(),
            to_peer: VecDeque::new(),
            received: Pool::new(PoolId(2), Segment::heap(2 * SLOT_LEN), SLOT_LEN),
            payload: outgoing.allocate().expect("it is fresh"),
            outgoing,
            memory,
        }
    }

    /// A frame of source length, in header and payload.
    fn send(&mut self, from_us: bool, source: &mut Source) {
        let slot = self.payload;
        let len = if source.chance(0.1) { source.below(1 << 16) } else { source.below(200) } as usize;
        let payload = source.noise(len);
        assert!(self.outgoing.write(slot, 0, &payload));
        let mut d = FrameDescriptor::new_zeroed();
        d.header_len = 14 + source.below(60) as u16;
        d.header[..d.header_len as usize].fill(source.byte());
        d.payload_count = 1;
        d.payload[0] = PacketRef { len: len as u32, ..slot };
        d.flags = if source.chance(0.5) { FRAME_CHECKSUM } else { 0 };
        let mut bytes = d.header[..d.header_len as usize].to_vec();
        bytes.extend(payload);
        let frame = Frame { descriptor: &d, memory: &self.memory };
        let (device, queue) = match from_us {
            true => (&mut self.device, &mut self.to_peer),
            false => (&mut self.peer, &mut self.to_us),
        };
        match device.send(&frame) {
            Ok(()) => queue.push_back(bytes),
            Err(DeviceError::WouldBlock) => {}
            Err(DeviceError::Failed(_)) => {
                assert!(bytes.len() > SLOT_LEN, "{} bytes were refused", bytes.len())
            }
            Err(e) => panic!("{} bytes were refused: {e:?}", bytes.len()),
        }
        assert!(self.mad || queue.len() <= 128, "a frame that was not taken was overwritten");
    }

    fn receive(&mut self, at_us: bool) {
        let slot = self.received.allocate().expect("one is free");
        let (device, queue) = match at_us {
            true => (&mut self.device, &mut self.to_us),
            false => (&mut self.peer, &mut self.to_peer),
        };
        match device.receive(&self.received, slot) {
            Ok(frame) => {
                assert!(frame.len <= slot.len, "longer than its slot");
                if !self.mad {
                    let mut bytes = vec![0; frame.len as usize];
                    let view = self.received.view();
                    let at = view.locate(slot).expect("the slot is there");
                    view.segment.read(at, &mut bytes).expect("within the pool");
                    assert_eq!(Some(bytes), queue.pop_front());
                }
            }
            Err(DeviceError::WouldBlock) => assert!(self.mad || queue.is_empty(), "a frame is not seen"),
            Err(e) => assert!(self.mad, "{e:?}"),
        }
        self.received.free(slot);
    }

    /// The peer writes over what it can write.
    fn scribble(&mut self, source: &mut Source) {
        self.mad = true;
        let value = hostile_u64(source.below(400), source).to_le_bytes();
        match source.below(4) {
            0 => self.taken.write(source.below(8) as usize * 8, &value),
            1 => self.half.write(source.below(HALF_LEN as u64 / 8) as usize * 8, &value),
            _ => self.half.write(source.below(LINES_END / 8) as usize * 8, &value),
        }
        .expect("within");
    }
}

impl Target for Pair {
    fn feed(&mut self, source: &mut Source) {
        for _ in 0..source.below(20) {
            match source.below(10) {
                0..3 => self.send(true, source),
                3..6 => self.send(false, source),
                6 | 7 => self.receive(true),
                8 => self.receive(false),
                _ => {
                    self.device.flush();
                    self.peer.flush();
                }
            }
        }
        if source.chance(if self.mad { 0.5 } else { 0.002 }) {
            self.scribble(source);
        }
        if self.mad && source.chance(0.05) {
            // A reborn NIC takes the same memory over.
            self.device = device(&self.ours, &self.theirs);
        }
    }
}

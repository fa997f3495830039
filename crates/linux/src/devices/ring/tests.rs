use super::*;
use eft_base::Random;
use std::collections::VecDeque;

const SHAPE: RingShape = RingShape { slots: 8, slot_len: 2048 };
/// Where the kernel puts a frame's first byte.
const MAC: u16 = 76;

/// The kernel's side of a ring.
struct Kernel {
    memory: Segment,
    head: u32,
    now: u32,
    /// Frames in the ring, by number, and those of them that wait in the queue.
    waiting: VecDeque<u32>,
    queue: VecDeque<u32>,
}

impl Kernel {
    fn new() -> Kernel {
        let memory = Segment::heap(SHAPE.len());
        Kernel { memory, head: 0, now: 0, waiting: VecDeque::new(), queue: VecDeque::new() }
    }

    fn ring(&self) -> ReceiveRing {
        ReceiveRing::over(self.memory.clone(), SHAPE)
    }

    /// Delivers frame `i`, unless the ring is full.
    fn deliver(&mut self, i: u32, fits: bool) {
        self.now += 1;
        let slot = (self.head * SHAPE.slot_len) as usize;
        if self.memory.atomic_u32(slot).unwrap().load(Ordering::Acquire) != 0 {
            return;
        }
        let header = Header {
            status: if fits { USER } else { USER | COPY },
            len: 60,
            snaplen: 60,
            mac: MAC,
            net: MAC + 14,
            sec: 1,
            nsec: self.now,
            vlan: [0; 2],
            number: 0,
        };
        self.memory.write(slot + usize::from(MAC) - VNET_HEADER_LEN, &[0; VNET_HEADER_LEN]).unwrap();
        self.memory.write(slot + usize::from(MAC), &i.to_le_bytes()).unwrap();
        self.memory.write(slot, header.as_bytes()).unwrap();
        self.head = (self.head + 1) % SHAPE.slots;
        self.waiting.push_back(i);
        if !fits {
            self.queue.push_back(i);
        }
    }

    /// What the NIC takes next.
    fn take(&mut self, ring: &mut ReceiveRing) -> Option<u32> {
        let to = Segment::heap(2048);
        let taken = match ring.take(&to, 64, 1500) {
            Taken::Nothing => return None,
            Taken::Lost => panic!("a whole frame is lost"),
            Taken::InQueue => self.queue.pop_front().expect("it waits in the queue"),
            Taken::Frame(_, len, place) => {
                assert_eq!(len, 60);
                assert!(ring.has(place) && self.ring().has(place), "it is not released");
                let mut bytes = [0; 4];
                to.read(64, &mut bytes).unwrap();
                u32::from_le_bytes(bytes)
            }
        };
        ring.release();
        Some(taken)
    }
}

#[test]
fn the_header_is_the_kernels() {
    assert_eq!(size_of::<Header>(), 32);
    assert_eq!((offset_of!(Header, mac), offset_of!(Header, sec), NUMBER), (12, 16, 28));
}

#[test]
fn shapes_hold_whole_frames_and_fill_whole_blocks() {
    for mtu in [68, 1280, 1500, 1900, 2000, 9000, 65535] {
        let shape = RingShape::for_mtu(mtu);
        assert!(shape.slot_len >= u32::from(mtu) + BEFORE && shape.slot_len.is_multiple_of(16), "{shape:?}");
        assert_eq!(shape.len(), RING_LEN as usize, "{shape:?}");
        assert!(BLOCK_LEN.is_multiple_of(shape.slot_len) || shape.slot_len.is_multiple_of(BLOCK_LEN));
    }
    assert_eq!(RingShape::for_mtu(1500), RingShape { slots: 8192, slot_len: 2048 });
}

/// Whoever takes over between two frames, and however full the ring is.
#[test]
fn successors_go_on_where_the_predecessor_ended() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut kernel = Kernel::new();
        let mut ring = kernel.ring();
        let mut sent = 0;
        for _ in 0..300 {
            match random.below(8) {
                0..4 => {
                    kernel.deliver(sent, random.below(4) != 0);
                    sent += 1;
                }
                4 => (0..random.below(20)).for_each(|_| {
                    kernel.deliver(sent, true);
                    sent += 1;
                }),
                5..7 => (0..random.below(10)).for_each(|_| {
                    let taken = kernel.take(&mut ring);
                    assert_eq!(taken, kernel.waiting.pop_front(), "seed {seed}");
                }),
                _ => ring = kernel.ring(),
            }
        }
        while let Some(i) = kernel.waiting.pop_front() {
            assert_eq!(kernel.take(&mut ring), Some(i), "seed {seed}");
        }
        assert_eq!(kernel.take(&mut ring), None, "seed {seed}");
    }
}

#[test]
fn numbers_begin_anew() {
    let mut kernel = Kernel::new();
    let mut ring = kernel.ring();
    ring.number = u32::MAX - 2;
    for i in 0..11 {
        kernel.deliver(i, true);
        assert_eq!(kernel.take(&mut ring), Some(i));
        assert_ne!(ring.number, 0);
        ring = kernel.ring();
    }
}

#[test]
fn a_frame_that_was_cut_or_lies_nowhere_is_lost_alone() {
    let mut kernel = Kernel::new();
    let mut ring = kernel.ring();
    let damages: [&dyn Fn(&mut Header); 5] = [
        &|h| h.len = 61,
        &|h| h.mac = 2040,
        &|h| h.mac = 3,
        &|h| (h.len, h.snaplen) = (u32::MAX, u32::MAX),
        &|h| (h.len, h.snaplen) = (1501, 1501),
    ];
    for damage in damages {
        let at = (kernel.head * SHAPE.slot_len) as usize;
        kernel.deliver(1, true);
        let mut header = Header::new_zeroed();
        kernel.memory.read(at, header.as_mut_bytes()).unwrap();
        damage(&mut header);
        kernel.memory.write(at, header.as_bytes()).unwrap();
        assert_eq!(ring.take(&Segment::heap(2048), 64, 1500), Taken::Lost);
        ring.release();
        kernel.deliver(2, true);
        assert_eq!(kernel.take(&mut ring), Some(2));
    }
}

/// A predecessor went mad and numbered what it had not taken.
#[test]
fn a_lost_place_is_found_again() {
    let mut kernel = Kernel::new();
    let mut ring = kernel.ring();
    ring.next = 5;
    kernel.deliver(0, true);
    kernel.deliver(1, true);
    let found = (0..2 * LOOKS).find_map(|_| kernel.take(&mut ring));
    assert_eq!(found, Some(0));
    assert_eq!(kernel.take(&mut ring), Some(1));
}

//! A NIC dies somewhere, and its successor passes on what it had read, once.

use super::*;
use eft_base::checksum::Checksum;
use eft_channel::queue::{Inspection, Line, Position, queue};
use eft_channel::{Producer, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SLOTS: usize = 16;
const SIZE: usize = 200;
const HEADERS: usize = 14 + 20 + 32;
/// Frames of the first turn, and of the second.
const FRAMES: [usize; 2] = [5, 8];

/// The `n`th frame: a segment of one stream, or after two of these what is none.
fn frame(n: usize) -> Vec<u8> {
    if n % 3 == 2 {
        return [&[0; 12][..], &[8, 6], &[n as u8; 28]].concat();
    }
    let mut sent = Sent::nth(0).at(n - n / 3, SIZE);
    sent.payload = vec![n as u8; SIZE];
    sent.bytes()
}

/// An ip: the queue to it, and all that it was told of.
struct Heard {
    producer: Producer,
    seen: Inspection,
    frames: Vec<Vec<u8>>,
}

impl Heard {
    fn new() -> Heard {
        let lines = Shared::heap_slice((0..16).map(|_| Line::empty()).collect());
        let position = Shared::heap(Position::zero());
        let seen = Inspection::new(lines.clone(), position.clone());
        Heard { producer: queue(lines, position).0, seen, frames: Vec::new() }
    }

    fn hear(&mut self, b: &Bench, messages: &[NicToIp]) {
        for message in messages {
            self.producer.push(&message.encode()).unwrap();
            if let NicToIp::Received { packet, .. } = message {
                self.frames.push(b.bytes(*packet));
            }
        }
    }

    /// What it heard, cut into what arrived: which segments, and which other frames.
    fn cut(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for bytes in &self.frames {
            if bytes[12..14] != [8, 0] {
                all.push(bytes.clone());
                continue;
            }
            assert_eq!(usize::from(u16::from_be_bytes([bytes[16], bytes[17]])), bytes.len() - 14);
            assert_eq!(Checksum::new().add_bytes(&bytes[14..34]).finish(), 0);
            all.extend(bytes[HEADERS..].chunks(SIZE).map(<[u8]>::to_vec));
        }
        all.sort();
        all
    }
}

/// That arrived.
fn all(frames: usize) -> Vec<Vec<u8>> {
    let cut = |n| if n % 3 == 2 { frame(n) } else { frame(n)[HEADERS..].to_vec() };
    let mut all: Vec<Vec<u8>> = (0..frames).map(cut).collect();
    all.sort();
    all
}

impl Bench {
    fn bytes(&self, packet: PacketRef) -> Vec<u8> {
        let view = self.nic.pool.view();
        let mut bytes = vec![0; packet.len as usize];
        view.segment.read(view.locate(packet).unwrap(), &mut bytes).unwrap();
        bytes
    }

    /// A NIC that takes the place of this one, and its device.
    fn successor(&mut self, queue: Option<&Inspection>) -> Bench {
        let mut next = Bench::of(PoolId(10), SLOTS);
        core::mem::swap(&mut next.nic.device().arriving, &mut self.nic.device().arriving);
        let view = self.nic.pool.view();
        let shown = PoolView::new(view.segment.read_only(), view.base, view.slot_size, view.slots);
        next.nic.inherit(&shown, queue);
        next.nic.check();
        next
    }

    fn done(&mut self, message: &NicToIp) {
        let NicToIp::Received { packet, .. } = *message else { return };
        self.with(|n, cx, out| n.receive(cx, ComponentId::IP, IpToNic::Done { packet }, out));
    }
}

/// A first turn of which ip hears all and gives some back, and the second, in which the NIC may die. Returns what it would say.
fn lives(ip: &mut Heard, dies: Option<(usize, When)>) -> (Bench, Vec<NicToIp>) {
    let mut b = Bench::new(SLOTS);
    let link = b.connect();
    ip.hear(&b, &link);
    b.nic.device().arriving.extend((0..FRAMES[0]).map(frame));
    let first = b.poll();
    ip.hear(&b, &first);
    first.iter().step_by(2).for_each(|message| b.done(message));
    b.nic.device().arriving.extend((FRAMES[0]..FRAMES[0] + FRAMES[1]).map(frame));
    b.nic.device().dies = dies;
    match catch_unwind(AssertUnwindSafe(|| b.poll())) {
        Ok(said) => (b, said),
        Err(why) => {
            assert!(why.downcast_ref::<String>().is_some_and(|why| why == DEATH));
            (b, Vec::new())
        }
    }
}

/// The successor passes on all that is missing, and nothing twice.
fn is_complete(mut b: Bench, mut ip: Heard) {
    let mut next = b.successor(Some(&ip.seen));
    for turn in [Bench::connect, Bench::poll] {
        let said = turn(&mut next);
        // A new queue; the old one is read to its end.
        let mut again = Heard::new();
        again.hear(&next, &said);
        ip.frames.append(&mut again.frames);
    }
    assert_eq!(ip.cut(), all(FRAMES.iter().sum()));
}

#[test]
fn no_frame_is_lost_or_passed_on_twice_whatever_ip_has_heard_of() {
    let count = lives(&mut Heard::new(), None).1.len();
    assert!(count > 4, "some are merged and some are not");
    for heard in 0..=count {
        let mut ip = Heard::new();
        let (b, said) = lives(&mut ip, None);
        ip.hear(&b, &said[..heard]);
        is_complete(b, ip);
    }
}

#[test]
fn no_frame_is_lost_or_passed_on_twice_if_the_nic_dies_around_a_read() {
    for when in [When::BeforeReading, When::AfterReading] {
        for frames in 0..FRAMES[1] {
            let mut ip = Heard::new();
            let (b, said) = lives(&mut ip, Some((frames, when)));
            assert!(said.is_empty(), "it died before it said anything");
            is_complete(b, ip);
        }
    }
}

#[test]
fn a_new_ip_gets_all_that_the_dead_one_had_not_given_back() {
    let mut old = Heard::new();
    let (mut b, said) = lives(&mut old, None);
    old.hear(&b, &said);
    b.done(&said[0]);
    let mut next = b.successor(None);
    let again = next.connect();
    let mut ip = Heard::new();
    ip.hear(&next, &again);
    // Of the first turn every second one, and all but the first of the second.
    let (first, second) = (old.frames.len() - said.len(), said.len());
    let held = (0..first).filter(|n| n % 2 == 1).chain(first + 1..first + second);
    assert_eq!(ip.frames, held.map(|n| old.frames[n].clone()).collect::<Vec<_>>());
    // The NIC dies anew before ip has heard the last of them.
    let mut heard = Heard::new();
    heard.hear(&next, &again[..again.len() - 1]);
    let mut third = next.successor(Some(&heard.seen));
    let rest = third.connect();
    heard.frames.clear();
    heard.hear(&third, &rest[1..]);
    assert_eq!(heard.frames, ip.frames[ip.frames.len() - 1..]);
}

#[test]
fn what_a_mad_predecessor_wrote_does_no_harm() {
    let mut random = Random::new(7);
    let mut taken = 0;
    for _ in 0..2000 {
        let mut ip = Heard::new();
        let (mut b, _) = lives(&mut ip, None);
        let segment = b.nic.pool.view().segment.clone();
        for _ in 0..1 + random.below(20) {
            let at = SLOTS * 2048 + random.below(journal::len(SLOTS) as u64) as usize;
            segment.write(at, &[random.next_u64() as u8]).unwrap();
        }
        let mut next = b.successor(Some(&ip.seen).filter(|_| random.chance(0.5)));
        taken += next.connect().len() - 1;
        next.poll();
        next.nic.check();
    }
    assert!(taken > 5000, "{taken}");
}

//! What a signal's handler writes of the call in which a server dies: it is what a successor needs, and nothing is allocated for it.

use eft_base::{DomainId, Instant, PoolId, Random, SlotShare, SocketId};
use eft_channel::socket::{ARENA_HEADER_LEN, Arena, Geometry};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, Segment};
use eft_component::transport::Event;
use eft_component::{Component, Context, Occasion, Outbox};
use eft_record::durable::Durable;
use eft_record::file::{self, Writer};
use eft_record::life::Life;
use eft_record::makes::{self, Head};
use eft_record::recorder::Recorder;
use eft_record::recording::{Cause, End, Input, RecordedEvent};
use eft_record::replay::Failure;
use eft_transport::udp::{self, UdpConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;

thread_local! {
    /// Whether this thread may allocate.
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Counts what is allocated where nothing may be.
struct Strict;

// SAFETY: it only counts, and hands everything on.
unsafe impl GlobalAlloc for Strict {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if FORBIDDEN.get() {
            FORBIDDEN.set(false);
            panic!("{layout:?} is allocated in a handler");
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static STRICT: Strict = Strict;

/// A file that has its room, as one that the kernel keeps.
#[derive(Clone)]
struct Disk(Rc<RefCell<Vec<u8>>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut file = self.0.borrow_mut();
        assert!(file.len() + bytes.len() <= file.capacity());
        file.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// In this call a signal comes.
const DEADLY: u32 = 3;

/// udp hears of a domain and of doorbells, and dies of one of these after `bytes_max` bytes of a recording.
fn lives(bytes_max: usize) -> Life {
    let config = UdpConfig { sockets: 8, sockets_per_domain: 8, seed: 1, slots: SlotShare::UDP };
    let arena = Segment::heap(udp::arena_len(&config));
    let headers = Pool::new(PoolId(1), Segment::heap(64 * 256), 256);
    let durable = || Some(Durable::whole(arena.clone()));
    let head = Head::of(config, &[&headers], durable().as_ref());
    let disk = Disk(Rc::new(RefCell::new(Vec::with_capacity(64 << 20))));
    let log = Writer::new(disk.clone(), &head, bytes_max).unwrap();
    let (udp, make) = makes::udp(arena.clone(), headers, config, Default::default()).unwrap();
    thread_local!(static NOW: Cell<bool> = const { Cell::new(false) });
    let mut server = Recorder::new(udp, make, log).with_arena(durable()).with_calls(|die, call| {
        if NOW.get() {
            FORBIDDEN.set(true);
            die(Cause::Signal(11));
            FORBIDDEN.set(false);
        }
        call();
    });
    let geometry = Geometry { slots: 8, send_len: 4096, receive_len: 4096 };
    let pages = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
    pages.segment().write(ARENA_HEADER_LEN + geometry.stride(), &[7; 64]).unwrap();
    let (domain, pool) = (DomainId(5), PoolId(9));
    let (mut random, mut memory, status) = (Random::new(1), Memory::new(), Status::heap());
    memory.insert(pool, pages.view());
    let opened = Event::DomainOpened { domain, pool, arena: pages };
    let rings = (0..=DEADLY).map(|slot| Event::Dirty(SocketId { domain, slot }));
    for (n, event) in [opened].into_iter().chain(rings).enumerate() {
        NOW.set(n as u32 == DEADLY + 1);
        let mut cx = Context { now: Instant(1), random: &mut random, memory: &memory, status: &status };
        server.begin(Occasion::Event(&event));
        server.event(&mut cx, event, &mut Outbox::new());
    }
    let written = disk.0.borrow().clone();
    // The process would not have come so far.
    std::mem::forget(server);
    file::from_bytes(&written).unwrap()
}

#[test]
fn a_signal_after_the_recording_was_full_leaves_the_call_with_all_that_a_successor_needs() {
    let life = lives(1);
    let recording = life.recording.borrow();
    assert_eq!((recording.calls.len(), recording.end), (1, End::Full(1)));
    let last = recording.last.as_ref().expect("it is written");
    assert_eq!(last.cause, Cause::Signal(11));
    assert!(matches!(last.call.input, Input::Event(RecordedEvent::Dirty { slot: DEADLY, .. })));
    assert!(matches!(last.events[..], [RecordedEvent::Domain { domain: DomainId(5), .. }]));
    assert!(!last.arena.is_empty(), "udp's arena has a header");
    assert_eq!(life.last_input(last), "an event");
    let heap = |len| Some(Segment::heap(len));
    let mut calls = 0;
    let again = life.last_call(last, heap, None, &mut |_, call| {
        calls += 1;
        call()
    });
    assert_eq!((again, calls), (Err(Failure::Outlived(Cause::Signal(11))), 1));
}

#[test]
fn a_signal_before_that_leaves_all_calls_and_the_last_one_is_that_in_which_it_came() {
    let life = lives(1 << 20);
    let recording = life.recording.borrow();
    let cause = Cause::Signal(11);
    assert_eq!((recording.calls.len(), recording.end), (DEADLY as usize + 2, End::InCall(cause)));
    assert!(recording.last.is_none());
    let call = DEADLY as usize + 1;
    assert_eq!(life.again(&recording), Err(Failure::Survived { call, cause }));
}

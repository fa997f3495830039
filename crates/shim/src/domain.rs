//! The head of the domain's arena and the doorbells of its transports, mapped once at the start.
//!
//! Everything here lives until the process ends; nothing is ever unmapped, so the references that
//! the hot paths take are `'static`.

use crate::socket::Socket;
use crate::sys;
use core::ffi::c_int;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use eft_base::{ComponentId, Role};
use eft_channel::notify::{Doorbell, StateWord, Wake, ring_once};
use eft_channel::segment::Segment;
use eft_channel::shared::Shared;
use eft_channel::socket::{Arena, IDENTITY, IDENTITY_LEN, SocketPage};
use eft_channel::{
    dirty::Dirty,
    status::{STATUS_LEN, Status},
};
use eft_messages::control::InfoHeader;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// How a domain reaches one transport.
struct Bell {
    transport: ComponentId,
    state: Shared<StateWord>,
    doorbell: Shared<Doorbell>,
    dirty: Dirty,
}

/// Spare places: threads that make the handle of one slot at the same time waste one each.
const PLACES_SPARE: usize = 4096;

pub struct Domain {
    pub arena: Arena,
    /// The arena's memory, of which [`Domain::arena`] is the beginning: each slot is mapped when it is first used,
    /// so that a program's limit of address space (RLIMIT_AS) counts only the sockets that it has.
    memory: AtomicI32,
    /// An eventfd, for transports that sleep on descriptors.
    eventfd: AtomicI32,
    /// By role and instance.
    bells: [Vec<Bell>; 2],
    /// The handle of each slot, or null.
    sockets: &'static [AtomicPtr<Socket>],
    /// The `keep` of every slot's segment: it holds nothing, since no slot is ever unmapped. Made once, since a slot may be
    /// mapped in a signal handler, where allocation is forbidden.
    keep: Arc<()>,
    /// Memory for handles, used one after the other.
    places: *mut Socket,
    places_used: AtomicUsize,
    /// The count of [`Arena::stacks`] at which the pages of `bells` were mapped.
    stacks: AtomicU32,
}

static DOMAIN: AtomicPtr<Domain> = AtomicPtr::new(core::ptr::null_mut());

/// The domain, once the constructor has run.
#[inline]
pub fn domain() -> Option<&'static Domain> {
    // SAFETY: null, or leaked by `install`.
    unsafe { DOMAIN.load(Ordering::Acquire).as_ref() }
}

/// Tells the transport of a socket that the socket has changed.
pub fn notify(socket: &Socket) {
    if let Some(domain) = domain() {
        domain.notify(socket);
    }
}

/// The application took bytes: notifies the transport if it asked for that, since its window may open noticeably.
pub fn notify_taken(socket: &Socket) {
    core::sync::atomic::fence(Ordering::SeqCst);
    if socket.page.receive_taken() >= socket.page.receive_notify() {
        notify(socket);
    }
}

impl Domain {
    /// `None` if memory is out.
    pub fn new(
        arena: Arena,
        memory: c_int,
        eventfd: c_int,
        transports: Vec<(ComponentId, Status)>,
    ) -> Option<Domain> {
        let bell = |(transport, status): (ComponentId, Status)| Bell {
            transport,
            state: status.state(),
            doorbell: arena.doorbell(transport),
            dirty: arena.dirty(transport),
        };
        let slots = arena.geometry().slots;
        let places: *mut Socket = sys::map_anonymous((slots + PLACES_SPARE) * size_of::<Socket>()).cast();
        // Mapped, too: most slots are never used, and cost no memory then.
        let sockets: *mut AtomicPtr<Socket> =
            sys::map_anonymous(slots * size_of::<AtomicPtr<Socket>>()).cast();
        let (udp, tcp) = transports.into_iter().map(bell).partition(|bell| bell.transport.role == Role::Udp);
        (!places.is_null() && !sockets.is_null()).then(|| Domain {
            bells: [tcp, udp],
            memory: AtomicI32::new(memory),
            eventfd: AtomicI32::new(eventfd),
            keep: Arc::new(()),
            places,
            places_used: AtomicUsize::new(0),
            stacks: AtomicU32::new(arena.stacks().load(Ordering::Acquire)),
            // SAFETY: as many fit, zeroed, which is null; mapped for good.
            sockets: unsafe { core::slice::from_raw_parts(sockets, slots) },
            arena,
        })
    }

    /// Makes this the process's domain, permanently.
    pub fn install(self) {
        DOMAIN.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    pub fn has_udp(&self) -> bool {
        !self.bells[1].is_empty()
    }

    /// Tells the socket's transport that the socket has changed, and wakes the transport if it sleeps.
    pub fn notify(&self, socket: &Socket) {
        let Some(owner) = socket.page.owner() else { return };
        let of_role = &self.bells[usize::from(owner.role == Role::Udp)];
        let Some(bell) = of_role.get(usize::from(owner.instance)) else { return };
        bell.dirty.mark(socket.slot as usize);
        // The state word of an earlier stack does not say whether, or how, this one sleeps.
        let (wake, stale) = (ring_once(&bell.doorbell, &bell.state), self.is_stale());
        if wake == Wake::Futex || stale {
            sys::futex_wake(bell.doorbell.word().as_ptr());
        }
        if wake == Wake::Descriptor || stale {
            sys::ring_eventfd(self.eventfd.load(Ordering::Relaxed));
        }
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.arena.stacks().load(Ordering::Relaxed) != self.stacks.load(Ordering::Relaxed)
    }

    /// Whether the stack has ended and no other of its name has replaced it yet.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.arena.stacks().load(Ordering::Acquire) % 2 == 1
    }

    /// A process said hello, and got these transports' status pages: maps the present stack's pages over those of an earlier one.
    pub fn renew(&self, status: &[(ComponentId, c_int)]) {
        let stacks = self.arena.stacks().load(Ordering::Acquire);
        if stacks == self.stacks.load(Ordering::Relaxed) {
            return;
        }
        let renewed = self.bells.iter().flatten().all(|bell| {
            let Some((_, fd)) = status.iter().find(|(id, _)| *id == bell.transport) else { return false };
            sys::map_over(*fd, (&raw const *bell.state).cast_mut().cast(), STATUS_LEN).is_ok()
        });
        if renewed {
            self.stacks.store(stacks, Ordering::Relaxed);
        }
    }

    /// The process's handle of a slot, made at its first use; `None` beyond the arena.
    pub fn socket(&self, slot: u32) -> Option<&'static Socket> {
        let cell = self.sockets.get(slot as usize)?;
        let known = cell.load(Ordering::Acquire);
        // SAFETY: null, or a handle made below, which lives for good.
        if let Some(socket) = unsafe { known.as_ref() } {
            return Some(socket);
        }
        let page = self.map(slot)?;
        let made = self.place()?;
        // SAFETY: a place of our own, large enough and aligned.
        unsafe { made.write(Socket::new(slot, page)) };
        match cell.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: written just now.
            Ok(_) => unsafe { made.as_ref() },
            // Another thread was first; our place is lost, but there are spare ones.
            // SAFETY: as above, by that thread.
            Err(theirs) => unsafe { theirs.as_ref() },
        }
    }

    /// Maps a slot. `None` if the program's address space is exhausted.
    fn map(&self, slot: u32) -> Option<SocketPage> {
        let geometry = self.arena.geometry();
        let (offset, len) = (geometry.offset_of(slot), geometry.stride());
        let memory = self.memory.load(Ordering::Relaxed);
        let pointer = NonNull::new(sys::map_shared(memory, offset, len, true).ok()?)?;
        // SAFETY: mapped for good, page-aligned, writable.
        let segment = unsafe { Segment::from_raw(pointer, len, true, self.keep.clone()) };
        SocketPage::alone(segment, geometry).ok()
    }

    /// Kind and inode of a slot, mapped or not.
    pub fn identity(&self, slot: u32) -> (u32, u64) {
        let mut bytes = [0; IDENTITY_LEN];
        let at = (self.arena.geometry().offset_of(slot) + IDENTITY) as i64;
        let memory = self.memory.load(Ordering::Relaxed);
        // SAFETY: the bytes are ours.
        match unsafe { sys::read_into(memory, bytes.as_mut_ptr(), IDENTITY_LEN, Some(at)) } {
            Ok(IDENTITY_LEN) => SocketPage::identity(&bytes),
            _ => (0, 0),
        }
    }

    /// Notes that a descriptor of the domain was moved off a number that the program wants. False if `from` is not one.
    pub fn move_descriptor(&self, from: c_int, to: c_int) -> bool {
        [&self.memory, &self.eventfd]
            .iter()
            .any(|fd| fd.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// Memory for one handle. Not from malloc: accept and connect may be called in signal handlers.
    fn place(&self) -> Option<*mut Socket> {
        let i = self.places_used.fetch_add(1, Ordering::Relaxed);
        // SAFETY: within the mapping.
        (i < self.sockets.len() + PLACES_SPARE).then(|| unsafe { self.places.add(i) })
    }

    /// As [`Domain::socket`], but makes no handle: for the hot paths, after the table said that the slot is in use.
    #[inline]
    pub fn known_socket(&self, slot: u32) -> Option<&'static Socket> {
        let cell = self.sockets.get(slot as usize)?;
        // SAFETY: null, or made by `socket`.
        unsafe { cell.load(Ordering::Acquire).as_ref() }
    }

    /// The head of the info page and the bytes after it.
    pub fn info(&self) -> (InfoHeader, Vec<u8>) {
        let mut bytes = vec![0; 4096];
        let len = self.arena.read_info(&mut bytes);
        bytes.truncate(len);
        match InfoHeader::read_from_prefix(&bytes) {
            Ok((header, rest)) => (header, rest.to_vec()),
            Err(_) => (InfoHeader::default(), Vec::new()),
        }
    }

    /// Changes with the lives of sockets, and with the number of the stack's addresses.
    pub fn info_version(&self) -> u64 {
        let mut header = InfoHeader::default();
        self.arena.read_info(header.as_mut_bytes());
        u64::from(header.sockets_generation) << 16 | u64::from(header.interfaces) & 0xffff
    }

    /// Which life of sockets this is.
    pub fn sockets_generation(&self) -> u32 {
        let mut header = InfoHeader::default();
        self.arena.read_info(header.as_mut_bytes());
        header.sockets_generation
    }
}

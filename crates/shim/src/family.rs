//! The family's arena and the bells of its transports, mapped once at the start.
//!
//! Everything here lives until the process ends; nothing is ever unmapped, so the references that
//! the hot paths take are `'static`.

use crate::socket::Socket;
use crate::sys;
use core::sync::atomic::{AtomicPtr, Ordering};
use eft_channel::memory::PoolView;
use eft_channel::notify::{Doorbell, StateWord, Wake, ring_once};
use eft_channel::shared::Shared;
use eft_channel::socket::{Arena, Transport};
use eft_channel::{dirty::Dirty, status::Status};
use eft_messages::control::InfoHeader;
use zerocopy::{FromBytes, IntoBytes};

/// How a family reaches one transport.
struct Bell {
    state: Shared<StateWord>,
    doorbell: Shared<Doorbell>,
    dirty: Dirty,
}

pub struct Family {
    pub arena: Arena,
    /// How packet references point into the arena; gives the addresses of ring bytes.
    pub view: PoolView,
    tcp: Bell,
    udp: Option<Bell>,
    sockets: Box<[AtomicPtr<Socket>]>,
}

static FAMILY: AtomicPtr<Family> = AtomicPtr::new(core::ptr::null_mut());

/// The family, once the constructor has run.
#[inline]
pub fn family() -> Option<&'static Family> {
    // SAFETY: null, or leaked by `install`.
    unsafe { FAMILY.load(Ordering::Acquire).as_ref() }
}

impl Family {
    pub fn new(arena: Arena, tcp: Status, udp: Option<Status>) -> Family {
        let bell = |status: Status, transport| Bell {
            state: status.state(),
            doorbell: arena.doorbell(transport),
            dirty: arena.dirty(transport),
        };
        Family {
            tcp: bell(tcp, Transport::Tcp),
            udp: udp.map(|status| bell(status, Transport::Udp)),
            view: arena.view(),
            sockets: (0..arena.geometry().slots).map(|_| AtomicPtr::new(core::ptr::null_mut())).collect(),
            arena,
        }
    }

    /// Makes this the process's family, for good.
    pub fn install(self) {
        FAMILY.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    pub fn has_udp(&self) -> bool {
        self.udp.is_some()
    }

    /// Tells the transport of `slot` that its socket has news, and wakes it if it sleeps. Even
    /// slots are TCP's.
    pub fn notify(&self, slot: u32) {
        let bell = match slot % 2 {
            0 => &self.tcp,
            _ => match &self.udp {
                Some(bell) => bell,
                None => return,
            },
        };
        bell.dirty.mark(slot as usize);
        // A transport never sleeps on descriptors alone, so Wake::Descriptor needs nothing: such a
        // sleep also ends by the doorbell that it watches.
        if ring_once(&bell.doorbell, &bell.state) == Wake::Futex {
            sys::futex_wake(bell.doorbell.word().as_ptr());
        }
    }

    /// The process's handle of a slot, made at its first use; `None` beyond the arena.
    pub fn socket(&self, slot: u32) -> Option<&'static Socket> {
        let cell = self.sockets.get(slot as usize)?;
        let known = cell.load(Ordering::Acquire);
        // SAFETY: null, or leaked below.
        if let Some(socket) = unsafe { known.as_ref() } {
            return Some(socket);
        }
        let made = Box::into_raw(Box::new(Socket::new(slot, self.arena.socket(slot)?)));
        match cell.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked just now.
            Ok(_) => unsafe { made.as_ref() },
            Err(theirs) => {
                // SAFETY: `made` was not published; `theirs` was leaked by another thread.
                unsafe {
                    drop(Box::from_raw(made));
                    theirs.as_ref()
                }
            }
        }
    }

    /// As [`Family::socket`], but never allocates: for the hot paths, after the table said that the
    /// slot is in use.
    #[inline]
    pub fn known_socket(&self, slot: u32) -> Option<&'static Socket> {
        let cell = self.sockets.get(slot as usize)?;
        // SAFETY: null, or leaked by `socket`.
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

    /// Which life of sockets this is.
    pub fn sockets_generation(&self) -> u32 {
        let mut header = InfoHeader::default();
        self.arena.read_info(header.as_mut_bytes());
        header.sockets_generation
    }
}

//! What an application shares with its transport: one arena per domain, one page and two rings per
//! socket.
//!
//! ```text
//! arena:  info page | doorbells | dirty bitmaps | lookers | slot 0 | slot 1 | …
//! slot:   header page (4 KiB) | send ring | receive ring
//! ```
//!
//! Positions are stream offsets in bytes since the socket began (64 bits: they never wrap); a ring index is the offset modulo
//! the ring's length, a power of two. The transport publishes `send_released` and `receive_end`, the application `send_end`
//! and `receive_taken`. Each side keeps its own positions privately and checks what the other publishes: the domain that maps
//! an arena may overwrite anything in it, and that must hurt this domain alone.
//!
//! Streams put bare bytes into the rings. Datagram sockets put records (a [`DatagramHeader`], then
//! the payload, padded to 8). A listener's receive ring holds [`AcceptRecord`]s.

pub mod authentication;
mod datagram;
mod errors;
mod option;
pub mod pacing;
mod page;
mod records;
pub mod signature_keys;
mod stamps;
mod statistics;
mod urgent;

pub use authentication::{AuthenticationStatus, AuthenticationWishes, KeyCounts};
pub use datagram::{
    DatagramHeader, PAYLOAD_MAX, SEGMENTS_MAX, datagram_record_len, marks, payload_max, wanted,
};
pub use errors::{ERRORS_MAX, ErrorRecord, QUOTE_MAX, RECORD_STAMPS_MAX, STAMPED};
pub use option::{Opt, cork, early, flow, fragment};
pub use page::{
    COOKIE_KEYS_MAX, IDENTITY, IDENTITY_LEN, KIND, OWNER, RECEIVE_LOCK, SEND_LOCK, SHIM_WORDS, SendRoom,
    SocketPage,
};
pub use records::RECORDS_MAX;
pub use signature_keys::{KEY_BYTES_MAX, SignatureKey};
pub use stamps::{STAMP_REQUESTS_MAX, STAMPS_MAX, Stamp, stamped, stamping};
pub use statistics::SocketStatistics;
pub use urgent::{Step, Urgent};

use crate::access::AccessObserver;
use crate::dirty::{DIRTY_LEN, DIRTY_SLOTS, Dirty};
use crate::lookers::{LOOKER_LEN, LOOKERS_MAX, Looker};
use crate::memory::PoolView;
use crate::notify::Doorbell;
use crate::segment::{OutOfBounds, Segment};
use crate::shared::Shared;
use crate::sleepers::Sleepers;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use eft_base::{ComponentId, Role, WireAddress};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of everything in this module and of the requests that programs send: it grows when a release changes them.
///
/// A program keeps the shim that it started with, and shares its pages with programs that started later. So a version may only
/// give a meaning to bytes that were 0 before, and must not rely on anything that the previous one neither writes nor reads
/// ([`SocketPage::owner_of`] shows how).
#[cfg(not(feature = "next-layout"))]
pub const LAYOUT_VERSION: u32 = 7;
#[cfg(feature = "next-layout")]
pub const LAYOUT_VERSION: u32 = 8;
/// The oldest version that a server speaks: the previous release's. None was released before 7.
pub const LAYOUT_OLDEST: u32 = 7;
const _: () = assert!(LAYOUT_OLDEST + 1 >= LAYOUT_VERSION);

/// Whether a server speaks to programs of this version. Programs of other versions are refused instead of being misread.
pub fn speaks(version: u32) -> bool {
    (LAYOUT_OLDEST..=LAYOUT_VERSION).contains(&version)
}

/// Bytes before slot 0.
pub const ARENA_HEADER_LEN: usize = 1 << 20;
/// Bytes of a slot before its rings.
pub const SOCKET_HEADER_LEN: usize = 4096;

const DOORBELLS: usize = 4096;
/// Transports of one role that a stack may have.
pub const INSTANCES_MAX: usize = 8;
/// Doorbells and dirty bitmaps: tcp, udp, tcp1, udp1, and so on.
const LANES: usize = 2 * INSTANCES_MAX;
/// After the doorbells of the first tcp and udp.
const STACKS: usize = DOORBELLS + 2 * 64;
const DIRTY_MAPS: usize = 8192;
const LOOKERS: usize = 544768;
const _: () = assert!(
    DOORBELLS + (LANES + 1) * 64 <= DIRTY_MAPS
        && DIRTY_MAPS + LANES * (DIRTY_LEN + 64) <= LOOKERS
        && LOOKERS + LOOKERS_MAX * LOOKER_LEN <= ARENA_HEADER_LEN
);

/// The place of a transport among the doorbells and bitmaps.
fn lane(transport: ComponentId) -> usize {
    debug_assert!(transport.role.is_transport());
    let instance = transport.instance as usize % INSTANCES_MAX;
    2 * instance + (transport.role == Role::Udp) as usize
}

/// Where a transport's doorbell lies.
fn bell(transport: ComponentId) -> usize {
    let lane = lane(transport);
    DOORBELLS + (lane + usize::from(lane > 1)) * 64
}

/// Offset of the count of touched slots in a doorbell's line.
const TOUCHED: usize = 32;

/// How an arena is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sockets, at most [`DIRTY_SLOTS`]. The page of each says which transport owns it ([`SocketPage::owner`]).
    pub slots: usize,
    /// Most bytes of each send ring; a power of two. It begins with fewer ([`Geometry::first_send_len`]).
    pub send_len: usize,
    /// Bytes of each receive ring; a power of two.
    pub receive_len: usize,
}

impl Geometry {
    /// Bytes from one slot to the next.
    pub fn stride(&self) -> usize {
        SOCKET_HEADER_LEN + self.send_len + self.receive_len
    }

    /// Bytes with which a send ring begins: a quarter, but what the largest datagram needs. That of a stream grows when what is in
    /// flight needs it, so only such streams use all of their memory.
    pub fn first_send_len(&self) -> usize {
        page::first_send_len(self.send_len)
    }

    /// Where a slot begins in its arena.
    pub fn offset_of(&self, slot: u32) -> usize {
        ARENA_HEADER_LEN + slot as usize * self.stride()
    }

    pub fn arena_len(&self) -> usize {
        ARENA_HEADER_LEN + self.slots * self.stride()
    }

    pub fn is_valid(&self) -> bool {
        (1..=DIRTY_SLOTS).contains(&self.slots)
            && self.send_len.is_power_of_two()
            && self.receive_len.is_power_of_two()
            && (4096..=1 << 26).contains(&self.send_len)
            && (4096..=1 << 26).contains(&self.receive_len)
    }
}

/// A domain's arena, as either side maps it.
#[derive(Clone)]
pub struct Arena {
    segment: Segment,
    geometry: Geometry,
    /// Of where it lies and how it is cut.
    sum: usize,
    observer: Option<Arc<dyn AccessObserver>>,
}

impl Arena {
    pub fn new(segment: Segment, geometry: Geometry) -> Result<Arena, OutOfBounds> {
        if !geometry.is_valid() {
            return Err(OutOfBounds);
        }
        segment.range(0, geometry.arena_len())?;
        Ok(Arena::at(segment, geometry))
    }

    /// The beginning of an arena, without its slots: what a program maps at once. It maps those that it uses
    /// one by one ([`SocketPage::alone`]).
    pub fn head(segment: Segment, geometry: Geometry) -> Result<Arena, OutOfBounds> {
        if !geometry.is_valid() {
            return Err(OutOfBounds);
        }
        segment.range(0, ARENA_HEADER_LEN)?;
        Ok(Arena::at(segment, geometry))
    }

    /// The same arena, for a transport whose accesses `observer` sees: see [`crate::access`].
    pub fn observed_by(self, observer: Arc<dyn AccessObserver>) -> Arena {
        Arena { observer: Some(observer), ..self }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// How packet references point into this arena: slot = socket slot, offset from the slot's header.
    pub fn view(&self) -> PoolView {
        PoolView::new(self.segment.clone(), ARENA_HEADER_LEN, self.geometry.stride(), self.geometry.slots)
    }

    /// The word on which the domain rings `transport`.
    pub fn doorbell(&self, transport: ComponentId) -> Shared<Doorbell> {
        // SAFETY: Doorbell is one atomic; within the checked header.
        unsafe { self.segment.shared(bell(transport)) }.expect("arena length was checked")
    }

    /// How often a stack of this domain ended or returned: odd while there is none. The domain's custodian
    /// counts.
    #[inline]
    pub fn stacks(&self) -> &AtomicU32 {
        self.segment.atomic_u32(STACKS).expect("arena length was checked")
    }

    /// The transport has given out no slot from `end` on yet.
    pub fn touch(&self, transport: ComponentId, end: u32) {
        self.touched_by(bell(transport)).fetch_max(end, Ordering::AcqRel);
    }

    /// All slots that were ever given out lie before this one: the end for code that walks over all slots.
    pub fn touched(&self) -> u32 {
        let instances = 0..INSTANCES_MAX as u8;
        let all = instances.flat_map(|i| [Role::Tcp, Role::Udp].map(|role| ComponentId::new(role, i)));
        let end = all.map(|transport| self.touched_by(bell(transport)).load(Ordering::Acquire)).max();
        end.unwrap_or(0).min(self.geometry.slots as u32)
    }

    fn touched_by(&self, bell: usize) -> &AtomicU32 {
        self.segment.atomic_u32(bell + TOUCHED).expect("arena length was checked")
    }

    pub fn dirty(&self, transport: ComponentId) -> Dirty {
        let offset = DIRTY_MAPS + lane(transport) * (DIRTY_LEN + 64);
        Dirty::new(self.segment.clone(), offset).expect("arena length was checked")
    }

    /// The page of a socket; `None` if there is no such slot, or if only the head is mapped.
    pub fn socket(&self, slot: u32) -> Option<SocketPage> {
        if slot as usize >= self.geometry.slots {
            return None;
        }
        let base = self.geometry.offset_of(slot);
        self.segment.range(base, self.geometry.stride()).ok()?;
        self.check_place();
        Some(SocketPage::at(self.segment.clone(), base, self.geometry, self.observer.clone()))
    }

    /// Threads that sleep on the page of this slot.
    pub fn sleepers(&self, slot: u32) -> Option<&Sleepers> {
        if slot as usize >= self.geometry.slots {
            return None;
        }
        // SAFETY: one atomic.
        unsafe { self.segment.view(self.geometry.offset_of(slot) + page::SLEEPERS) }.ok()
    }

    /// The looker of this number; `None` if there is none.
    pub fn looker(&self, number: u32) -> Option<&Looker> {
        if number as usize >= LOOKERS_MAX {
            return None;
        }
        // SAFETY: atomics only.
        unsafe { self.segment.view(LOOKERS + number as usize * LOOKER_LEN) }.ok()
    }

    /// The stack's addresses, for `getifaddrs` and the interface ioctls: plain bytes that sockets
    /// writes once per change (`messages::control::InterfaceInfo` records).
    pub fn write_info(&self, bytes: &[u8]) -> Result<(), OutOfBounds> {
        if bytes.len() + 8 > DOORBELLS {
            return Err(OutOfBounds);
        }
        self.segment.write(8, bytes)?;
        self.segment.atomic_u64(0)?.store(bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Copies the info bytes out; returns how many were copied.
    pub fn read_info(&self, to: &mut [u8]) -> usize {
        let len = self.segment.atomic_u64(0).map_or(0, |l| l.load(Ordering::Acquire)) as usize;
        let len = len.min(DOORBELLS - 8).min(to.len());
        if self.segment.read(8, &mut to[..len]).is_ok() { len } else { 0 }
    }
}

/// Bits of [`SocketPage::flags`], set by the transport.
pub mod flag {
    /// No more bytes will come: the peer sent FIN, or the connection ended.
    pub const RECEIVE_END: u32 = 1;
    /// The connection is dead (reset, timed out, refused); the error word says why.
    pub const DEAD: u32 = 2;
    /// The connection is established (or was).
    pub const CONNECTED: u32 = 4;
    /// Listening.
    pub const LISTENING: u32 = 8;
    /// A connect is under way.
    pub const CONNECTING: u32 = 16;
    /// The transport no longer uses this socket; writes fail with EPIPE.
    pub const SEND_CLOSED: u32 = 32;
    /// The peer sent FIN, and all before it has come.
    pub const FINISHED: u32 = 64;
}

/// Bits of [`SocketPage::wishes`], set by the application.
pub mod wish {
    /// `shutdown(SHUT_RD)`.
    pub const SHUT_READ: u32 = 1;
    /// `shutdown(SHUT_WR)`: FIN after the last byte.
    pub const SHUT_WRITE: u32 = 2;
    /// Report new input also while older input is not taken: some epoll set is edge-triggered or waits exclusively.
    pub const EDGES: u32 = 4;
    /// Urgent data were put in ([`super::SocketPage::send_urgent`]).
    pub const SENDS_URGENT: u32 = 8;
    /// Report an urgent byte also when there is nothing else: somebody waits for it (POLLPRI), or it comes in line.
    pub const WANTS_URGENT: u32 = 16;
    /// An accepted connection that has no descriptor of its own: the process whose connection to sockets the page names
    /// ([`super::SocketPage::holder`]) has taken it. While this is set, it is attached.
    pub const HELD: u32 = 32;
    /// It is closed, which of one that is held no descriptor shows.
    pub const CLOSED: u32 = 64;
}

/// Numbers for `TCP_INFO` and `eft ss`, written by the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SocketInfo {
    /// The number of the TCP state as Linux names them (1 established … 11 closing).
    pub tcp_state: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub rto_us: u32,
    pub cwnd_bytes: u32,
    pub ssthresh_bytes: u32,
    /// Of a datagram socket: the largest packet that fits the way to its peer, as a router has told; 0: none has.
    pub mss: u32,
    pub retransmits: u32,
    pub unacked_bytes: u32,
    pub peer_window: u32,
    pub send_scale: u8,
    pub receive_scale: u8,
    pub options: u8,
    pub reserved: u8,
    /// The last path error, if nothing has been acknowledged since (Linux's `sk_err_soft`), and how many came, modulo 256.
    pub soft_error: u16,
    pub soft_errors: u8,
    /// 1: our FIN is sent or waits, and is not acknowledged.
    pub unfinished: u8,
}

/// A connection waiting in a listener's ring. 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AcceptRecord {
    /// The connection's slot in this arena.
    pub slot: u32,
    /// Its incarnation (see [`SocketPage::incarnation`]).
    pub incarnation: u32,
    pub remote: WireAddress,
    pub local: WireAddress,
    pub remote_port: u16,
    pub local_port: u16,
    pub reserved: [u8; 20],
}

#[cfg(test)]
mod tests;

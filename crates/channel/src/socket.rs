//! What an application shares with its transport: one arena per family, one page and two rings per
//! socket.
//!
//! ```text
//! arena:  info page | doorbells | dirty bitmaps | slot 0 | slot 1 | …
//! slot:   header page (4 KiB) | send ring | receive ring
//! ```
//!
//! Positions are stream offsets in bytes since the socket began (64 bits: they never wrap); a ring
//! index is the offset modulo the ring's length, a power of two. The transport publishes
//! `send_released` and `receive_end`, the application `send_end` and `receive_taken`. Each side
//! keeps its own positions privately and checks what the other publishes: everything in an arena
//! may be scribbled over by the family that maps it, and that must hurt this family alone.
//!
//! Streams put bare bytes into the rings. Datagram sockets put records (a [`DatagramHeader`], then
//! the payload, padded to 8). A listener's receive ring holds [`AcceptRecord`]s.

use crate::dirty::{DIRTY_LEN, DIRTY_SLOTS, Dirty};
use crate::memory::PoolView;
use crate::notify::Doorbell;
use crate::segment::{OutOfBounds, Segment};
use crate::shared::Shared;
use crate::token::{ReadToken, WritePlug};
use crate::witness::Witness;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use eft_base::{Endpoint, PacketRef, PoolId, WireAddress};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of everything in this file. A program keeps the shim that it started with, so a server
/// refuses a family of another version instead of misreading it.
pub const LAYOUT_VERSION: u32 = 4;

/// Bytes before slot 0.
pub const ARENA_HEADER_LEN: usize = 65536;
/// Bytes of a slot before its rings.
pub const SOCKET_HEADER_LEN: usize = 4096;

const DOORBELLS: usize = 4096;
const DIRTY_MAPS: usize = 8192;
const _: () = assert!(DIRTY_MAPS + 2 * (DIRTY_LEN + 64) <= ARENA_HEADER_LEN);

/// The two transports that an application can ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transport {
    Tcp = 0,
    Udp = 1,
}

/// How an arena is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sockets, at most [`DIRTY_SLOTS`]. Even slots belong to TCP, odd ones to UDP.
    pub slots: usize,
    /// Bytes of each send ring; a power of two.
    pub send_len: usize,
    /// Bytes of each receive ring; a power of two.
    pub receive_len: usize,
}

impl Geometry {
    /// Bytes from one slot to the next.
    pub fn stride(&self) -> usize {
        SOCKET_HEADER_LEN + self.send_len + self.receive_len
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

/// A family's arena, as either side maps it.
#[derive(Clone)]
pub struct Arena {
    segment: Segment,
    geometry: Geometry,
    witness: Option<Arc<dyn Witness>>,
}

impl Arena {
    pub fn new(segment: Segment, geometry: Geometry) -> Result<Arena, OutOfBounds> {
        if !geometry.is_valid() {
            return Err(OutOfBounds);
        }
        segment.range(0, geometry.arena_len())?;
        Ok(Arena { segment, geometry, witness: None })
    }

    /// The same arena, for a transport that `witness` looks at: see [`crate::witness`].
    pub fn witnessed(self, witness: Arc<dyn Witness>) -> Arena {
        Arena { witness: Some(witness), ..self }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// How packet references point into this arena: slot = socket slot, offset from its header.
    pub fn view(&self) -> PoolView {
        PoolView {
            segment: self.segment.clone(),
            base: ARENA_HEADER_LEN,
            slot_size: self.geometry.stride(),
            slots: self.geometry.slots,
        }
    }

    /// The word on which the family rings `transport`.
    pub fn doorbell(&self, transport: Transport) -> Shared<Doorbell> {
        // SAFETY: Doorbell is one atomic; within the checked header.
        unsafe { self.segment.shared(DOORBELLS + transport as usize * 64) }.expect("arena length was checked")
    }

    pub fn dirty(&self, transport: Transport) -> Dirty {
        let offset = DIRTY_MAPS + transport as usize * (DIRTY_LEN + 64);
        Dirty::new(self.segment.clone(), offset).expect("arena length was checked")
    }

    /// The page of a socket; `None` if there is no such slot.
    pub fn socket(&self, slot: u32) -> Option<SocketPage> {
        if slot as usize >= self.geometry.slots {
            return None;
        }
        let base = ARENA_HEADER_LEN + slot as usize * self.geometry.stride();
        Some(SocketPage {
            segment: self.segment.clone(),
            base,
            send_len: self.geometry.send_len,
            receive_len: self.geometry.receive_len,
            witness: self.witness.clone(),
        })
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
}

/// Bits of [`SocketPage::wishes`], set by the application.
pub mod wish {
    /// `shutdown(SHUT_RD)`.
    pub const SHUT_READ: u32 = 1;
    /// `shutdown(SHUT_WR)`: FIN after the last byte.
    pub const SHUT_WRITE: u32 = 2;
    /// Report news also while older ones are not taken: some epoll set is edge-triggered.
    pub const EDGES: u32 = 4;
}

/// Options that the application writes and the transport reads; 32-bit words, zero is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Opt {
    NoDelay = 0,
    Cork,
    KeepAlive,
    /// Seconds; 0 means the default of 7200.
    KeepIdle,
    /// Seconds; 0 means 75.
    KeepInterval,
    /// Probes; 0 means 9.
    KeepCount,
    /// Milliseconds (TCP_USER_TIMEOUT); 0 means none.
    UserTimeout,
    /// 0: not set; n: SO_LINGER with n-1 seconds.
    Linger,
    /// Bytes of SO_RCVBUF; 0 means the ring's length.
    ReceiveBuffer,
    /// Bytes of SO_SNDBUF; 0 means the ring's length.
    SendBuffer,
    Tos,
    /// 0 means the default of 64.
    Ttl,
    Broadcast,
    QuickAck,
    /// 0 default; 1 + algorithm: 1 CUBIC, 2 NewReno.
    Congestion,
    /// Bit 0: don't fragment (IP_MTU_DISCOVER); for UDP.
    DontFragment,
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
    pub mss: u32,
    pub retransmits: u32,
    pub unacked_bytes: u32,
    pub peer_window: u32,
    pub send_scale: u8,
    pub receive_scale: u8,
    pub options: u8,
    pub reserved: [u8; 5],
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

/// Before each datagram in a ring. 48 bytes; the payload is padded to a multiple of 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DatagramHeader {
    /// Bytes of payload.
    pub len: u32,
    /// The other side's port.
    pub port: u16,
    /// Our port.
    pub local_port: u16,
    /// The other side's address: source when received, destination when sent.
    pub address: WireAddress,
    /// Our address: destination when received; when sent, unspecified lets ip choose.
    pub local: WireAddress,
    pub ttl: u8,
    pub tos: u8,
    pub reserved: [u8; 6],
}

/// Bytes that a datagram of `len` occupies in a ring.
pub const fn datagram_record_len(len: usize) -> usize {
    size_of::<DatagramHeader>() + len.next_multiple_of(8)
}

const SEND_RELEASED: usize = 0;
const RECEIVE_END: usize = 8;
const FLAGS: usize = 16;
const RECEIVE_NOTIFY: usize = 24;
const TWIN_NEWS: usize = 32;
const SEND_END: usize = 64;
const WISHES: usize = 72;
const RECEIVE_TAKEN: usize = 128;
const READ_TOKEN: usize = 208;
const WRITE_PLUG: usize = 196;
const ERROR: usize = 200;
const INCARNATION: usize = 204;
const OPTIONS: usize = 256;
const LOCAL: usize = 320;
const REMOTE: usize = 344;
const INODE: usize = 384;
const KIND: usize = 392;
const INFO: usize = 448;
/// Where the application's two locks lie (64 bytes each; the shim's matter).
pub const SEND_LOCK: usize = 512;
pub const RECEIVE_LOCK: usize = 576;
/// Words for the shim's own use, shared by the family (256 bytes).
pub const SHIM_WORDS: usize = 640;

/// One socket's header and rings. Offsets of the ring methods are stream offsets.
#[derive(Clone)]
pub struct SocketPage {
    segment: Segment,
    base: usize,
    send_len: usize,
    receive_len: usize,
    witness: Option<Arc<dyn Witness>>,
}

macro_rules! word {
    ($(#[$doc:meta])* $get:ident, $set:ident, $offset:expr) => {
        $(#[$doc])*
        pub fn $get(&self) -> u64 {
            self.load_u64($offset)
        }
        pub fn $set(&self, value: u64) {
            self.store_u64($offset, value)
        }
    };
}

impl SocketPage {
    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        self.segment.atomic_u64(self.base + offset).expect("slot lies in the arena")
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        self.segment.atomic_u32(self.base + offset).expect("slot lies in the arena")
    }

    // All of a page passes through these, and so past the witness.

    fn load_u64(&self, offset: usize) -> u64 {
        let value = self.u64_at(offset).load(Ordering::Acquire);
        match &self.witness {
            None => value,
            Some(w) => {
                let mut bytes = value.to_le_bytes();
                w.read(self.base + offset, &mut bytes);
                u64::from_le_bytes(bytes)
            }
        }
    }

    fn load_u32(&self, offset: usize) -> u32 {
        let value = self.u32_at(offset).load(Ordering::Acquire);
        match &self.witness {
            None => value,
            Some(w) => {
                let mut bytes = value.to_le_bytes();
                w.read(self.base + offset, &mut bytes);
                u32::from_le_bytes(bytes)
            }
        }
    }

    fn store_u64(&self, offset: usize, value: u64) {
        self.u64_at(offset).store(value, Ordering::Release);
        self.tell_wrote(offset, &value.to_le_bytes());
    }

    fn store_u32(&self, offset: usize, value: u32) {
        self.u32_at(offset).store(value, Ordering::Release);
        self.tell_wrote(offset, &value.to_le_bytes());
    }

    fn read_bytes(&self, offset: usize, to: &mut [u8]) {
        self.segment.read(self.base + offset, to).expect("slot lies in the arena");
        if let Some(w) = &self.witness {
            w.read(self.base + offset, to);
        }
    }

    fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        self.segment.write(self.base + offset, bytes).expect("slot lies in the arena");
        self.tell_wrote(offset, bytes);
    }

    fn tell_wrote(&self, offset: usize, bytes: &[u8]) {
        if let Some(w) = &self.witness {
            w.wrote(self.base + offset, bytes);
        }
    }

    pub fn send_len(&self) -> usize {
        self.send_len
    }

    pub fn receive_len(&self) -> usize {
        self.receive_len
    }

    /// The address of a byte of the header, for the shim's locks.
    pub fn header_ptr(&self, offset: usize) -> *mut u8 {
        assert!(offset < SOCKET_HEADER_LEN);
        // SAFETY: the slot lies in the arena, the header is its first page.
        unsafe { self.segment.as_ptr().add(self.base + offset) }
    }

    word!(
        /// Transport: bytes of the send ring that may be overwritten again.
        send_released, set_send_released, SEND_RELEASED);
    word!(
        /// Transport: bytes put into the receive ring.
        receive_end, set_receive_end, RECEIVE_END);
    word!(
        /// Application: bytes put into the send ring.
        send_end, set_send_end, SEND_END);
    /// Application: bytes taken from the receive ring.
    pub fn receive_taken(&self) -> u64 {
        self.load_u64(RECEIVE_TAKEN)
    }

    pub fn set_receive_taken(&self, taken: u64) {
        self.u64_at(RECEIVE_TAKEN).store(taken, Ordering::Release);
        self.read_token().note_taken(taken);
    }

    word!(
        /// Transport: the application marks the socket dirty when `receive_taken` reaches this (the
        /// window can then be opened noticeably). `u64::MAX`: never.
        receive_notify,
        set_receive_notify,
        RECEIVE_NOTIFY
    );
    /// Transport: sets [`SocketPage::receive_notify`] and looks at `receive_taken` once more. The
    /// application does both in the other order, so whoever comes second sees the other: no reading
    /// that should have been told goes unnoticed.
    pub fn arm_receive_notify(&self, value: u64) -> u64 {
        self.set_receive_notify(value);
        fence(Ordering::SeqCst);
        self.receive_taken()
    }

    /// How often something came to the kernel socket beside this one (see `op::TWIN`).
    pub fn twin_news(&self) -> u32 {
        self.u32_at(TWIN_NEWS).load(Ordering::Acquire)
    }

    /// sockets: something came there. The token is posted after.
    pub fn add_twin_news(&self) {
        self.u32_at(TWIN_NEWS).fetch_add(1, Ordering::SeqCst);
    }

    word!(
        /// Inode of the application's descriptor, by which a program finds its sockets after exec.
        inode, set_inode, INODE);

    pub fn flags(&self) -> u32 {
        self.load_u32(FLAGS)
    }

    pub fn set_flags(&self, flags: u32) {
        self.store_u32(FLAGS, flags)
    }

    pub fn wishes(&self) -> u32 {
        self.load_u32(WISHES)
    }

    pub fn add_wish(&self, wish: u32) {
        self.u32_at(WISHES).fetch_or(wish, Ordering::AcqRel);
    }

    /// 0 free, 1 stream, 2 datagram.
    pub fn kind(&self) -> u32 {
        self.load_u32(KIND)
    }

    pub fn set_kind(&self, kind: u32) {
        self.store_u32(KIND, kind)
    }

    /// Counts the uses of this slot, so that a stale reference is noticed.
    pub fn incarnation(&self) -> u32 {
        self.load_u32(INCARNATION)
    }

    pub fn read_token(&self) -> Shared<ReadToken> {
        // SAFETY: one atomic.
        unsafe { self.segment.shared(self.base + READ_TOKEN) }.expect("slot lies in the arena")
    }

    pub fn write_plug(&self) -> Shared<WritePlug> {
        // SAFETY: one atomic.
        unsafe { self.segment.shared(self.base + WRITE_PLUG) }.expect("slot lies in the arena")
    }

    /// Transport: whether a writer waits for room.
    pub fn is_plugged(&self) -> bool {
        self.load_u32(WRITE_PLUG) != 0
    }

    /// Transport: sets the pending error (an errno).
    pub fn set_error(&self, errno: i32) {
        self.store_u32(ERROR, errno as u32)
    }

    pub fn error(&self) -> i32 {
        self.load_u32(ERROR) as i32
    }

    /// Application: takes the pending error, as `SO_ERROR` does.
    pub fn take_error(&self) -> i32 {
        self.u32_at(ERROR).swap(0, Ordering::AcqRel) as i32
    }

    pub fn option(&self, option: Opt) -> u32 {
        self.load_u32(OPTIONS + option as usize * 4)
    }

    pub fn set_option(&self, option: Opt, value: u32) {
        self.store_u32(OPTIONS + option as usize * 4, value)
    }

    fn endpoint(&self, offset: usize) -> Endpoint {
        let mut bytes = [0; 18];
        self.read_bytes(offset, &mut bytes);
        let mut address = [0; 16];
        address.copy_from_slice(&bytes[..16]);
        Endpoint::new(WireAddress(address).into(), u16::from_le_bytes([bytes[16], bytes[17]]))
    }

    fn set_endpoint(&self, offset: usize, e: Endpoint) {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&WireAddress::from(e.address).0);
        bytes[16..].copy_from_slice(&e.port.to_le_bytes());
        self.write_bytes(offset, &bytes);
    }

    pub fn local(&self) -> Endpoint {
        self.endpoint(LOCAL)
    }

    pub fn set_local(&self, e: Endpoint) {
        self.set_endpoint(LOCAL, e)
    }

    pub fn remote(&self) -> Endpoint {
        self.endpoint(REMOTE)
    }

    pub fn set_remote(&self, e: Endpoint) {
        self.set_endpoint(REMOTE, e)
    }

    pub fn info(&self) -> SocketInfo {
        let mut info = SocketInfo::default();
        self.read_bytes(INFO, info.as_mut_bytes());
        info
    }

    pub fn set_info(&self, info: &SocketInfo) {
        self.write_bytes(INFO, info.as_bytes())
    }

    /// Transport: makes the slot ready for a new socket. The rings' old bytes stay; positions start
    /// at zero, so nothing of them can be read.
    pub fn reset(&self, kind: u32) {
        let incarnation = self.incarnation().wrapping_add(1);
        self.write_bytes(0, &[0; SEND_LOCK]);
        self.write_bytes(SHIM_WORDS, &[0; 256]);
        self.store_u32(INCARNATION, incarnation);
        self.set_kind(kind);
    }

    fn ring_pieces(start: usize, ring_len: usize, offset: u64, len: usize) -> [(usize, usize); 2] {
        let at = (offset % ring_len as u64) as usize;
        let first = len.min(ring_len - at);
        [(start + at, first), (start, len - first)]
    }

    fn send_pieces(&self, offset: u64, len: usize) -> [(usize, usize); 2] {
        assert!(len <= self.send_len);
        Self::ring_pieces(SOCKET_HEADER_LEN, self.send_len, offset, len)
    }

    fn receive_pieces(&self, offset: u64, len: usize) -> [(usize, usize); 2] {
        assert!(len <= self.receive_len);
        Self::ring_pieces(SOCKET_HEADER_LEN + self.send_len, self.receive_len, offset, len)
    }

    /// Application: puts bytes into the send ring at `offset`, unpublished. The caller keeps within
    /// the free space.
    pub fn write_send(&self, offset: u64, bytes: &[u8]) {
        let [(a, n), (b, m)] = self.send_pieces(offset, bytes.len());
        self.write_bytes(a, &bytes[..n]);
        self.write_bytes(b, &bytes[n..n + m]);
    }

    /// Transport: copies bytes out of the send ring.
    pub fn read_send(&self, offset: u64, to: &mut [u8]) {
        let [(a, n), (b, m)] = self.send_pieces(offset, to.len());
        self.read_bytes(a, &mut to[..n]);
        self.read_bytes(b, &mut to[n..n + m]);
    }

    /// Transport: references to bytes in the send ring (two if they wrap; the second may be empty).
    pub fn send_refs(&self, pool: PoolId, slot: u32, offset: u64, len: usize) -> [PacketRef; 2] {
        self.send_pieces(offset, len).map(|(at, n)| PacketRef {
            pool,
            generation: 0,
            slot,
            offset: at as u32,
            len: n as u32,
        })
    }

    /// Transport: copies `len` bytes at `from_offset` of `from` into the receive ring at `offset`,
    /// unpublished. False if the source range is bad.
    pub fn fill_receive(&self, offset: u64, from: &Segment, from_offset: usize, len: usize) -> bool {
        let [(a, n), (b, m)] = self.receive_pieces(offset, len);
        let filled = from.copy_to(from_offset, &self.segment, self.base + a, n).is_ok()
            && from.copy_to(from_offset + n, &self.segment, self.base + b, m).is_ok();
        if self.witness.is_some() && filled {
            self.tell_copied(from, from_offset, a, n);
            self.tell_copied(from, from_offset + n, b, m);
        }
        filled
    }

    /// As [`SocketPage::tell_wrote`], from where the bytes came: what lies in the ring may be the application's by now.
    #[cold]
    fn tell_copied(&self, from: &Segment, from_offset: usize, offset: usize, len: usize) {
        let mut bytes = alloc::vec![0; len];
        if from.read(from_offset, &mut bytes).is_ok() {
            self.tell_wrote(offset, &bytes);
        }
    }

    /// Transport: as [`SocketPage::fill_receive`], from plain bytes.
    pub fn write_receive(&self, offset: u64, bytes: &[u8]) {
        let [(a, n), (b, m)] = self.receive_pieces(offset, bytes.len());
        self.write_bytes(a, &bytes[..n]);
        self.write_bytes(b, &bytes[n..n + m]);
    }

    /// Application: copies bytes out of the receive ring.
    pub fn read_receive(&self, offset: u64, to: &mut [u8]) {
        let [(a, n), (b, m)] = self.receive_pieces(offset, to.len());
        self.read_bytes(a, &mut to[..n]);
        self.read_bytes(b, &mut to[n..n + m]);
    }

    /// Application: bytes (or records) ready to be taken, by the published positions. Never more
    /// than the ring.
    pub fn receivable(&self) -> usize {
        (self.receive_end().saturating_sub(self.receive_taken()) as usize).min(self.receive_len)
    }

    /// Application: free bytes in the send ring, by the published positions and `SO_SNDBUF`.
    pub fn sendable(&self) -> usize {
        let used = self.send_end().saturating_sub(self.send_released()) as usize;
        self.send_limit().saturating_sub(used)
    }

    /// The send ring's length, or less if the application set `SO_SNDBUF` smaller.
    pub fn send_limit(&self) -> usize {
        match self.option(Opt::SendBuffer) as usize {
            0 => self.send_len,
            n => n.clamp(4096, self.send_len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { slots: 4, send_len: 4096, receive_len: 8192 };

    fn arena() -> Arena {
        Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap()
    }

    #[test]
    fn rings_wrap() {
        let arena = arena();
        let page = arena.socket(3).unwrap();
        let bytes: alloc::vec::Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
        let mut back = alloc::vec![0; 3000];
        for round in 0..9u64 {
            page.write_send(round * 3000, &bytes);
            page.read_send(round * 3000, &mut back);
            assert_eq!(back, bytes);
            page.write_receive(round * 3000, &bytes);
            page.read_receive(round * 3000, &mut back);
            assert_eq!(back, bytes);
            let [a, b] = page.send_refs(PoolId(1), 3, round * 3000, 3000);
            assert_eq!(a.len + b.len, 3000);
            let (mut x, mut y) = (alloc::vec![0; a.len as usize], alloc::vec![0; b.len as usize]);
            let view = arena.view();
            view.segment.read(view.locate(a).unwrap(), &mut x).unwrap();
            view.segment.read(view.locate(b).unwrap(), &mut y).unwrap();
            x.extend(y);
            assert_eq!(x, bytes);
        }
    }

    /// Adds one to whatever is read, and keeps what is written.
    #[derive(Default)]
    struct Meddler(std::sync::Mutex<alloc::vec::Vec<(usize, alloc::vec::Vec<u8>)>>);

    impl Witness for Meddler {
        fn read(&self, _: usize, bytes: &mut [u8]) {
            bytes[0] += 1;
        }

        fn wrote(&self, at: usize, bytes: &[u8]) {
            self.0.lock().unwrap().push((at, bytes.to_vec()));
        }
    }

    #[test]
    fn a_transport_reads_what_the_witness_says() {
        let plain = arena();
        let meddler = Arc::new(Meddler::default());
        let page = plain.clone().witnessed(meddler.clone()).socket(0).unwrap();
        let program = plain.socket(0).unwrap();
        program.set_send_end(5);
        program.set_receive_taken(8);
        program.set_option(Opt::Ttl, 30);
        program.write_send(4094, &[1, 2, 3]);
        assert_eq!((page.send_end(), page.receive_taken(), page.option(Opt::Ttl)), (6, 9, 31));
        assert_eq!((page.wishes(), page.is_plugged(), page.arm_receive_notify(7)), (1, true, 9));
        let mut bytes = [0; 3];
        page.read_send(4094, &mut bytes);
        assert_eq!(bytes, [2, 2, 4]);
        // Its own words lie in the program's reach, too.
        assert_eq!((page.incarnation(), page.receive_end(), page.local().port), (1, 1, 0));
        page.set_flags(2);
        let from = Segment::heap(3);
        from.write(0, &[7, 8, 9]).unwrap();
        assert!(page.fill_receive(8190, &from, 0, 3));
        let ring = ARENA_HEADER_LEN + SOCKET_HEADER_LEN + 4096;
        let wrote = meddler.0.lock().unwrap();
        assert_eq!(wrote[0], (ARENA_HEADER_LEN + RECEIVE_NOTIFY, 7u64.to_le_bytes().to_vec()));
        assert_eq!(wrote[1], (ARENA_HEADER_LEN + FLAGS, 2u32.to_le_bytes().to_vec()));
        assert_eq!(wrote[2..], [(ring + 8190, alloc::vec![7, 8]), (ring, alloc::vec![9])]);
    }

    #[test]
    fn slots_do_not_touch_and_reset_counts() {
        let arena = arena();
        assert!(arena.socket(4).is_none());
        let (a, b) = (arena.socket(0).unwrap(), arena.socket(1).unwrap());
        a.reset(1);
        b.reset(1);
        a.set_send_end(5);
        a.set_local(Endpoint::new("10.0.0.1".parse().unwrap(), 80));
        assert_eq!(b.send_end(), 0);
        assert_eq!(a.local().port, 80);
        a.reset(1);
        assert_eq!(a.send_end(), 0);
        assert_eq!(a.incarnation(), 2);
        a.set_send_end(u64::MAX);
        assert_eq!(a.sendable(), 0);
    }
}

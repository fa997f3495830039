//! One socket's page: the words that application and transport share, and the two rings behind them.
//!
//! A cursor is returned as the other side published it: the caller checks it against its own. The ring methods take
//! any cursor modulo the ring's length, so that no value leads out of the slot.

mod beside;
mod cookie_keys;
mod holder;
mod looker;
mod place;
mod rings;
mod room;

pub use cookie_keys::COOKIE_KEYS_MAX;
pub use room::SendRoom;
pub(super) use room::first_send_len;

use super::{Geometry, Opt, SOCKET_HEADER_LEN, wish};
use crate::access::{AccessObserver, observed};
use crate::segment::{OutOfBounds, Segment};
use crate::shared::Shared;
use crate::sleepers::Sleepers;
use crate::token::{ReadToken, WritePlug};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use eft_base::{ComponentId, Endpoint, Role, WireAddress};

const SEND_RELEASED: usize = 0;
const RECEIVE_END: usize = 8;
pub(super) const FLAGS: usize = 16;
const SEND_ROOM: usize = 20;
pub(super) const RECEIVE_NOTIFY: usize = 24;
const SHADOW_ARRIVALS: usize = 32;
/// The word that names the slot's owner.
pub const OWNER: usize = 36;
const SEND_SENT: usize = 40;
const SEND_END: usize = 64;
const WISHES: usize = 72;
const SEND_RING: usize = 116;
const RECEIVE_TAKEN: usize = 128;
const READ_TOKEN: usize = 208;
const WRITE_PLUG: usize = 196;
const ERROR: usize = 200;
const INCARNATION: usize = 204;
const OPTIONS: usize = 256;
const OPTIONS_COUNT: usize = (LOCAL - OPTIONS) / 4;
const LOCAL: usize = 320;
const REMOTE: usize = 344;
const INODE: usize = 384;
/// The word that says whether the slot is in use, and by what kind of socket.
pub const KIND: usize = 392;
/// Option words that do not fit at [`OPTIONS`], and those that do not fit there either.
const MORE_OPTIONS: usize = 400;
const MORE_OPTIONS_COUNT: usize = (INFO - MORE_OPTIONS) / 4;
const LAST_OPTIONS: usize = SHIM_WORDS + SHIM_WORDS_LEN;
/// Where a slot identifies its descriptor, and in how many bytes: inode and kind.
pub const IDENTITY: usize = INODE;
pub const IDENTITY_LEN: usize = 12;
const _: () = assert!(KIND == INODE + 8 && SLEEPERS == KIND + 4 && MORE_OPTIONS == SLEEPERS + 4);
pub(super) const SLEEPERS: usize = 396;
pub(super) const INFO: usize = 448;
/// Where the application's two locks lie (64 bytes each; only the shim uses them).
pub const SEND_LOCK: usize = 512;
pub const RECEIVE_LOCK: usize = 576;
/// Words for the shim's own use, shared by the domain (192 bytes).
pub const SHIM_WORDS: usize = 640;
const SHIM_WORDS_LEN: usize = 192;
/// Bytes from there on that a new socket begins with as 0.
const FRESH_LEN: usize = 256;

const _: () = assert!(
    LAST_OPTIONS + (Opt::LAST as usize + 1 - OPTIONS_COUNT - MORE_OPTIONS_COUNT) * 4
        <= SHIM_WORDS + FRESH_LEN
);

/// Where the word of the option of this number lies.
#[inline]
fn option_offset(number: usize) -> usize {
    match number.checked_sub(OPTIONS_COUNT) {
        None => OPTIONS + number * 4,
        Some(more @ ..MORE_OPTIONS_COUNT) => MORE_OPTIONS + more * 4,
        Some(last) => LAST_OPTIONS + (last - MORE_OPTIONS_COUNT) * 4,
    }
}

/// One socket's header and rings. Offsets of the ring methods are stream offsets.
#[derive(Clone)]
pub struct SocketPage {
    pub(super) segment: Segment,
    pub(super) base: usize,
    pub(super) send_len: usize,
    pub(super) receive_len: usize,
    /// Of where it lies, see [`place`].
    sum: usize,
    pub(super) observer: Option<Arc<dyn AccessObserver>>,
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
    #[inline]
    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        self.segment.atomic_u64(self.base + offset).expect("slot lies in the arena")
    }

    #[inline]
    pub(super) fn u32_at(&self, offset: usize) -> &AtomicU32 {
        self.segment.atomic_u32(self.base + offset).expect("slot lies in the arena")
    }

    // All of the transport's accesses to a page go through these, so the observer sees each.

    #[inline]
    pub(super) fn load_u64(&self, offset: usize) -> u64 {
        let value = self.u64_at(offset).load(Ordering::Acquire);
        match &self.observer {
            None => value,
            Some(w) => u64::from_le_bytes(observed(w, self.base + offset, value.to_le_bytes())),
        }
    }

    #[inline]
    pub(super) fn load_u32(&self, offset: usize) -> u32 {
        let value = self.u32_at(offset).load(Ordering::Acquire);
        match &self.observer {
            None => value,
            Some(w) => u32::from_le_bytes(observed(w, self.base + offset, value.to_le_bytes())),
        }
    }

    pub(super) fn store_u64(&self, offset: usize, value: u64) {
        self.u64_at(offset).store(value, Ordering::Release);
        self.tell_wrote(offset, &value.to_le_bytes());
    }

    pub(super) fn store_u32(&self, offset: usize, value: u32) {
        self.u32_at(offset).store(value, Ordering::Release);
        self.tell_wrote(offset, &value.to_le_bytes());
    }

    pub(super) fn read_bytes(&self, offset: usize, to: &mut [u8]) {
        self.segment.read(self.base + offset, to).expect("slot lies in the arena");
        if let Some(w) = &self.observer {
            w.read(self.base + offset, to);
        }
    }

    pub(super) fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        self.segment.write(self.base + offset, bytes).expect("slot lies in the arena");
        self.tell_wrote(offset, bytes);
    }

    fn tell_wrote(&self, offset: usize, bytes: &[u8]) {
        if let Some(w) = &self.observer {
            w.wrote(self.base + offset, bytes);
        }
    }

    /// The page of the one slot that `segment` is.
    pub fn alone(segment: Segment, geometry: Geometry) -> Result<SocketPage, OutOfBounds> {
        segment.range(0, geometry.stride())?;
        Ok(SocketPage::at(segment, 0, geometry, None))
    }

    /// Kind and inode of a slot from its [`IDENTITY_LEN`] bytes at [`IDENTITY`], for callers that have not mapped it.
    pub fn identity(bytes: &[u8; IDENTITY_LEN]) -> (u32, u64) {
        let [inode, kind] = [&bytes[..8], &bytes[8..]].map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        });
        (kind as u32, inode)
    }

    /// Where `len` bytes at `offset` of the send ring lie, for system calls that fill them.
    pub fn send_space(&self, offset: u64, len: usize) -> [(*mut u8, usize); 2] {
        self.send_pieces(offset, len)
            .map(|(at, n)| (self.segment.range_mut(self.base + at, n).expect("slot lies in the arena"), n))
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
        /// Transport: bytes sent at least once, if the application set TCP_NOTSENT_LOWAT.
        send_sent, set_send_sent, SEND_SENT);
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
    /// Transport: sets [`SocketPage::receive_notify`] and reads `receive_taken` once more. The application does both
    /// in the other order, so the later of the two sees the other's write: no read that should be reported goes
    /// unnoticed.
    pub fn arm_receive_notify(&self, value: u64) -> u64 {
        self.set_receive_notify(value);
        fence(Ordering::SeqCst);
        self.receive_taken()
    }

    /// How often something arrived at the shadow socket (see `op::SHADOW`).
    pub fn shadow_arrivals(&self) -> u32 {
        self.u32_at(SHADOW_ARRIVALS).load(Ordering::Acquire)
    }

    /// sockets: something arrived at the shadow socket. The token is posted after this.
    pub fn add_shadow_arrival(&self) {
        self.u32_at(SHADOW_ARRIVALS).fetch_add(1, Ordering::SeqCst);
    }

    /// Threads of the application that sleep on this page.
    pub fn sleepers(&self) -> &Sleepers {
        // SAFETY: one atomic.
        unsafe { self.segment.view(self.base + SLEEPERS) }.expect("slot lies in the arena")
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

    pub(super) fn drop_wish(&self, wish: u32) {
        self.u32_at(WISHES).fetch_and(!wish, Ordering::AcqRel);
    }

    /// 0 free, 1 stream, 2 datagram.
    pub fn kind(&self) -> u32 {
        self.load_u32(KIND)
    }

    /// Transport: the slot has no socket any more. Its owner stays the same.
    pub fn set_free(&self) {
        self.store_u32(KIND, 0)
    }

    /// Which transport the slot belongs to, as that transport wrote; `None` if none has used it yet.
    #[inline]
    pub fn owner(&self) -> Option<ComponentId> {
        SocketPage::owner_of(self.load_u32(OWNER), self.load_u32(KIND))
    }

    /// The same from the words at [`OWNER`] and [`KIND`], for callers that have not mapped the slot.
    #[inline]
    pub fn owner_of(owner: u32, kind: u32) -> Option<ComponentId> {
        match (owner, kind) {
            // Older versions did not write it, and had one tcp and one udp.
            (0, 1) => Some(ComponentId::TCP),
            (0, 2) => Some(ComponentId::UDP),
            _ => ComponentId::from_code(owner).filter(|id| id.role.is_transport()),
        }
    }

    /// Counts the uses of this slot, so that a stale reference is noticed.
    pub fn incarnation(&self) -> u32 {
        self.load_u32(INCARNATION)
    }

    pub fn read_token(&self) -> Shared<ReadToken> {
        // SAFETY: one atomic.
        unsafe { self.segment.shared(self.base + READ_TOKEN) }.expect("slot lies in the arena")
    }

    /// Server, when something arrives while the token is set: true if it must now send one message more, since some
    /// epoll set of the application is edge-triggered.
    pub fn post_edge(&self) -> bool {
        self.wishes() & wish::EDGES != 0 && self.read_token().post_edge()
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

    #[inline]
    pub fn option(&self, option: Opt) -> u32 {
        self.load_u32(option_offset(option as usize))
    }

    pub fn set_option(&self, option: Opt, value: u32) {
        self.store_u32(option_offset(option as usize), value)
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

    /// Transport: makes the slot ready for a new socket. The rings' old bytes stay; positions start
    /// at zero, so nothing of them can be read.
    pub fn reset(&self, owner: ComponentId) {
        self.reset_as(owner, self.incarnation().wrapping_add(1));
    }

    /// As [`SocketPage::reset`], with an incarnation that the caller has chosen before.
    pub fn reset_as(&self, owner: ComponentId, incarnation: u32) {
        self.write_bytes(0, &[0; SEND_LOCK]);
        self.write_bytes(SHIM_WORDS, &[0; FRESH_LEN]);
        self.store_u32(OWNER, owner.code());
        self.store_u32(KIND, if owner.role == Role::Tcp { 1 } else { 2 });
        // Last: it tells a successor that all of this was done.
        self.store_u32(INCARNATION, incarnation);
    }
}

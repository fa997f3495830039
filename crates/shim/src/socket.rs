//! A process's handle of one slot of the arena.
//!
//! Handles are made once per slot and are never freed, so that the hot paths need no reference count and no
//! lock. State of the socket itself lies in its page, shared by the domain; state of this process (how many
//! descriptors it has, the hidden kernel socket) lies here.

use crate::lock::{self, Guard};
use crate::sys::{Errno, Result};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use eft_base::Role;
use eft_channel::shared::Shared;
use eft_channel::socket::{AcceptRecord, Opt, RECEIVE_LOCK, SEND_LOCK, SHIM_WORDS, SocketPage, flag, wish};
use eft_channel::token::{ReadToken, WritePlug};

/// Bits of [`Socket::bits`]: what the shim remembers of a socket, for the whole domain.
pub mod bit {
    /// The program made it with AF_INET6 and sees mapped addresses.
    pub const INET6: u32 = 1;
    /// The result of the connect was reported to the program.
    pub const CONNECT_TOLD: u32 = 2;
    /// A datagram socket with a peer.
    pub const PEER: u32 = 4;
    /// Bound to an address or port.
    pub const BOUND: u32 = 8;
    /// Bound to the wildcard address.
    pub const WILDCARD: u32 = 16;
    pub const REUSE_ADDRESS: u32 = 32;
    pub const REUSE_PORT: u32 = 64;
    /// The far end is gone although the page does not say so: the stack has ended.
    pub const ORPHAN: u32 = 128;
    /// `listen` was called.
    pub const LISTENING: u32 = 256;
    /// The program asked for IP_PKTINFO / IPV6_RECVPKTINFO, IP_RECVTOS, IP_RECVTTL.
    pub const PACKET_INFO: u32 = 512;
    pub const RECEIVE_TOS: u32 = 1024;
    pub const RECEIVE_TTL: u32 = 2048;
    pub const OOB_INLINE: u32 = 4096;
    /// IPV6_V6ONLY.
    pub const V6ONLY: u32 = 8192;
    /// UDP_CORK is on.
    pub const DATAGRAM_CORK: u32 = 16384;
    /// A datagram socket whose peer sits on the kernel's loopback.
    pub const LOOPBACK_PEER: u32 = 32768;
    /// The kernel holds back the beginning of a datagram to the loopback (MSG_MORE, UDP_CORK).
    pub const LOOPBACK_MORE: u32 = 65536;
    /// The program did not name a port to bind to.
    pub const ANY_PORT: u32 = 131072;
    /// The program asked for IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS.
    pub const RECEIVE_HOP_LIMIT: u32 = 262144;
    pub const RECEIVE_CLASS: u32 = 524288;
    /// O_NONBLOCK is set, as far as it was set by calls that the shim saw.
    pub const NONBLOCKING: u32 = 1048576;
    /// TCP_INQ: `recvmsg` tells how much is left.
    pub const TELL_LEFT: u32 = 2097152;
    /// TCP_FASTOPEN_CONNECT.
    pub const EARLY_CONNECT: u32 = 4194304;
    /// `connect` has returned success without connecting; the first write connects, to the page's remote
    /// endpoint.
    pub const DEFERRED: u32 = 8388608;
    /// SO_ZEROCOPY: completions of sends with MSG_ZEROCOPY are told.
    pub const ZEROCOPY: u32 = 16777216;
    /// A program waits for it by poll, select, epoll or SIGIO: the descriptor must always be right.
    pub const WATCHED: u32 = 33554432;
    /// It is known to have no receive timeout.
    pub const PATIENT: u32 = 67108864;
    /// IP_FREEBIND, IPV6_FREEBIND: it may be bound to an address that the stack does not have.
    pub const FREE_BIND: u32 = 134217728;
    /// Somebody has waited for it otherwise than in the one set whose marks told of its input.
    pub const PARTED: u32 = 268435456;
    /// IPV6_FLOWINFO_SEND.
    pub const SEND_FLOW: u32 = 1073741824;
}

const BITS: usize = SHIM_WORDS;
const LOW_WATER: usize = SHIM_WORDS + 4;
const LOOPBACK_INODE: usize = SHIM_WORDS + 8;
const IDLE: usize = SHIM_WORDS + 16;
const PRIORITY: usize = SHIM_WORDS + 20;
const DISCOVER: usize = SHIM_WORDS + 28;
const TAKEN_FOR: usize = SHIM_WORDS + 32;
const PENDING: usize = SHIM_WORDS + 36;
const SHADOW_SEEN: usize = SHIM_WORDS + 40;
const SHADOW_TURN: usize = SHIM_WORDS + 44;
const SEGMENT: usize = SHIM_WORDS + 48;
const COMPLETIONS: usize = SHIM_WORDS + 52;
const COMPLETIONS_TAKEN: usize = SHIM_WORDS + 56;
const STAMP_BASE: usize = SHIM_WORDS + 60;
const SECOND_INODE: usize = SHIM_WORDS + 64;
const STAMPS_READ: usize = SHIM_WORDS + 72;

/// Which hidden kernel socket on the loopback: the second one is a listener's of both IP versions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    First,
    Second,
}

impl Hidden {
    pub const BOTH: [Hidden; 2] = [Hidden::First, Hidden::Second];
}

pub struct Socket {
    pub slot: u32,
    pub page: SocketPage,
    pub token: Shared<ReadToken>,
    pub plug: Shared<WritePlug>,
    /// Descriptors of this process.
    pub descriptors: AtomicU32,
    /// The hidden kernel sockets on the loopback, as far as this process has them, or -1.
    loopback: [AtomicI32; 2],
}

impl Socket {
    pub fn new(slot: u32, page: SocketPage) -> Socket {
        let socket = Socket {
            slot,
            token: page.read_token(),
            plug: page.write_plug(),
            page,
            descriptors: AtomicU32::new(0),
            loopback: [const { AtomicI32::new(-1) }; 2],
        };
        let stamped = socket.page.option(Opt::Timestamping) != 0;
        if socket.page.option(Opt::ReceiveErrors) != 0 || socket.has(bit::ZEROCOPY) || stamped {
            crate::error_watch::watch();
        }
        socket
    }

    /// Whether it is a stream. A free slot is neither a stream nor a datagram socket.
    #[inline]
    pub fn is_stream(&self) -> bool {
        self.page.owner().is_some_and(|owner| owner.role == Role::Tcp)
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: an aligned word of the page, which stays mapped for good.
        unsafe { &*self.page.header_ptr(offset).cast::<AtomicU32>() }
    }

    pub fn bits(&self) -> u32 {
        self.word(BITS).load(Ordering::Acquire)
    }

    pub fn has(&self, bits: u32) -> bool {
        self.bits() & bits != 0
    }

    pub fn set_bits(&self, bits: u32) {
        self.word(BITS).fetch_or(bits, Ordering::AcqRel);
    }

    pub fn put_bits(&self, bits: u32, on: bool) {
        if on {
            self.set_bits(bits);
        } else {
            self.word(BITS).fetch_and(!bits, Ordering::AcqRel);
        }
    }

    /// SO_RCVLOWAT; 0 means 1.
    pub fn low_water(&self) -> &AtomicU32 {
        self.word(LOW_WATER)
    }

    /// How often in a row a call found nothing without waiting.
    pub fn idle(&self) -> &AtomicU32 {
        self.word(IDLE)
    }

    /// Messages that were taken on behalf of threads that had retired the token for them.
    pub fn taken_for(&self) -> &AtomicU32 {
        self.word(TAKEN_FOR)
    }

    /// Payload bytes of a datagram that is held back (MSG_MORE, UDP_CORK). The payload so far lies after the
    /// published end of the send ring. Under the send lock.
    pub fn pending(&self) -> &AtomicU32 {
        self.word(PENDING)
    }

    pub fn priority(&self) -> &AtomicU32 {
        self.word(PRIORITY)
    }

    /// UDP_SEGMENT; 0: each send is one datagram.
    pub fn segment(&self) -> &AtomicU32 {
        self.word(SEGMENT)
    }

    /// Sends with MSG_ZEROCOPY so far, and up to which of them the program has taken the completions.
    pub fn completions(&self) -> (&AtomicU32, &AtomicU32) {
        (self.word(COMPLETIONS), self.word(COMPLETIONS_TAKEN))
    }

    /// Of a datagram socket, how many times of the first record in its error queue the program has taken.
    pub fn stamps_read(&self) -> &AtomicU32 {
        self.word(STAMPS_READ)
    }

    /// Low half of the offset from which SOF_TIMESTAMPING_OPT_ID counts; of a datagram socket, the number of its next datagram.
    pub fn stamp_base(&self) -> &AtomicU32 {
        self.word(STAMP_BASE)
    }

    /// One more than what IP_MTU_DISCOVER was set to; 0 is the default.
    pub fn discover(&self) -> &AtomicU32 {
        self.word(DISCOVER)
    }

    /// The count of arrivals at the shadow ([`SocketPage::shadow_arrivals`]) up to which it is drained.
    pub fn shadow_seen(&self) -> &AtomicU32 {
        self.word(SHADOW_SEEN)
    }

    /// Whether something has arrived at the shadow since it was last drained.
    #[inline]
    pub fn shadow_due(&self) -> bool {
        self.page.shadow_arrivals() != self.shadow_seen().load(Ordering::Acquire)
    }

    /// Whether the next datagram is taken from the shadow, if both have one. Under the receive lock.
    pub fn shadow_turn(&self) -> bool {
        self.word(SHADOW_TURN).load(Ordering::Relaxed) != 0
    }

    /// Written only when it changes, which without a shadow is once.
    pub fn set_shadow_turn(&self, shadow: bool) {
        if self.shadow_turn() != shadow {
            self.word(SHADOW_TURN).store(shadow as u32, Ordering::Relaxed);
        }
    }

    /// Inode of a hidden kernel socket; 0 if the domain has none beside this socket.
    pub fn loopback_inode(&self, which: Hidden) -> &AtomicU64 {
        let offset = match which {
            Hidden::First => LOOPBACK_INODE,
            Hidden::Second => SECOND_INODE,
        };
        // SAFETY: an aligned word of the page.
        unsafe { &*self.page.header_ptr(offset).cast::<AtomicU64>() }
    }

    pub fn lock_send(&self) -> Result<Guard> {
        lock::lock(&self.page, SEND_LOCK)
    }

    pub fn lock_receive(&self) -> Result<Guard> {
        lock::lock(&self.page, RECEIVE_LOCK)
    }

    /// Nothing more will come: the descriptor stays readable, and the token is left alone.
    pub fn is_ended(&self) -> bool {
        self.page.flags() & (flag::RECEIVE_END | flag::DEAD) != 0
    }

    pub fn wishes_shut_read(&self) -> bool {
        self.page.wishes() & wish::SHUT_READ != 0
    }

    pub fn wishes_shut_write(&self) -> bool {
        self.page.wishes() & wish::SHUT_WRITE != 0
    }

    /// The pending error, taken.
    pub fn take_error(&self) -> Result<()> {
        if self.page.error() == 0 {
            return Ok(());
        }
        match self.page.take_error() {
            0 => Ok(()),
            errno => Err(Errno(errno)),
        }
    }

    /// One more descriptor of this process refers to the socket.
    pub fn retain(&self) {
        self.descriptors.fetch_add(1, Ordering::Relaxed);
    }

    /// One fewer. If it was the last one, the hidden sockets, which the caller closes.
    #[must_use]
    pub fn release(&self) -> Option<[Option<c_int>; 2]> {
        let was_last = self.descriptors.fetch_sub(1, Ordering::AcqRel) == 1;
        was_last.then(|| Hidden::BOTH.map(|which| self.take_loopback(which)))
    }

    /// Whether the socket has a peer for `getpeername`.
    pub fn is_connected(&self) -> bool {
        let flags = self.page.flags();
        match self.is_stream() {
            true => flags & flag::CONNECTED != 0 && flags & flag::DEAD == 0,
            false => self.has(bit::PEER),
        }
    }

    /// Connections that wait in a listener's ring, for `TCP_INFO`.
    pub fn waiting(&self) -> u32 {
        (self.page.receivable() / size_of::<AcceptRecord>()) as u32
    }

    /// Where the number of a hidden socket is.
    pub fn loopback(&self, which: Hidden) -> &AtomicI32 {
        &self.loopback[which as usize]
    }

    pub fn loopback_fd(&self, which: Hidden) -> Option<c_int> {
        let fd = self.loopback(which).load(Ordering::Acquire);
        (fd >= 0).then_some(fd)
    }

    /// As [`Socket::loopback_fd`]; this process has it no longer.
    pub fn take_loopback(&self, which: Hidden) -> Option<c_int> {
        let fd = self.loopback(which).swap(-1, Ordering::AcqRel);
        (fd >= 0).then_some(fd)
    }
}

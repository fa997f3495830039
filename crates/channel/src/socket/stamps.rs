//! SO_TIMESTAMPING of a stream: for which of its sends the application wants to know times, and the times.
//! (Datagrams say themselves which times are wanted, and their times lie among the errors, [`super::errors`].)
//!
//! The application asks by the offset behind a send's last byte, in a ring of [`STAMP_REQUESTS_MAX`] places: the request before
//! the count. The transport answers through the words of the error queue ([`super::errors`]), which a stream
//! that wants times uses for nothing else, in a ring of [`STAMPS_MAX`] places: what finds no room is dropped, and so are requests that wait longer than the ring
//! is.

use super::{Opt, SOCKET_HEADER_LEN, SocketPage};
use core::sync::atomic::Ordering;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How many times may wait for the application.
pub const STAMPS_MAX: u64 = 40;
/// How many sends may wait for the transport's eyes.
pub const STAMP_REQUESTS_MAX: u32 = 32;

pub(super) const STAMPS: usize = 3072;
const REQUESTS: usize = STAMPS + STAMPS_MAX as usize * size_of::<Stamp>();
const RECEIVED_AT: usize = REQUESTS + STAMP_REQUESTS_MAX as usize * 8;
const REQUEST_COUNT: usize = RECEIVED_AT + 8;
const _: () = assert!(REQUEST_COUNT + 8 <= SOCKET_HEADER_LEN);

/// Bits of [`Opt::Timestamping`] that the transport looks at, as Linux numbers them (`SOF_TIMESTAMPING_…`).
pub mod stamping {
    pub const TX_SOFTWARE: u32 = 2;
    pub const RX_SOFTWARE: u32 = 8;
    pub const TX_SCHED: u32 = 256;
    pub const TX_ACK: u32 = 512;
    /// Not of that option: when what is received came, in microseconds (SO_TIMESTAMP) or nanoseconds (SO_TIMESTAMPNS).
    pub const RX_MICROSECONDS: u32 = 1 << 30;
    pub const RX_NANOSECONDS: u32 = 1 << 31;
    /// Of each of them the transport must know when it came.
    pub const RX_ANY: u32 = RX_SOFTWARE | RX_MICROSECONDS | RX_NANOSECONDS;
}

/// What happened, as Linux numbers it (`SCM_TSTAMP_…`).
pub mod stamped {
    /// A device has the segment with the last byte.
    pub const SENT: u32 = 0;
    /// The transport gave it away.
    pub const SCHEDULED: u32 = 1;
    /// The peer acknowledged it.
    pub const ACKNOWLEDGED: u32 = 2;
}

/// One time of one send. 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stamp {
    /// Nanoseconds of the monotonic clock.
    pub at: u64,
    /// Low half of the offset behind the send's last byte; of a datagram, the low half of its number.
    pub end: u32,
    /// One of [`stamped`].
    pub kind: u32,
}

impl SocketPage {
    /// Application, before [`Opt::Timestamping`] is first set on a socket: there are no requests.
    pub fn clear_stamp_requests(&self) {
        self.u32_at(REQUEST_COUNT).store(0, Ordering::Release);
        self.store_u64(RECEIVED_AT, 0);
    }

    /// Application, under the send lock: wants these times of the send that ends at this offset.
    pub fn request_stamps(&self, end: u64, wanted: u32) {
        let count = self.u32_at(REQUEST_COUNT).load(Ordering::Relaxed);
        let at = request_at(count);
        self.u32_at(at).store(end as u32, Ordering::Relaxed);
        self.u32_at(at + 4).store(wanted, Ordering::Relaxed);
        self.u32_at(REQUEST_COUNT).store(count.wrapping_add(1), Ordering::Release);
    }

    /// Transport: how many requests there were.
    pub fn stamp_requests(&self) -> u32 {
        self.load_u32(REQUEST_COUNT)
    }

    /// Transport: the low half of the end that this request names, and what it wants.
    pub fn stamp_request(&self, number: u32) -> (u32, u32) {
        let at = request_at(number);
        (self.load_u32(at), self.load_u32(at + 4))
    }

    /// Transport: writes time `number` of all, unpublished.
    pub fn write_stamp(&self, number: u64, stamp: &Stamp) {
        self.write_bytes(stamp_at(number), stamp.as_bytes());
    }

    /// Application: time `number`.
    pub fn read_stamp(&self, number: u64) -> Stamp {
        let mut stamp = Stamp::default();
        self.read_bytes(stamp_at(number), stamp.as_mut_bytes());
        stamp
    }

    /// When the last bytes came in order, in nanoseconds of the monotonic clock; 0 if that was not asked for.
    pub fn received_at(&self) -> u64 {
        self.load_u64(RECEIVED_AT)
    }

    /// Transport: sets it, before the bytes are published.
    pub fn set_received_at(&self, at: u64) {
        self.store_u64(RECEIVED_AT, at)
    }

    /// Application: which times it wants, [`stamping`] and what is the shim's own.
    pub fn stamping(&self) -> u32 {
        self.option(Opt::Timestamping)
    }
}

fn request_at(number: u32) -> usize {
    REQUESTS + (number % STAMP_REQUESTS_MAX) as usize * 8
}

fn stamp_at(number: u64) -> usize {
    STAMPS + (number % STAMPS_MAX) as usize * size_of::<Stamp>()
}

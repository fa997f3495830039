//! The error queue of a datagram socket: ICMP errors about what it sent (IP_RECVERR), and times of its sends (SO_TIMESTAMPING), in
//! its page.
//!
//! The transport numbers them. Error `n` lies in record `n` modulo [`ERRORS_MAX`] until the application has taken it;
//! what finds no room is dropped.
//!
//! A stream has at most one, that which ended its attempt to connect, unless it wants to know times of its sends
//! ([`super::stamps`]).

use super::{Opt, SOCKET_HEADER_LEN, SocketPage, Stamp};
use eft_base::WireAddress;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How many errors may wait for the application.
pub const ERRORS_MAX: u64 = 8;
/// How many quoted bytes after the UDP header are kept.
pub const QUOTE_MAX: usize = 320;
/// Of a record with times in place of a quote: the errno, which no error has, and how many times there are at most.
pub const STAMPED: i32 = 42;
pub const RECORD_STAMPS_MAX: usize = QUOTE_MAX / size_of::<Stamp>();

const ERRORS_END: usize = 48;
const ERRORS_TAKEN: usize = 136;
const RECORDS: usize = 1024;
const RECORD_LEN: usize = size_of::<ErrorRecord>() + QUOTE_MAX;
/// Of a stream: where the times of its sends would be.
const REFUSAL: usize = super::stamps::STAMPS;
const _: () = assert!(RECORD_LEN <= super::stamps::STAMPS_MAX as usize * size_of::<super::stamps::Stamp>());
const _: () = assert!(RECORDS + ERRORS_MAX as usize * RECORD_LEN <= SOCKET_HEADER_LEN);

/// One ICMP error; the quoted payload follows. 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ErrorRecord {
    /// Where the datagram was sent to.
    pub destination: WireAddress,
    /// Who sent the error.
    pub offender: WireAddress,
    /// Our address, to which it was sent.
    pub local: WireAddress,
    pub port: u16,
    /// Bytes of the quote, at most [`QUOTE_MAX`].
    pub len: u16,
    pub errno: i32,
    /// The MTU of "fragmentation needed", the pointer of "parameter problem".
    pub info: u32,
    pub kind: u8,
    pub code: u8,
    /// TTL and TOS of the packet that brought the error.
    pub ttl: u8,
    pub tos: u8,
}

impl SocketPage {
    /// Transport: the number of the next error.
    pub fn errors_end(&self) -> u64 {
        self.load_u64(ERRORS_END)
    }

    pub fn set_errors_end(&self, end: u64) {
        self.store_u64(ERRORS_END, end)
    }

    /// Application: the number of the first error that it has not taken.
    pub fn errors_taken(&self) -> u64 {
        self.load_u64(ERRORS_TAKEN)
    }

    pub fn set_errors_taken(&self, taken: u64) {
        self.store_u64(ERRORS_TAKEN, taken)
    }

    /// Application: whether there is an error to take.
    pub fn has_errors(&self) -> bool {
        self.errors_end() != self.errors_taken()
    }

    /// Server: whether there may be something to report that no position shows: an error, such as that of a refused
    /// datagram, or a completion (MSG_ZEROCOPY).
    pub fn has_more_to_report(&self) -> bool {
        self.error() != 0 || self.has_errors() || self.option(Opt::ZeroCopySends) != 0
    }

    /// Transport: writes error `number`, unpublished. Of `quote` at most [`QUOTE_MAX`] bytes are kept.
    pub fn write_error(&self, number: u64, record: &ErrorRecord, quote: &[u8]) {
        self.write_record(record_at(number), record, quote);
    }

    /// Transport: writes times of sends as record `number`, unpublished: at most [`RECORD_STAMPS_MAX`].
    pub fn write_stamps(&self, number: u64, stamps: &[Stamp]) {
        let record = ErrorRecord { errno: STAMPED, ..ErrorRecord::default() };
        self.write_record(record_at(number), &record, stamps.as_bytes());
    }

    /// Application: error `number`, and the bytes of its quote that `quote` begins with.
    pub fn read_error(&self, number: u64, quote: &mut [u8; QUOTE_MAX]) -> ErrorRecord {
        self.read_record(record_at(number), quote)
    }
}

impl SocketPage {
    /// Transport: writes the error that ended a stream's attempt to connect, unpublished. There is room for one.
    pub fn write_refusal(&self, record: &ErrorRecord, quote: &[u8]) {
        self.write_record(REFUSAL, record, quote);
    }

    /// Application: the error of a stream, as [`SocketPage::read_error`].
    pub fn read_refusal(&self, quote: &mut [u8; QUOTE_MAX]) -> ErrorRecord {
        self.read_record(REFUSAL, quote)
    }

    fn write_record(&self, at: usize, record: &ErrorRecord, quote: &[u8]) {
        let quote = &quote[..quote.len().min(QUOTE_MAX)];
        let record = ErrorRecord { len: quote.len() as u16, ..*record };
        self.write_bytes(at, record.as_bytes());
        self.write_bytes(at + size_of::<ErrorRecord>(), quote);
    }

    fn read_record(&self, at: usize, quote: &mut [u8; QUOTE_MAX]) -> ErrorRecord {
        let mut record = ErrorRecord::default();
        self.read_bytes(at, record.as_mut_bytes());
        record.len = record.len.min(QUOTE_MAX as u16);
        self.read_bytes(at + size_of::<ErrorRecord>(), &mut quote[..record.len as usize]);
        record
    }
}

fn record_at(number: u64) -> usize {
    RECORDS + (number % ERRORS_MAX) as usize * RECORD_LEN
}

#[cfg(test)]
mod tests;

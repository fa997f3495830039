//! A datagram that was taken: from the ring, the error queue or the shadow.

use crate::readiness;
use crate::socket::Socket;
use crate::zerocopy;
use core::ffi::c_int;
use eft_base::Endpoint;
use eft_channel::socket::{DatagramHeader, ErrorRecord};

/// A datagram that was received.
pub struct Received {
    /// Its full length.
    pub len: usize,
    /// Bytes that fitted into the program's buffers.
    pub copied: usize,
    pub from: Endpoint,
    pub header: DatagramHeader,
    /// When it came, in nanoseconds of the monotonic clock; 0: that is not known.
    pub at: u64,
    /// It comes from the error queue.
    pub error: Option<ErrorRecord>,
}

impl Received {
    pub fn nothing() -> Received {
        let header = DatagramHeader::default();
        Received { len: 0, copied: 0, from: Endpoint::UNSPECIFIED, header, at: 0, error: None }
    }

    /// What a call with these flags returns.
    pub fn returned(&self, flags: c_int) -> usize {
        match flags & libc::MSG_TRUNC {
            0 => self.copied,
            // For an error Linux returns only the copied length.
            _ if self.error.is_some() => self.copied,
            _ => self.len,
        }
    }
}

/// Whether there is something to take.
pub fn is_readable(socket: &Socket) -> bool {
    let page = &socket.page;
    page.receivable() > 0
        || socket.shadow_due()
        || page.error() != 0
        || page.has_errors()
        || zerocopy::is_pending(socket)
        || socket.is_ended()
}

/// Makes the descriptor unreadable, unless there is something left to take.
pub fn quieten(fd: c_int, socket: &Socket) {
    readiness::retire(fd, socket, || is_readable(socket));
}

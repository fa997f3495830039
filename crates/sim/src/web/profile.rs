//! What a web server and its clients do and cost.

use crate::batch::Profile;
use crate::hardware::Work;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Web {
    /// Of the stack; its streams are connections.
    pub stack: Profile,
    pub system: System,
    pub program: Program,
    /// What a connection's beginning or end costs tcp beside the messages.
    pub handshake: Work,
    pub requests: u64,
    pub answer_bytes: u64,
    /// What a client does between an answer and its next request, or connection.
    pub client_ps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Each component on its core, and the program on one.
    Servers,
    /// What comes in is done on the core that the device interrupts, the rest by the program's system calls.
    Kernel {
        /// Into the kernel and out again.
        call: Work,
    },
}

/// The web server, without what the stack does for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    pub accept: Work,
    pub request: Work,
    pub close: Work,
    /// 1024 bytes of a file into a ring or the kernel.
    pub copy_kib: Work,
}

//! What a web server and its clients do and cost.

use crate::batch::Profile;
use crate::hardware::Work;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// Of the stack; its streams are connections, one for each client.
    pub stack: Profile,
    pub system: System,
    pub program: Program,
    /// What a connection's beginning or end costs tcp beside the messages.
    pub handshake: Work,
    /// The first clients are those of the first group.
    pub groups: Vec<Group>,
    /// What a client does between an answer and its next request, or connection.
    pub client_ps: u64,
}

/// Clients that ask for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub clients: usize,
    /// Requests of a connection.
    pub requests: u64,
    pub answer_bytes: u64,
}

impl Web {
    /// Which group a client is of; clients beyond all of them are of the last one.
    pub fn group_of(&self, client: usize) -> usize {
        let mut end = 0;
        let ends = self.groups.iter().map(|group| {
            end += group.clients;
            end
        });
        let before = ends.take_while(|end| *end <= client).count();
        before.min(self.groups.len() - 1)
    }

    pub fn of_client(&self, client: usize) -> Group {
        self.groups[self.group_of(client)]
    }

    pub fn largest_answer(&self) -> u64 {
        self.groups.iter().map(|group| group.answer_bytes).max().unwrap_or(0)
    }
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

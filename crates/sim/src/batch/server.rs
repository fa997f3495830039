//! The possible servers.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// The server in front of tcp: the syscall server where programs make calls, or the program itself.
    Front,
    Tcp,
    Ip,
    Driver,
    /// The packet filter, which ip asks about each packet, where there is one.
    Filter,
    /// Further instances of tcp, which only the real engines have.
    Tcp1,
    Tcp2,
    Tcp3,
    Tcp4,
    Tcp5,
    Tcp6,
    Tcp7,
}

/// Of a stack with one tcp.
pub const SERVERS: [Server; 5] = [Server::Front, Server::Tcp, Server::Ip, Server::Driver, Server::Filter];

/// All instances of tcp, by their numbers.
pub const TCPS: [Server; 8] = [
    Server::Tcp,
    Server::Tcp1,
    Server::Tcp2,
    Server::Tcp3,
    Server::Tcp4,
    Server::Tcp5,
    Server::Tcp6,
    Server::Tcp7,
];

/// How many servers a stack may have.
pub const SERVERS_MAX: usize = SERVERS.len() + TCPS.len() - 1;

impl Server {
    /// An instance of tcp is one.
    pub fn kind(self) -> Server {
        if TCPS.contains(&self) { Server::Tcp } else { self }
    }
}

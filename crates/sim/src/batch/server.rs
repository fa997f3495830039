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
}

pub const SERVERS: [Server; 5] = [Server::Front, Server::Tcp, Server::Ip, Server::Driver, Server::Filter];

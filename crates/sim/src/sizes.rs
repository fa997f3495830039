//! How large the servers of a simulated stack are: small, so that limits are reached.

use eft_base::SlotShare;
use eft_filter::FilterConfig;
use eft_messages::{ComponentId, Role};
use eft_transport::tcp::TcpConfig;
use eft_transport::udp::UdpConfig;

/// How many connections, sockets and listeners tcp has room for.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub connections: usize,
    pub sockets_per_domain: usize,
    pub listeners_per_domain: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { connections: 128, sockets_per_domain: 64, listeners_per_domain: 8 }
    }
}

pub fn tcp_config(sizes: Sizes) -> TcpConfig {
    let Sizes { connections, sockets_per_domain, listeners_per_domain } = sizes;
    TcpConfig { connections, sockets_per_domain, listeners_per_domain, seed: 1, slots: SlotShare::TCP }
}

pub fn udp_config() -> UdpConfig {
    UdpConfig { sockets: 64, sockets_per_domain: 64, seed: 1, slots: SlotShare::UDP }
}

/// The filter's size in every simulated stack.
pub fn filter_config() -> FilterConfig {
    FilterConfig { states: 1024, seed: 1 }
}

/// Bytes of the arena that outlives this server.
pub fn arena_len(peer: ComponentId, sizes: Sizes) -> Option<usize> {
    match peer.role {
        Role::Tcp => Some(eft_transport::tcp::arena_len(&tcp_config(sizes))),
        Role::Udp => Some(eft_transport::udp::arena_len(&udp_config())),
        Role::Filter => Some(eft_filter::arena_len(&filter_config())),
        Role::Ip => Some(eft_ip::DOCKET_LEN),
        _ => None,
    }
}

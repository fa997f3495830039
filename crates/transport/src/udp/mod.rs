//! UDP (RFC 768): datagrams between rings of records and ip.
//!
//! Sockets are durable: they lie in an arena as plain data, and a new life of the engine continues
//! with them, if need be by what their pages say ([`lost`]). Datagrams in flight may be lost, as UDP allows.
//!
//! [`engine`] is the component, [`durable`] the arena, [`live`] what is derived from it, [`rebirth`] how both go on after a crash,
//! [`control`] the requests of sockets, [`send`] and [`receive`] the two directions of a datagram, [`merge`] datagrams that arrive
//! together, [`memberships`] the groups that sockets are members of, [`groups`] what follows from that,
//! [`fatal`] inputs that killed predecessors, [`asked`] requests to ip, [`tell`] what descriptors show, [`inspect`] the arena for `eft ss`.
//!
//! Invariants: no datagram reaches a socket truncated without notice or mixed with another, and a
//! page with invalid words affects only its own socket.

mod asked;
mod control;
pub mod counters;
pub mod durable;
pub mod engine;
mod errors;
mod fatal;
mod groups;
pub mod inspect;
mod live;
mod lost;
mod memberships;
mod merge;
mod rebirth;
mod receive;
mod send;
mod stamping;
mod stamps;
mod tell;

pub use durable::{arena_len, convert, examine, revert, running_input};
pub use engine::Udp;

/// How large the engine is.
#[derive(Clone, Copy, Debug)]
pub struct UdpConfig {
    pub sockets: usize,
    pub sockets_per_domain: usize,
    /// For the secret of a new arena.
    pub seed: u64,
    /// The share of slots that it gives out.
    pub slots: eft_base::SlotShare,
}

impl Default for UdpConfig {
    fn default() -> Self {
        UdpConfig { sockets: 4096, sockets_per_domain: 2048, seed: 0, slots: eft_base::SlotShare::UDP }
    }
}

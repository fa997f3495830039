//! The ip engine: IPv4 with ARP, IPv6 with neighbour discovery, and ICMP of both between the transports and the devices.
//!
//! What goes out is a pending transmission ([`pending`]): built by [`send`], judged by the filter ([`verdict`]),
//! fragmented if need be ([`datagram`]), addressed by [`resolution`] and [`neighbour`], kept until the NIC confirms it.
//! What comes in is checked by [`receive`], reassembled ([`reassemble`]), judged, and given to a transport ([`deliver`])
//! or, as ICMP, stays here ([`icmp`]). Which packets to groups are taken, and what routers are told about it, is in
//! [`multicast`]. Packets to the host's own addresses are looped back in [`local`]. Code for one
//! version lies in [`v4`] and [`v6`]; [`family`] chooses.
//!
//! Every packet is held here until the component that has it answers, so a crash of the filter or of a NIC loses
//! nothing: the successor is asked again, in order. Nothing passes the filter unjudged; [`reject`] answers the senders
//! of blocked packets if the filter says so. Packets are not forwarded between devices.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod autoconf;
mod bytes;
mod clients;
pub mod config;
pub mod config_error;
pub mod counters;
mod datagram;
mod deliver;
mod engine;
mod family;
mod fatal;
mod gate;
mod given;
mod grants;
mod icmp;
mod lane;
mod learners;
mod limit;
mod link;
mod links;
mod local;
mod multicast;
mod neighbour;
mod neighbours_shown;
mod note;
mod pending;
mod reassemble;
mod reassembly;
mod receive;
mod reject;
mod repeat;
mod resolution;
mod route;
mod routed;
mod send;
mod settings;
#[cfg(test)]
mod tests;
mod v4;
mod v6;
mod verdict;

pub use counters::Counter;
pub use engine::{DOCKET_LEN, Ip, IpConfig};
pub use fatal::running_input;
pub use pending::{FromPeer, ToPeer};

/// The interface number that the filter sees for packets to the host's own addresses.
pub const LOCAL_INTERFACE: u8 = 255;

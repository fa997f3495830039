//! A DHCPv6 client (RFC 8415 §18.2), for addresses and other settings of one interface.

mod client;
mod lease;
pub mod message;

pub use client::{Client, Mode};
pub use lease::{Address, Lease};

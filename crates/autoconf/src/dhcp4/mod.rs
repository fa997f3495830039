//! A DHCPv4 client (RFC 2131 §4.4), for one interface.

mod client;
pub mod message;

pub use client::{Client, Lease, Send, To};

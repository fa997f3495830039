//! Code for IPv4 alone (RFC 791, RFC 826, RFC 792): its header and addresses, fragments, ARP and
//! ICMP.

pub(crate) mod address;
mod arp;
pub(crate) mod error;
mod fragment;
pub(crate) mod header;
mod icmp;
pub(crate) mod reassemble;
mod receive;

//! Code for IPv6 alone (RFC 8200): its header and addresses, fragments, ICMPv6 (RFC 4443) and neighbour discovery (RFC
//! 4861).

pub(crate) mod address;
mod discovery;
mod duplicates;
pub(crate) mod error;
pub(crate) mod flow;
mod fragment;
pub(crate) mod header;
mod icmp;
mod neighbours;
pub(crate) mod path;
pub(crate) mod reassemble;
mod receive;
mod redirect;
pub(crate) mod redirects;
mod routers;
pub(crate) mod tentative;

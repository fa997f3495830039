//! How a host gets its addresses, routes and name servers: from router advertisements (RFC 4861 §6.3, RFC 4862
//! §5.5, RFC 8106) by DHCPv4 (RFC 2131) and by DHCPv6 (RFC 8415). State machines without I/O and clock; ip carries their messages.
//!
//! What the network says is checked here before anything follows it: a message that is not for us, comes from elsewhere, or
//! does not parse changes nothing, and every list has a limit. [`known`] is what is known of one interface: it outlives a death
//! of ip, whose successor goes on from it.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod dhcp4;
pub mod dhcp6;
mod domains;
pub mod host;
pub mod identity;
pub mod known;
pub mod method;
pub mod router;

//! Names, resolved through the stack.
//!
//! libc's resolver has its own sockets, past every interposed symbol, so its functions are answered
//! here: numbers by libc itself, /etc/hosts as usual, everything else by a small DNS client over
//! eft sockets (RFC 1035), with the name server of the stack first and those of /etc/resolv.conf
//! after. IPv6 addresses (RFC 3596) are asked for if the stack has one; the best comes first (RFC 6724 §6).

pub mod addresses;
pub mod client;
pub mod configuration;
pub mod files;
pub mod hosts;
pub mod lookup;
pub mod message;
pub mod order;
pub mod reverse;
pub mod table;

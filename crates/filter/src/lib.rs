//! The filter engine: decides for each packet that ip asks about whether it may pass.
//!
//! Rules are written in pf.conf's syntax ([`lexer`], [`parser`]) and mean what they mean there: the
//! last matching rule wins, `quick` ends the search, a packet that no rule matches passes. Packets
//! of a known connection ([`state`]) pass without a search through the rules.
//!
//! Where it differs from pf:
//! - `pass` keeps state only if `keep state` is written. Such a rule matches TCP packets only if
//!   they begin a connection (`flags S/SA`) unless other `flags` are written, as in pf.
//! - A state matches its packets in both directions on every interface; TCP sequence numbers are
//!   not tracked, since ip's questions do not contain them.
//! - ICMP errors (unreachable, time exceeded, parameter problem; of ICMPv6 packet too big as well) pass by the state of the
//!   packet that they quote, in both directions, without a rule. The quoted addresses, protocol and ports are compared, and the
//!   end that is said to have sent the quoted packet must have sent something; tcp itself checks sequence numbers.
//! - `block return` answers TCP with a reset and everything else but ICMP with ICMP port unreachable; `block return-rst` and
//!   `block return-icmp` do one of the two. ip makes the answers, at a limited rate, and they pass unjudged. A blocked packet
//!   of the host itself is answered in the same way, so that its program sees `connection refused`. Codes and TTLs in brackets,
//!   and `return-icmp6`, are refused.
//! - Neighbour discovery is not filtered, as ARP is not: `block all` leaves neighbours reachable by IPv6, too. Rules name
//!   link-local addresses without their link; `on` says which link is meant.
//! - Lists stay one rule instead of being expanded, which matches the same packets.
//! - The packets of the host to itself leave by the interface `lo` and are judged once.
//!
//! Until the first rules (even if they are empty) have come from the store, no question is answered, so that nothing passes
//! unjudged while a reborn filter does not know its rules yet. The states lie in an arena and survive a crash.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod config;
pub mod counters;
mod durable;
mod edge;
mod engine;
pub mod lexer;
mod names;
pub mod parser;
pub mod rule;
mod show;
pub mod state;
#[cfg(test)]
mod tests;

pub use config::FilterConfig;
pub use counters::Counter;
pub use durable::{arena_len, convert, examine, revert, running_input};
pub use edge::ToIp;
pub use engine::Filter;

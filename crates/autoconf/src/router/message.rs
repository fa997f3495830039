//! A router's advertisement, read (RFC 4861 §4.2, §6.1.2).

use crate::domains::{self, DOMAINS_MAX};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

const OPTION_PREFIX: u8 = 3;
const OPTION_NAME_SERVERS: u8 = 25;
const OPTION_SEARCH: u8 = 31;
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
/// Of each kind, more are ignored.
const OPTIONS_MAX: usize = 16;

/// What the advertisement says. Lifetimes are in seconds; `u32::MAX` stands for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertisement {
    /// How long the sender is a default router; 0: it is none.
    pub router_s: u16,
    /// RFC 4191 §2.1: -1, 0 or 1.
    pub preference: i8,
    /// Addresses are to be had from DHCPv6, or only other things.
    pub managed: bool,
    pub other: bool,
    pub prefixes: Vec<Prefix>,
    /// RFC 8106 §5.1: servers with their lifetime.
    pub name_servers: Vec<(Ipv6Addr, u32)>,
    /// RFC 8106 §5.2: domains in which names are looked up, with their lifetime.
    pub search: Vec<(String, u32)>,
}

/// A prefix information option (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub prefix: Ipv6Addr,
    pub prefix_len: u8,
    pub on_link: bool,
    pub autonomous: bool,
    pub valid_s: u32,
    pub preferred_s: u32,
}

/// Reads a message from its ICMPv6 header on. The caller has checked checksum, hop limit and source.
pub fn parse(message: &[u8]) -> Option<Advertisement> {
    let (fixed, mut options) = message.split_at_checked(16)?;
    // Code 0 (§6.1.2).
    (fixed[1] == 0).then_some(())?;
    let preference = match fixed[5] >> 3 & 3 {
        1 => 1,
        3 => -1,
        // RFC 4191 §2.2: the reserved value counts as medium.
        _ => 0,
    };
    let mut read = Advertisement {
        router_s: u16::from_be_bytes([fixed[6], fixed[7]]),
        preference,
        managed: fixed[5] & 0x80 != 0,
        other: fixed[5] & 0x40 != 0,
        ..Advertisement::default()
    };
    while let [kind, units, ..] = *options {
        // An option without length makes the whole message invalid (§6.1.2).
        let (option, rest) = options.split_at_checked(units as usize * 8).filter(|(o, _)| !o.is_empty())?;
        match kind {
            OPTION_PREFIX if option.len() == 32 && read.prefixes.len() < OPTIONS_MAX => {
                read.prefixes.extend(prefix(option));
            }
            OPTION_NAME_SERVERS if option.len() >= 24 => {
                let lifetime = word(option, 4)?;
                let servers = option[8..].chunks_exact(16).filter_map(address);
                let room = OPTIONS_MAX - read.name_servers.len();
                read.name_servers.extend(servers.take(room).map(|a| (a, lifetime)));
            }
            OPTION_SEARCH if option.len() >= 16 => {
                let lifetime = word(option, 4)?;
                let room = DOMAINS_MAX.saturating_sub(read.search.len());
                let domains = domains::read(&option[8..], false).into_iter();
                read.search.extend(domains.take(room).map(|name| (name, lifetime)));
            }
            _ => {}
        }
        options = rest;
    }
    options.is_empty().then_some(read)
}

fn prefix(option: &[u8]) -> Option<Prefix> {
    Some(Prefix {
        prefix: address(option.get(16..32)?)?,
        prefix_len: Some(option[2]).filter(|len| *len <= 128)?,
        on_link: option[3] & ON_LINK != 0,
        autonomous: option[3] & AUTONOMOUS != 0,
        valid_s: word(option, 4)?,
        preferred_s: word(option, 8)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn address(bytes: &[u8]) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
}

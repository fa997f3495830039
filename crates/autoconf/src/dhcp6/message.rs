//! Messages of DHCPv6 (RFC 8415 §8, §21): a server's read, a client's written.

use crate::domains;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

const CLIENT_ID: u16 = 1;
const SERVER_ID: u16 = 2;
const IA_NA: u16 = 3;
const ADDRESS: u16 = 5;
const WANTED: u16 = 6;
const PREFERENCE: u16 = 7;
const ELAPSED: u16 = 8;
const STATUS: u16 = 13;
const NAME_SERVERS: u16 = 23;
const SEARCH: u16 = 24;
const SOLICIT_MAX: u16 = 82;

/// Of each list, more are ignored.
pub const ADDRESSES_MAX: usize = 4;
const NAME_SERVERS_MAX: usize = 3;
/// RFC 8415 §11.1: a DUID has at most 130 bytes.
const DUID_MAX: usize = 130;
/// §21.24: outside of this range it is ignored.
const SOLICIT_MAX_RANGE: core::ops::RangeInclusive<u32> = 60..=86400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Solicit = 1,
    Advertise = 2,
    Request = 3,
    Confirm = 4,
    Renew = 5,
    Rebind = 6,
    Reply = 7,
    Release = 8,
    Decline = 9,
    InformationRequest = 11,
}

/// Status codes (§21.13).
pub const SUCCESS: u16 = 0;
pub const NO_BINDING: u16 = 3;
pub const NOT_ON_LINK: u16 = 4;

/// What a server says. Lifetimes are in seconds; `u32::MAX` stands for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub kind: Kind,
    pub server: Vec<u8>,
    /// Of the whole message, or of its association.
    pub status: u16,
    pub preference: u8,
    /// Times of the association after which it is renewed and rebound; 0: as the client likes.
    pub renew_s: u32,
    pub rebind_s: u32,
    /// Addresses with their preferred and valid lifetimes.
    pub addresses: Vec<(Ipv6Addr, u32, u32)>,
    pub name_servers: Vec<Ipv6Addr>,
    pub search: Vec<String>,
    /// The most that solicitations may be apart.
    pub solicit_max_s: Option<u32>,
}

/// Reads a message that answers the one with this `xid` to the client with this `duid` (§16.3, §16.10).
pub fn parse(message: &[u8], xid: u32, duid: &[u8], iaid: u32) -> Option<Reply> {
    let (head, options) = message.split_at_checked(4)?;
    let kind = match head[0] {
        2 => Kind::Advertise,
        7 => Kind::Reply,
        _ => return None,
    };
    (head[1..] == xid.to_be_bytes()[1..]).then_some(())?;
    let options = read(options)?;
    let get = |kind| options.iter().find(|(k, _)| *k == kind).map(|(_, value)| *value);
    let server = get(SERVER_ID).filter(|id| !id.is_empty() && id.len() <= DUID_MAX)?;
    (get(CLIENT_ID) == Some(duid)).then_some(())?;
    let mut reply = Reply {
        kind,
        server: server.into(),
        status: status(&options),
        preference: get(PREFERENCE).and_then(|p| p.first().copied()).unwrap_or(0),
        renew_s: 0,
        rebind_s: 0,
        addresses: Vec::new(),
        name_servers: get(NAME_SERVERS).map(addresses).unwrap_or_default(),
        search: get(SEARCH).map(|list| domains::read(list, false)).unwrap_or_default(),
        solicit_max_s: get(SOLICIT_MAX).and_then(|s| word(s, 0)).filter(|s| SOLICIT_MAX_RANGE.contains(s)),
    };
    let ours = |(kind, value): &&(u16, &[u8])| *kind == IA_NA && word(value, 0) == Some(iaid);
    if let Some((_, association)) = options.iter().find(ours) {
        reply.read_association(association)?;
    }
    Some(reply)
}

impl Reply {
    /// §21.4.
    fn read_association(&mut self, association: &[u8]) -> Option<()> {
        let (fixed, options) = association.split_at_checked(12)?;
        (self.renew_s, self.rebind_s) = (word(fixed, 4)?, word(fixed, 8)?);
        // Such an association is ignored.
        (self.rebind_s == 0 || self.renew_s <= self.rebind_s).then_some(())?;
        let options = read(options)?;
        if self.status == SUCCESS {
            self.status = status(&options);
        }
        for (_, value) in options.iter().filter(|(kind, _)| *kind == ADDRESS) {
            let (Some(address), Some(preferred), Some(valid)) =
                (value.get(..16).and_then(address), word(value, 16), word(value, 20))
            else {
                continue;
            };
            let inner = read(value.get(24..)?)?;
            // §21.6: a preferred lifetime beyond the valid one makes the address void.
            if preferred <= valid && status(&inner) == SUCCESS && self.addresses.len() < ADDRESSES_MAX {
                self.addresses.push((address, preferred, valid));
            }
        }
        Some(())
    }
}

/// Options that stand one behind another.
fn read(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(4)?;
        let len = u16::from_be_bytes([head[2], head[3]]);
        let (value, rest) = rest.split_at_checked(len.into())?;
        all.push((u16::from_be_bytes([head[0], head[1]]), value));
        bytes = rest;
    }
    Some(all)
}

/// §21.13: without the option all is well.
fn status(options: &[(u16, &[u8])]) -> u16 {
    let option = options.iter().find(|(kind, _)| *kind == STATUS);
    option.and_then(|(_, s)| Some(u16::from_be_bytes([*s.first()?, *s.get(1)?]))).unwrap_or(SUCCESS)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn address(bytes: &[u8]) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
}

fn addresses(bytes: &[u8]) -> Vec<Ipv6Addr> {
    bytes.chunks_exact(16).filter_map(address).take(NAME_SERVERS_MAX).collect()
}

/// What a client says.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    pub xid: u32,
    pub duid: &'a [u8],
    pub server: Option<&'a [u8]>,
    /// Hundredths of a second since it began to ask (§21.9).
    pub elapsed: u16,
    /// The association with the addresses that are wanted, held or given back.
    pub association: Option<(u32, &'a [Ipv6Addr])>,
}

impl Message<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut m = self.xid.to_be_bytes().to_vec();
        m[0] = self.kind as u8;
        let mut option = |kind: u16, value: &[u8]| write(&mut m, kind, value);
        option(CLIENT_ID, self.duid);
        if let Some(server) = self.server {
            option(SERVER_ID, server);
        }
        option(ELAPSED, &self.elapsed.to_be_bytes());
        if let Some((iaid, addresses)) = self.association {
            // §21.4, §21.6: times and lifetimes are for the server to choose.
            let mut association = iaid.to_be_bytes().to_vec();
            association.extend([0; 8]);
            for address in addresses {
                let value: Vec<u8> = address.octets().into_iter().chain([0; 8]).collect();
                write(&mut association, ADDRESS, &value);
            }
            option(IA_NA, &association);
        }
        if !matches!(self.kind, Kind::Confirm | Kind::Release | Kind::Decline) {
            let wanted: Vec<u8> =
                [NAME_SERVERS, SEARCH, SOLICIT_MAX].iter().flat_map(|k| k.to_be_bytes()).collect();
            option(WANTED, &wanted);
        }
        m
    }
}

fn write(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(kind.to_be_bytes());
    to.extend((value.len() as u16).to_be_bytes());
    to.extend(value);
}

#[cfg(test)]
pub(super) mod tests;

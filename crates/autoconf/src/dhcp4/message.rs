//! Messages of DHCPv4 (RFC 2131 §2, RFC 2132): a server's read, a client's written.

use crate::domains;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use eft_base::{Cidr, MacAddress};

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: u8 = 1;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Up to and with the cookie.
const FIXED_LEN: usize = 240;
/// A client sends no shorter message (RFC 1542 §2.1): BOOTP's length.
const LEN_MIN: usize = 300;
/// What a client says that it takes (RFC 2132 §9.10), with IP and UDP headers.
pub const LEN_MAX: u16 = 1400;

/// Where the fields of the fixed part lie.
const AT_XID: usize = 4;
const AT_SECONDS: usize = 8;
const AT_CLIENT: usize = 12;
const AT_YOURS: usize = 16;
const AT_MAC: usize = 28;
const AT_SERVER_NAME: usize = 44;
const AT_FILE: usize = 108;
const AT_COOKIE: usize = 236;

const SUBNET_MASK: u8 = 1;
const ROUTERS: u8 = 3;
const NAME_SERVERS: u8 = 6;
const DOMAIN: u8 = 15;
const REQUESTED: u8 = 50;
const LEASE_TIME: u8 = 51;
const OVERLOAD: u8 = 52;
const KIND: u8 = 53;
const SERVER: u8 = 54;
const WANTED: u8 = 55;
const MESSAGE_LEN: u8 = 57;
const RENEWAL: u8 = 58;
const REBINDING: u8 = 59;
const CLIENT_ID: u8 = 61;
const SEARCH: u8 = 119;
const ROUTES: u8 = 121;
const PAD: u8 = 0;
const END: u8 = 255;

/// Of each list, more are ignored.
const ROUTERS_MAX: usize = 2;
const ROUTES_MAX: usize = 8;
const NAME_SERVERS_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Discover = 1,
    Offer = 2,
    Request = 3,
    Decline = 4,
    Ack = 5,
    Nak = 6,
    Release = 7,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub kind: Kind,
    pub address: Ipv4Addr,
    pub server: Option<Ipv4Addr>,
    /// Seconds; `u32::MAX` stands for ever.
    pub lease_s: Option<u32>,
    pub renewal_s: Option<u32>,
    pub rebinding_s: Option<u32>,
    pub prefix_len: u8,
    /// Destinations, each with its router, or `None`: they are neighbours.
    pub routes: Vec<(Cidr, Option<Ipv4Addr>)>,
    pub name_servers: Vec<Ipv4Addr>,
    pub search: Vec<String>,
}

/// Reads a message to the client with this link address that answers its message `xid`.
pub fn parse(message: &[u8], xid: u32, mac: MacAddress) -> Option<Reply> {
    let fixed = message.get(..FIXED_LEN)?;
    let is_reply = fixed[..3] == [REPLY, ETHERNET, 6] && fixed[AT_COOKIE..] == COOKIE;
    let is_ours = fixed[AT_XID..AT_XID + 4] == xid.to_be_bytes() && fixed[AT_MAC..AT_MAC + 6] == mac.0;
    (is_reply && is_ours).then_some(())?;
    let options = Options::of(message)?;
    let kind = match *options.get(KIND) {
        [2] => Kind::Offer,
        [5] => Kind::Ack,
        [6] => Kind::Nak,
        _ => return None,
    };
    let address = address_at(fixed, AT_YOURS)?;
    let mask = options.get(SUBNET_MASK);
    let prefix_len = match mask.is_empty() {
        true => classful(address),
        false => prefix_len(word(&mask)?)?,
    };
    let number = |option| word(&options.get(option));
    let domain = options.get(DOMAIN);
    let search = match domains::read(&options.get(SEARCH), true) {
        // RFC 2132 §3.17: one domain, as text.
        none if none.is_empty() => domains::from_text(&domain).into_iter().collect(),
        search => search,
    };
    Some(Reply {
        kind,
        address,
        server: number(SERVER).map(Ipv4Addr::from),
        lease_s: number(LEASE_TIME),
        renewal_s: number(RENEWAL),
        rebinding_s: number(REBINDING),
        prefix_len,
        routes: routes(&options),
        name_servers: addresses(&options.get(NAME_SERVERS), NAME_SERVERS_MAX),
        search,
    })
}

/// RFC 3442: if there are classless routes, the routers do not count.
fn routes(options: &Options) -> Vec<(Cidr, Option<Ipv4Addr>)> {
    let (mut all, classless) = (Vec::new(), options.get(ROUTES));
    let mut rest = &classless[..];
    while let [len @ 0..=32, tail @ ..] = rest
        && all.len() < ROUTES_MAX
    {
        let significant = usize::from(*len).div_ceil(8);
        let Some((bytes, tail)) = tail.split_at_checked(significant + 4) else { break };
        let mut network = [0; 4];
        network[..significant].copy_from_slice(&bytes[..significant]);
        let router = address_at(bytes, significant).filter(|router| !router.is_unspecified());
        let destination = Cidr { address: Ipv4Addr::from(network).into(), prefix_len: *len };
        all.push((destination.network(), router));
        rest = tail;
    }
    if classless.is_empty() {
        let everywhere = Cidr { address: Ipv4Addr::UNSPECIFIED.into(), prefix_len: 0 };
        let routers = addresses(&options.get(ROUTERS), ROUTERS_MAX);
        all.extend(routers.into_iter().map(|router| (everywhere, Some(router))));
    }
    all
}

/// The options of a message, with those in the fields that they may use, too.
struct Options<'a>(Vec<(u8, &'a [u8])>);

impl<'a> Options<'a> {
    fn of(message: &'a [u8]) -> Option<Options<'a>> {
        let mut all = Options(Vec::new());
        all.read(&message[FIXED_LEN..])?;
        // RFC 2132 §9.3.
        let overload = match *all.get(OVERLOAD) {
            [which @ 1..=3] => which,
            _ => 0,
        };
        if overload & 1 != 0 {
            all.read(&message[AT_FILE..AT_COOKIE])?;
        }
        if overload & 2 != 0 {
            all.read(&message[AT_SERVER_NAME..AT_FILE])?;
        }
        Some(all)
    }

    fn read(&mut self, mut bytes: &'a [u8]) -> Option<()> {
        loop {
            match *bytes {
                [] | [END, ..] => return Some(()),
                [PAD, ref rest @ ..] => bytes = rest,
                [kind, len, ref rest @ ..] => {
                    let (value, rest) = rest.split_at_checked(len.into())?;
                    self.0.push((kind, value));
                    bytes = rest;
                }
                [_] => return None,
            }
        }
    }

    /// RFC 3396: one that comes in pieces is put together.
    fn get(&self, kind: u8) -> Cow<'a, [u8]> {
        let mut pieces = self.0.iter().filter(|(k, _)| *k == kind).map(|(_, value)| *value);
        let first = pieces.next().unwrap_or_default();
        pieces.fold(Cow::Borrowed(first), |all, piece| Cow::Owned([&all[..], piece].concat()))
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn address_at(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    word(bytes.get(at..at + 4)?).map(Ipv4Addr::from)
}

fn addresses(bytes: &[u8], most: usize) -> Vec<Ipv4Addr> {
    bytes.chunks_exact(4).filter_map(|a| address_at(a, 0)).take(most).collect()
}

fn prefix_len(mask: u32) -> Option<u8> {
    let len = mask.leading_ones();
    (len + mask.trailing_zeros() >= 32).then_some(len as u8)
}

/// The network of an address whose mask is not said.
fn classful(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        ..128 => 8,
        128..192 => 16,
        _ => 24,
    }
}

/// What a client says.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    pub xid: u32,
    /// Since it began to ask.
    pub seconds: u16,
    pub mac: MacAddress,
    pub client_id: &'a [u8],
    /// The address that it has.
    pub has: Option<Ipv4Addr>,
    /// The one that it wants, or declines.
    pub requested: Option<Ipv4Addr>,
    pub server: Option<Ipv4Addr>,
}

impl Message<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut m = alloc::vec![0; FIXED_LEN];
        m[..3].copy_from_slice(&[REQUEST, ETHERNET, 6]);
        m[AT_XID..AT_XID + 4].copy_from_slice(&self.xid.to_be_bytes());
        m[AT_SECONDS..AT_SECONDS + 2].copy_from_slice(&self.seconds.to_be_bytes());
        let has = self.has.unwrap_or(Ipv4Addr::UNSPECIFIED);
        m[AT_CLIENT..AT_CLIENT + 4].copy_from_slice(&has.octets());
        m[AT_MAC..AT_MAC + 6].copy_from_slice(&self.mac.0);
        m[AT_COOKIE..].copy_from_slice(&COOKIE);
        let mut option = |kind: u8, value: &[u8]| {
            m.extend([kind, value.len() as u8]);
            m.extend(value);
        };
        option(KIND, &[self.kind as u8]);
        option(CLIENT_ID, self.client_id);
        if let Some(address) = self.requested {
            option(REQUESTED, &address.octets());
        }
        if let Some(server) = self.server {
            option(SERVER, &server.octets());
        }
        if matches!(self.kind, Kind::Discover | Kind::Request) {
            option(MESSAGE_LEN, &LEN_MAX.to_be_bytes());
            // RFC 3442: the classless routes before the routers.
            option(WANTED, &[SUBNET_MASK, ROUTES, ROUTERS, NAME_SERVERS, DOMAIN, SEARCH, RENEWAL, REBINDING]);
        }
        m.push(END);
        m.resize(m.len().max(LEN_MIN), PAD);
        m
    }
}

#[cfg(test)]
pub(super) mod tests;

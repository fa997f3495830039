//! Answers of rtnetlink(7) about the stack.

use super::message::{DONE, ERROR, HEADER_LEN, MULTI, Message, Request, attribute, number, requests};
use crate::interfaces::{self, Interface, Way};
use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr};
use eft_base::Cidr;
use eft_base::address::needs_zone;

const NEWLINK: u16 = 16;
const GETLINK: u16 = 18;
const NEWADDR: u16 = 20;
const GETADDR: u16 = 22;
const NEWROUTE: u16 = 24;
const GETROUTE: u16 = 26;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;

const IFLA_ADDRESS: u16 = 1;
const IFLA_BROADCAST: u16 = 2;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_QDISC: u16 = 6;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;
const IFA_BROADCAST: u16 = 4;
const IFA_FLAGS: u16 = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_TABLE: u16 = 15;

const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const PERMANENT: u8 = 0x80;
const TABLE_MAIN: u8 = 254;
const LOWER_UP: u32 = 0x10000;
/// RTM_F_CLONED.
const CLONED: u32 = 0x200;
/// The index of `lo`.
const LOOPBACK: u32 = 1;

/// Bytes of a datagram of a long answer; programs have buffers of a page.
const PART_MAX: usize = 3584;

/// A route to a network.
struct Route {
    to: IpAddr,
    prefix_len: u8,
    by: Interface,
    gateway: Option<IpAddr>,
    metric: u32,
}

/// The datagrams that answer the requests in one datagram.
pub fn to(datagram: &[u8], port: u32) -> Vec<Vec<u8>> {
    requests(datagram).iter().flat_map(|request| to_one(request, port)).collect()
}

fn to_one(request: &Request, port: u32) -> Vec<Vec<u8>> {
    let dump = request.flags & DUMP == DUMP;
    let flags = if dump { MULTI } else { 0 };
    let begin = |kind: u16| Message::new(kind, flags, request.sequence, port);
    let messages = match (request.kind, dump) {
        (GETLINK, true) => Ok(interfaces::by_name().iter().map(|i| link(begin(NEWLINK), i)).collect()),
        (GETLINK, false) => match one_link(request.body) {
            Some(found) => Ok(vec![link(begin(NEWLINK), &found)]),
            None => Err(libc::ENODEV),
        },
        (GETADDR, true) => Ok(asked_addresses(request.body).map(|i| address(begin(NEWADDR), &i)).collect()),
        (GETROUTE, true) => {
            let mut all = routes();
            all.retain(|r| is_of(request.body, r.to));
            Ok(all.iter().map(|r| route(begin(NEWROUTE), r, false)).collect())
        }
        (GETROUTE, false) => match one_route(request.body) {
            Some((to, found)) => {
                let prefix_len = whole(to);
                Ok(vec![route(begin(NEWROUTE), &Route { to, prefix_len, ..found }, true)])
            }
            None => Err(libc::ENETUNREACH),
        },
        // There are no neighbours, rules or queues to list.
        (kind, true) if kind % 4 == 2 => Ok(Vec::new()),
        _ => Err(libc::EOPNOTSUPP),
    };
    match messages {
        Ok(messages) if dump => parts(messages, begin(DONE).fixed(&0i32.to_ne_bytes()).done()),
        Ok(messages) if request.flags & ACK != 0 => [messages, vec![result(request, port, 0)]].concat(),
        Ok(messages) => messages,
        Err(errno) => vec![result(request, port, errno)],
    }
}

/// Success (0) or an error, with the header of what it is about.
fn result(request: &Request, port: u32, errno: i32) -> Vec<u8> {
    Message::new(ERROR, 0, request.sequence, port)
        .fixed(&(-errno).to_ne_bytes())
        .fixed(&request.header[..HEADER_LEN])
        .done()
}

/// Messages in datagrams of limited size, and the last one.
fn parts(messages: Vec<Vec<u8>>, last: Vec<u8>) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for message in messages {
        if parts.last().is_some_and(|p| !p.is_empty() && p.len() + message.len() > PART_MAX) {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("there is one").extend(message);
    }
    parts.retain(|part| !part.is_empty());
    parts.push(last);
    parts
}

/// Whether an address is of the requested family; AF_UNSPEC matches any.
fn is_of(body: &[u8], address: IpAddr) -> bool {
    match body.first().map(|&family| family.into()) {
        Some(libc::AF_INET) => address.is_ipv4(),
        Some(libc::AF_INET6) => address.is_ipv6(),
        _ => true,
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

/// Bits of an address.
fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

/// Body: family, pad, kind (16 bits), index, flags, change mask.
fn link(message: Message, i: &Interface) -> Vec<u8> {
    let kind = if i.is_loopback() { libc::ARPHRD_LOOPBACK } else { libc::ARPHRD_ETHER };
    let lower = if i.up { LOWER_UP } else { 0 };
    let (up, down, unknown) = (6, 2, 0);
    let state = match (i.is_loopback(), i.up) {
        (true, _) => unknown,
        (_, true) => up,
        (_, false) => down,
    };
    let everybody = if i.is_loopback() { [0; 6] } else { [0xff; 6] };
    message
        .fixed(&[0, 0])
        .fixed(&kind.to_ne_bytes())
        .fixed(&i.index.to_ne_bytes())
        .fixed(&(i.flags() as u32 | lower).to_ne_bytes())
        .fixed(&[0; 4])
        .text(IFLA_IFNAME, &i.name)
        .attribute(IFLA_TXQLEN, &1000u32.to_ne_bytes())
        .attribute(IFLA_OPERSTATE, &[state])
        .attribute(IFLA_MTU, &(i.mtu as u32).to_ne_bytes())
        .text(IFLA_QDISC, "noqueue")
        .attribute(IFLA_ADDRESS, &i.mac)
        .attribute(IFLA_BROADCAST, &everybody)
        .done()
}

fn one_link(body: &[u8]) -> Option<Interface> {
    let index = number(body, 4);
    let name = attribute(body, 16, IFLA_IFNAME).map(|n| n.split(|&b| b == 0).next().unwrap_or_default());
    interfaces::by_name().into_iter().find(|i| match name {
        Some(name) if index == 0 => i.name.as_bytes() == name,
        _ => i.index == index,
    })
}

/// The addresses of the requested family and interface.
fn asked_addresses(body: &[u8]) -> impl Iterator<Item = Interface> {
    let mut all = interfaces::all();
    let index = number(body, 4);
    all.retain(|i| is_of(body, i.address) && (index == 0 || i.index == index));
    all.into_iter()
}

/// Body: family, prefix length, flags, scope, index.
fn address(message: Message, i: &Interface) -> Vec<u8> {
    let scope = match i.address {
        _ if i.is_loopback() => SCOPE_HOST,
        IpAddr::V6(a) if needs_zone(a) => SCOPE_LINK,
        _ => SCOPE_UNIVERSE,
    };
    let message = message
        .fixed(&[family(i.address), i.prefix_len, PERMANENT, scope])
        .fixed(&i.index.to_ne_bytes())
        .attribute(IFA_ADDRESS, &octets(i.address));
    let flags = u32::from(PERMANENT).to_ne_bytes();
    // Linux reports labels and local addresses for IPv4 only.
    if i.address.is_ipv6() {
        return message.attribute(IFA_FLAGS, &flags).done();
    }
    let message = message.attribute(IFA_LOCAL, &octets(i.address));
    let message = match i.broadcast().filter(|_| !i.is_loopback() && i.prefix_len < 31) {
        None => message,
        Some(broadcast) => message.attribute(IFA_BROADCAST, &broadcast.octets()),
    };
    message.text(IFA_LABEL, &i.name).attribute(IFA_FLAGS, &flags).done()
}

/// The configured routes, and those to the networks of the stack's addresses.
fn routes() -> Vec<Route> {
    let mut own = interfaces::all();
    own.retain(|i| !i.is_loopback());
    let mut all: Vec<Route> = interfaces::ways().iter().filter_map(|way| configured(way, &own)).collect();
    if all.is_empty() {
        // An older stack says its gateway only.
        let behind = own.iter().find(|i| i.gateway.is_some());
        all.extend(behind.map(|i| Route {
            to: Ipv4Addr::UNSPECIFIED.into(),
            prefix_len: 0,
            gateway: i.gateway.map(IpAddr::V4),
            metric: 0,
            by: i.clone(),
        }));
    }
    all.extend(own.iter().map(|i| Route {
        to: i.network(),
        prefix_len: i.prefix_len,
        gateway: None,
        metric: 0,
        by: i.clone(),
    }));
    all
}

/// A configured route, by the address from which packets go there: the one in the gateway's network, or the first.
fn configured(way: &Way, own: &[Interface]) -> Option<Route> {
    let to = way.network.address;
    let alike = |i: &&Interface| i.index == way.index && i.address.is_ipv4() == to.is_ipv4();
    let near = own.iter().filter(alike).find(|i| way.gateway.is_some_and(|gateway| i.reaches(gateway)));
    let by = near.or_else(|| own.iter().find(alike))?.clone();
    let Way { gateway, metric, .. } = *way;
    Some(Route { to, prefix_len: way.network.prefix_len, gateway, metric, by })
}

/// The route to the requested address: the one with the longest prefix; to an address of the stack, over
/// `lo`.
fn one_route(body: &[u8]) -> Option<(IpAddr, Route)> {
    let to = attribute(body, 12, RTA_DST)?;
    let to = match (<[u8; 4]>::try_from(to), <[u8; 16]>::try_from(to)) {
        (Ok(v4), _) => IpAddr::from(v4),
        (_, Ok(v6)) => IpAddr::from(v6),
        _ => return None,
    };
    let own = interfaces::all().into_iter().find(|i| i.address == to || i.is_loopback() && to.is_loopback());
    let found = match own {
        Some(own) => {
            let lo = interfaces::all().into_iter().find(Interface::is_loopback)?;
            Route {
                to,
                prefix_len: whole(to),
                gateway: None,
                metric: 0,
                by: Interface { address: own.address, ..lo },
            }
        }
        None => {
            let reaches = |r: &Route| Cidr { address: r.to, prefix_len: r.prefix_len }.contains(to);
            routes().into_iter().filter(reaches).max_by_key(|r| (r.prefix_len, Reverse(r.metric)))?
        }
    };
    Some((to, found))
}

/// Body: family, prefix lengths of destination and source, TOS, table, protocol, scope, kind, flags. A route
/// for a single destination has no table.
fn route(message: Message, r: &Route, asked: bool) -> Vec<u8> {
    let (kernel, fixed, nobody) = (2, 4, 0);
    let (protocol, scope) = match r.gateway {
        _ if asked => (nobody, SCOPE_UNIVERSE),
        Some(_) => (fixed, SCOPE_UNIVERSE),
        None => (kernel, SCOPE_LINK),
    };
    let (unicast, local) = (1, 2);
    let kind = if r.by.index == LOOPBACK { local } else { unicast };
    let flags = if asked { CLONED } else { 0 };
    let message = message
        .fixed(&[family(r.to), r.prefix_len, 0, 0, TABLE_MAIN, protocol, scope, kind])
        .fixed(&flags.to_ne_bytes())
        .attribute(RTA_TABLE, &u32::from(TABLE_MAIN).to_ne_bytes());
    let message = match r.prefix_len {
        0 => message,
        _ => message.attribute(RTA_DST, &octets(r.to)),
    };
    let message = match r.gateway {
        Some(gateway) => message.attribute(RTA_GATEWAY, &octets(gateway)),
        None => message,
    };
    let message = match r.metric {
        0 => message,
        metric => message.attribute(RTA_PRIORITY, &metric.to_ne_bytes()),
    };
    message.attribute(RTA_PREFSRC, &octets(r.by.address)).attribute(RTA_OIF, &r.by.index.to_ne_bytes()).done()
}

#[cfg(test)]
mod tests;

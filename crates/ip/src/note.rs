//! By what ip's inputs are known in its [docket](eft_arena::docket): by what stays the same when they come again to a successor.

use crate::link::Link;
use core::net::IpAddr;
use eft_arena::docket::{BEHIND, Kind, Note};
use eft_autoconf::method::Method;
use eft_base::{MacAddress, PacketRef, WireAddress};

/// Whose timer it is.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Whose {
    Neighbour,
    Fragments,
    Address,
    Group,
    Method,
    Grants,
}

impl Whose {
    const ALL: [(Whose, &str); 6] = [
        (Whose::Neighbour, "a neighbour"),
        (Whose::Fragments, "fragments"),
        (Whose::Address, "an address that is tried out"),
        (Whose::Group, "a group"),
        (Whose::Method, "a method by which an interface gets addresses"),
        (Whose::Grants, "the filter's grants"),
    ];
}

/// Whose a timer is, for people.
pub(crate) fn whose(number: u32) -> Option<&'static str> {
    Whose::ALL.iter().find(|(whose, _)| *whose as u32 == number).map(|(_, name)| *name)
}

fn halves(address: WireAddress) -> [u64; 2] {
    let number = u128::from_le_bytes(address.0);
    [number as u64, (number >> 64) as u64]
}

fn timer(whose: Whose, interface: u8, rest: u64, address: IpAddr) -> Note {
    let [net, host] = halves(address.into());
    Note::of(Kind::Timer, whose as u32, 0, &[interface.into(), rest, net, host])
}

/// What is due about a neighbour. `which` tells apart what may be.
pub(crate) fn neighbour(interface: u8, address: IpAddr, which: u8) -> Note {
    timer(Whose::Neighbour, interface, which.into(), address)
}

/// The end of a datagram of which fragments are missing. Its sender may send it again, with another identification.
pub(crate) fn fragments(source: IpAddr, destination: IpAddr, protocol: u8) -> Note {
    let ([net, host], [to_net, to_host]) = (halves(source.into()), halves(destination.into()));
    Note::of(Kind::Timer, Whose::Fragments as u32, 0, &[protocol.into(), net, host, to_net, to_host])
}

/// The end of duplicate address detection.
pub(crate) fn address(interface: u8, address: IpAddr) -> Note {
    timer(Whose::Address, interface, 0, address)
}

/// What is due about a group.
pub(crate) fn group(interface: u8, group: IpAddr) -> Note {
    timer(Whose::Group, interface, 0, group)
}

/// A report about groups.
pub(crate) fn report(interface: u8, message: &[u8]) -> Note {
    Note::bytes(Kind::Send, interface.into(), message)
}

/// What is due of a method by which an interface gets addresses.
pub(crate) fn method(interface: u8, method: Method) -> Note {
    Note::of(Kind::Timer, Whose::Method as u32, 0, &[interface.into(), method as u64])
}

/// The report about packets that passed by grants.
pub(crate) fn grants() -> Note {
    Note::of(Kind::Timer, Whose::Grants as u32, 0, &[])
}

/// A transport's question for a route.
pub(crate) fn route(source: WireAddress, destination: WireAddress) -> Note {
    let ([net, host], [to_net, to_host]) = (halves(source), halves(destination));
    Note::alone(Kind::Route, &[net, host, to_net, to_host])
}

/// A step of a list of groups, wherever in the list it stands.
pub(crate) fn step(step: u8, (interface, group): (u8, IpAddr), source: WireAddress) -> Note {
    let ([net, host], [from_net, from_host]) = (halves(group.into()), halves(source));
    Note::alone(Kind::Group, &[step.into(), interface.into(), net, host, from_net, from_host])
}

/// What a device says of its link.
pub(crate) fn link(interface: u8, link: &Link) -> Note {
    let Link { mac: MacAddress([a, b, c, d, e, f]), mtu, up, checksum, segment_max } = *link;
    let mac = u64::from_le_bytes([a, b, c, d, e, f, up.into(), checksum.into()]);
    Note::alone(Kind::Link, &[interface.into(), mac, mtu.into(), segment_max.into()])
}

/// A packet on its way out, by its destination, the begin of its transport's header, and where its payload lies, which stays the same
/// when a transport asks again.
pub(crate) fn outgoing(destination: WireAddress, header: &[u8], payload: &[PacketRef]) -> Note {
    let mut known = [0; BEHIND];
    let len = header.len().min(BEHIND);
    known[..len].copy_from_slice(&header[..len]);
    let ([net, host], [ports, rest]) = (halves(destination), halves(WireAddress(known)));
    let payload = payload.first().copied().unwrap_or_default();
    let place = u64::from(payload.slot) << 32 | u64::from(payload.offset);
    Note::alone(Kind::Send, &[net, host, ports, rest, place, payload.len.into()])
}

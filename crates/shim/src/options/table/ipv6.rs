//! The rows of ipv6(7).

use super::{IPV6, Kind, MEMBER, Row, WHOLE, both};
use crate::socket::bit;
use eft_channel::socket::Opt;
use eft_messages::sockets::membership;

pub(super) const OPTIONS: &[Row] = &[
    both(IPV6, 16, "IPV6_UNICAST_HOPS", Kind::Word(Opt::Ttl), "as IP_TTL"),
    Row {
        level: IPV6,
        number: 17,
        name: "IPV6_MULTICAST_IF",
        stream: Some(Kind::Computed(|_| 0)),
        datagram: Some(Kind::MulticastInterface),
        note: "",
    },
    Row {
        level: IPV6,
        number: 18,
        name: "IPV6_MULTICAST_HOPS",
        stream: Some(Kind::Computed(|_| 1)),
        datagram: Some(Kind::MulticastHops),
        note: "as IP_MULTICAST_TTL; 1 on a stream, as on Linux",
    },
    both(IPV6, 19, "IPV6_MULTICAST_LOOP", Kind::Unless(Opt::NoMulticastLoop), ""),
    both(IPV6, 20, "IPV6_ADD_MEMBERSHIP", Kind::Membership(membership::JOIN), MEMBER),
    both(IPV6, 21, "IPV6_DROP_MEMBERSHIP", Kind::Membership(membership::LEAVE), MEMBER),
    both(
        IPV6,
        23,
        "IPV6_MTU_DISCOVER",
        Kind::DontFragment,
        "of no effect on IPv4 packets of a stream; as IP_MTU_DISCOVER on a datagram socket",
    ),
    Row {
        level: IPV6,
        number: 25,
        name: "IPV6_RECVERR",
        stream: None,
        datagram: Some(Kind::ErrorQueue),
        note: "as IP_RECVERR, which it sets as well: errors of both versions are queued",
    },
    both(
        IPV6,
        26,
        "IPV6_V6ONLY",
        Kind::V6Only,
        "before the socket has an address; with it on the socket is the kernel's if the stack has no IPv6 address",
    ),
    both(IPV6, 29, "IPV6_MULTICAST_ALL", Kind::Unless(Opt::OwnGroupsOnly), ""),
    both(IPV6, 42, "MCAST_JOIN_GROUP of IPv6", Kind::Membership(membership::JOIN), MEMBER),
    both(IPV6, 43, "MCAST_BLOCK_SOURCE of IPv6", Kind::Membership(membership::BLOCK), MEMBER),
    both(IPV6, 44, "MCAST_UNBLOCK_SOURCE of IPv6", Kind::Membership(membership::UNBLOCK), MEMBER),
    both(IPV6, 45, "MCAST_LEAVE_GROUP of IPv6", Kind::Membership(membership::LEAVE), MEMBER),
    both(IPV6, 46, "MCAST_JOIN_SOURCE_GROUP of IPv6", Kind::Membership(membership::JOIN_SOURCE), MEMBER),
    both(IPV6, 47, "MCAST_LEAVE_SOURCE_GROUP of IPv6", Kind::Membership(membership::LEAVE_SOURCE), MEMBER),
    both(IPV6, 48, "MCAST_MSFILTER of IPv6", Kind::Filter, WHOLE),
    both(IPV6, 49, "IPV6_RECVPKTINFO", Kind::Bit(bit::PACKET_INFO), ""),
    both(IPV6, 51, "IPV6_RECVHOPLIMIT", Kind::Bit(bit::RECEIVE_HOP_LIMIT), "of IPv6 packets, as on Linux"),
    both(IPV6, 66, "IPV6_RECVTCLASS", Kind::Bit(bit::RECEIVE_CLASS), "of IPv6 packets, as on Linux"),
    both(IPV6, 67, "IPV6_TCLASS", Kind::Word(Opt::Tos), "as IP_TOS"),
    both(IPV6, 78, "IPV6_FREEBIND", Kind::Bit(bit::FREE_BIND), "as IP_FREEBIND"),
];

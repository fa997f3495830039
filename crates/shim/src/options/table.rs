//! The table of all options of socket(7), tcp(7), udp(7) and ip(7), and eft's support for each.
//!
//! `docs/options.md` shows it; a test keeps the two equal, and another tries each row. An option that
//! is not here is refused.

mod ipv6;
mod tcp;

use super::Kind;
use crate::socket::bit;
use core::ffi::c_int;
use eft_channel::socket::{Opt, stamping};
use eft_messages::sockets::membership;
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};

/// What eft does for one option, on streams and on datagram sockets; `None`: it is refused.
pub struct Row {
    pub level: c_int,
    pub number: c_int,
    #[cfg_attr(not(test), allow(dead_code))]
    pub name: &'static str,
    pub stream: Option<Kind>,
    pub datagram: Option<Kind>,
    /// A note for readers of the document.
    #[cfg_attr(not(test), allow(dead_code))]
    pub note: &'static str,
}

impl Row {
    pub fn kind(&self, stream: bool) -> Option<Kind> {
        if stream { self.stream } else { self.datagram }
    }
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    OPTIONS.iter().chain(tcp::OPTIONS).chain(ipv6::OPTIONS)
}

/// The row of an option.
pub fn row(level: c_int, number: c_int) -> Option<&'static Row> {
    rows().find(|row| (row.level, row.number) == (level, number))
}

/// Whether the table covers a level. The kernel handles other levels until a socket is eft's.
pub fn speaks_for(level: c_int) -> bool {
    matches!(level, SOL_SOCKET | IPPROTO_TCP | IPPROTO_UDP | IPPROTO_IP)
}

const fn both(level: c_int, number: c_int, name: &'static str, kind: Kind, note: &'static str) -> Row {
    Row { level, number, name, stream: Some(kind), datagram: Some(kind), note }
}

/// One of IPv4 that streams have, but cannot set (EINVAL, as on Linux).
const fn of_datagrams(
    number: c_int,
    name: &'static str,
    on_streams: fn(&crate::socket::Socket) -> c_int,
    kind: Kind,
    note: &'static str,
) -> Row {
    Row { level: IP, number, name, stream: Some(Kind::Invalid(on_streams)), datagram: Some(kind), note }
}

const fn datagram(level: c_int, number: c_int, name: &'static str, kind: Kind, note: &'static str) -> Row {
    Row { level, number, name, stream: None, datagram: Some(kind), note }
}

const fn no(level: c_int, number: c_int, name: &'static str, note: &'static str) -> Row {
    Row { level, number, name, stream: None, datagram: None, note }
}

const SOCKET: c_int = SOL_SOCKET;
const TCP: c_int = IPPROTO_TCP;
const UDP: c_int = IPPROTO_UDP;
const IP: c_int = IPPROTO_IP;
const IPV6: c_int = IPPROTO_IPV6;

const MEMBER: &str = "[groups](multicast.md); EPROTO on a stream, if it is not refused";
const WHOLE: &str = "[groups](multicast.md)";
const FILTERS: &str = "packet programs are not run; the packet filter is `eft pf`";
const ARRIVAL: &str = "what came over the loopback has no time";
const STAMPS: &str = "of programs of 32 bits; the times of the others have 64 here, too";
const KERNEL_MEMORY: &str = "of the kernel's memory";
const DEVICE_MEMORY: &str = "nothing is received into the memory of a device";
const LABELS: &str = "of local sockets";

/// Those of IPv4, of sockets and of UDP.
const OPTIONS: &[Row] = &[
    no(SOCKET, 1, "SO_DEBUG", "see `eft capture`"),
    both(SOCKET, 2, "SO_REUSEADDR", Kind::Bit(bit::REUSE_ADDRESS), ""),
    both(SOCKET, 3, "SO_TYPE", Kind::Computed(super::computed::kind), ""),
    both(SOCKET, 4, "SO_ERROR", Kind::Error, "taken by reading"),
    no(SOCKET, 5, "SO_DONTROUTE", "packets go by the routing table"),
    both(SOCKET, 6, "SO_BROADCAST", Kind::Flag(Opt::Broadcast), "of no effect on a stream, as on Linux"),
    both(SOCKET, 7, "SO_SNDBUF", Kind::Size(Opt::SendBuffer), "at most the socket's ring is used"),
    both(SOCKET, 8, "SO_RCVBUF", Kind::Size(Opt::ReceiveBuffer), "at most the socket's ring is used"),
    both(SOCKET, 9, "SO_KEEPALIVE", Kind::Flag(Opt::KeepAlive), "of no effect on datagrams, as on Linux"),
    both(SOCKET, 10, "SO_OOBINLINE", Kind::Bit(bit::OOB_INLINE), "of no effect on datagrams, as on Linux"),
    no(SOCKET, 11, "SO_NO_CHECK", "every datagram has a checksum"),
    both(
        SOCKET,
        12,
        "SO_PRIORITY",
        Kind::Priority,
        "reads back; there is one queue to a device, as on Linux without a queueing discipline",
    ),
    both(SOCKET, 13, "SO_LINGER", Kind::Linger, "waits in `close` of a process's last descriptor"),
    no(SOCKET, 14, "SO_BSDCOMPAT", "Linux ignores or refuses it"),
    both(SOCKET, 15, "SO_REUSEPORT", Kind::Bit(bit::REUSE_PORT), "among the programs of one `eft run`"),
    no(SOCKET, 16, "SO_PASSCRED", LABELS),
    no(SOCKET, 17, "SO_PEERCRED", LABELS),
    both(
        SOCKET,
        18,
        "SO_RCVLOWAT",
        Kind::LowWater,
        "for calls that wait; readiness begins with the first byte. Of no effect on datagrams, as on Linux",
    ),
    both(SOCKET, 19, "SO_SNDLOWAT", Kind::Computed(|_| 1), "always 1, as on Linux"),
    both(SOCKET, 20, "SO_RCVTIMEO", Kind::Descriptor, ""),
    both(SOCKET, 21, "SO_SNDTIMEO", Kind::Descriptor, ""),
    both(
        SOCKET,
        25,
        "SO_BINDTODEVICE",
        Kind::NoOptions,
        "reads as none, and can be set to none; others get EINVAL: bind to the interface's address",
    ),
    no(SOCKET, 26, "SO_ATTACH_FILTER", FILTERS),
    no(SOCKET, 27, "SO_DETACH_FILTER", FILTERS),
    no(SOCKET, 28, "SO_PEERNAME", "`getpeername` tells it"),
    both(SOCKET, 29, "SO_TIMESTAMP", Kind::Arrival(stamping::RX_MICROSECONDS), ARRIVAL),
    both(SOCKET, 30, "SO_ACCEPTCONN", Kind::Computed(|s| s.has(bit::LISTENING) as c_int), ""),
    no(SOCKET, 31, "SO_PEERSEC", LABELS),
    both(SOCKET, 32, "SO_SNDBUFFORCE", Kind::Size(Opt::SendBuffer), "as SO_SNDBUF"),
    both(SOCKET, 33, "SO_RCVBUFFORCE", Kind::Size(Opt::ReceiveBuffer), "as SO_RCVBUF"),
    no(SOCKET, 34, "SO_PASSSEC", LABELS),
    both(SOCKET, 35, "SO_TIMESTAMPNS", Kind::Arrival(stamping::RX_NANOSECONDS), ARRIVAL),
    both(
        SOCKET,
        36,
        "SO_MARK",
        Kind::Descriptor,
        "reads back; no rule of eft looks at marks, as on Linux without such rules. Wants CAP_NET_ADMIN or CAP_NET_RAW",
    ),
    Row {
        level: SOCKET,
        number: 37,
        name: "SO_TIMESTAMPING",
        stream: Some(Kind::Stamps),
        datagram: Some(Kind::Stamps),
        note: "by software: TX_SCHED, TX_SOFTWARE, TX_ACK of a stream and RX_SOFTWARE, with OPT_ID, OPT_ID_TCP and OPT_TSONLY; the packet never comes with a time, and what goes over the loopback has none. Hardware's flags are of no effect, others get EINVAL",
    },
    both(SOCKET, 38, "SO_PROTOCOL", Kind::Computed(super::computed::protocol), ""),
    both(SOCKET, 39, "SO_DOMAIN", Kind::Computed(super::computed::domain), ""),
    no(SOCKET, 40, "SO_RXQ_OVFL", "`eft stat udp` counts what was dropped"),
    no(SOCKET, 41, "SO_WIFI_STATUS", "of wireless devices"),
    no(SOCKET, 42, "SO_PEEK_OFF", "a peek begins with the first byte"),
    no(SOCKET, 43, "SO_NOFCS", "of raw sockets"),
    no(SOCKET, 44, "SO_LOCK_FILTER", FILTERS),
    no(SOCKET, 45, "SO_SELECT_ERR_QUEUE", "an error is no priority data"),
    no(SOCKET, 46, "SO_BUSY_POLL", "the components poll, see `eft move`"),
    both(
        SOCKET,
        47,
        "SO_MAX_PACING_RATE",
        Kind::PacingLimit,
        "in 32 or 64 bits; datagrams are not paced, as on Linux without the queueing discipline fq",
    ),
    no(SOCKET, 48, "SO_BPF_EXTENSIONS", FILTERS),
    both(SOCKET, 49, "SO_INCOMING_CPU", Kind::Computed(|_| -1), "-1: none"),
    no(SOCKET, 50, "SO_ATTACH_BPF", FILTERS),
    no(SOCKET, 51, "SO_ATTACH_REUSEPORT_CBPF", FILTERS),
    no(SOCKET, 52, "SO_ATTACH_REUSEPORT_EBPF", FILTERS),
    no(SOCKET, 53, "SO_CNX_ADVICE", "neighbours are looked after anyway"),
    both(
        SOCKET,
        55,
        "SO_MEMINFO",
        Kind::Memory,
        "bytes in the socket's rings; what is the kernel's own is 0",
    ),
    both(SOCKET, 56, "SO_INCOMING_NAPI_ID", Kind::Computed(|_| 0), "0: none"),
    no(SOCKET, 57, "SO_COOKIE", "a socket begins in the kernel, and would have two"),
    no(SOCKET, 59, "SO_PEERGROUPS", LABELS),
    Row {
        stream: Some(Kind::Bit(bit::ZEROCOPY)),
        datagram: Some(Kind::Bit(bit::ZEROCOPY)),
        ..no(
            SOCKET,
            60,
            "SO_ZEROCOPY",
            "a send is one copy, into the ring, and its completion says so, at once",
        )
    },
    no(SOCKET, 61, "SO_TXTIME", "no packet waits for a time of its own"),
    no(SOCKET, 62, "SO_BINDTOIFINDEX", "bind to the interface's address"),
    no(SOCKET, 63, "SO_TIMESTAMP_NEW", STAMPS),
    no(SOCKET, 64, "SO_TIMESTAMPNS_NEW", STAMPS),
    no(SOCKET, 65, "SO_TIMESTAMPING_NEW", STAMPS),
    both(SOCKET, 66, "SO_RCVTIMEO_NEW", Kind::Descriptor, "as SO_RCVTIMEO"),
    both(SOCKET, 67, "SO_SNDTIMEO_NEW", Kind::Descriptor, "as SO_SNDTIMEO"),
    no(SOCKET, 68, "SO_DETACH_REUSEPORT_BPF", FILTERS),
    no(SOCKET, 69, "SO_PREFER_BUSY_POLL", "the components poll, see `eft move`"),
    no(SOCKET, 70, "SO_BUSY_POLL_BUDGET", "the components poll, see `eft move`"),
    no(SOCKET, 71, "SO_NETNS_COOKIE", "a stack is no namespace of the kernel"),
    no(SOCKET, 72, "SO_BUF_LOCK", KERNEL_MEMORY),
    no(SOCKET, 73, "SO_RESERVE_MEM", KERNEL_MEMORY),
    no(SOCKET, 74, "SO_TXREHASH", "a connection keeps its flow label"),
    no(SOCKET, 75, "SO_RCVMARK", "marks have no effect"),
    no(SOCKET, 76, "SO_PASSPIDFD", LABELS),
    no(SOCKET, 77, "SO_PEERPIDFD", LABELS),
    no(SOCKET, 78, "SO_DEVMEM_LINEAR", DEVICE_MEMORY),
    no(SOCKET, 79, "SO_DEVMEM_DMABUF", DEVICE_MEMORY),
    no(SOCKET, 80, "SO_DEVMEM_DONTNEED", DEVICE_MEMORY),
    no(SOCKET, 82, "SO_RCVPRIORITY", "packets have no priority"),
    no(SOCKET, 83, "SO_PASSRIGHTS", LABELS),
    no(SOCKET, 84, "SO_INQ", "of local sockets; TCP_INQ of streams"),
    Row {
        level: UDP,
        number: 1,
        name: "UDP_CORK",
        stream: None,
        datagram: Some(Kind::DatagramCork),
        note: "",
    },
    no(UDP, 100, "UDP_ENCAP", "there is no IPsec"),
    no(UDP, 101, "UDP_NO_CHECK6_TX", "every datagram has a checksum"),
    no(UDP, 102, "UDP_NO_CHECK6_RX", "every datagram has a checksum"),
    Row {
        level: UDP,
        number: 103,
        name: "UDP_SEGMENT",
        stream: None,
        datagram: Some(Kind::Segment),
        note: "with `sendmsg` too; at most 128 datagrams of a call; the device cuts (Linux 6.2 or newer), or its NIC",
    },
    Row {
        level: UDP,
        number: 104,
        name: "UDP_GRO",
        stream: None,
        datagram: Some(Kind::Flag(Opt::MergeReceived)),
        note: "what arrives in one turn of udp is received at once",
    },
    both(IP, 1, "IP_TOS", Kind::Word(Opt::Tos), ""),
    both(IP, 2, "IP_TTL", Kind::Word(Opt::Ttl), ""),
    no(IP, 3, "IP_HDRINCL", "of raw sockets"),
    both(
        IP,
        4,
        "IP_OPTIONS",
        Kind::NoOptions,
        "there are none: reads so, and can be set to none; others get EINVAL",
    ),
    no(IP, 5, "IP_ROUTER_ALERT", "of raw sockets"),
    no(IP, 6, "IP_RECVOPTS", "packets' options are not kept"),
    no(IP, 7, "IP_RETOPTS", "packets' options are not kept"),
    both(IP, 8, "IP_PKTINFO", Kind::Bit(bit::PACKET_INFO), "of no effect on a stream, as on Linux"),
    no(IP, 9, "IP_PKTOPTIONS", "of a stream, whose packets are not kept"),
    both(
        IP,
        10,
        "IP_MTU_DISCOVER",
        Kind::DontFragment,
        "a stream lets its packets be fragmented on their way if it is told DONT, and refuses IP_PMTUDISC_INTERFACE and OMIT (EINVAL); a datagram socket fragments unless it is told DO or PROBE",
    ),
    Row {
        level: IP,
        number: 11,
        name: "IP_RECVERR",
        stream: None,
        datagram: Some(Kind::ErrorQueue),
        note: "a stream gets errors by its calls; `poll` reports POLLERR, epoll that the socket is readable",
    },
    both(IP, 12, "IP_RECVTTL", Kind::Bit(bit::RECEIVE_TTL), "of no effect on a stream, as on Linux"),
    both(IP, 13, "IP_RECVTOS", Kind::Bit(bit::RECEIVE_TOS), "of no effect on a stream, as on Linux"),
    both(IP, 14, "IP_MTU", Kind::PathMtu, "of a socket with a peer"),
    both(
        IP,
        15,
        "IP_FREEBIND",
        Kind::Bit(bit::FREE_BIND),
        "of effect once the stack has the address (`eft addr add`)",
    ),
    no(IP, 16, "IP_IPSEC_POLICY", "there is no IPsec"),
    no(IP, 17, "IP_XFRM_POLICY", "there is no IPsec"),
    no(IP, 18, "IP_PASSSEC", "there are no labels of security"),
    no(
        IP,
        19,
        "IP_TRANSPARENT",
        "nothing is sent from, or delivered to, an address that the stack does not have",
    ),
    no(IP, 20, "IP_RECVORIGDSTADDR", "nothing is redirected"),
    no(IP, 21, "IP_MINTTL", "a program that wants it looks at IP_RECVTTL"),
    no(IP, 22, "IP_NODEFRAG", "of raw sockets"),
    no(IP, 23, "IP_CHECKSUM", "checksums are not told"),
    no(IP, 24, "IP_BIND_ADDRESS_NO_PORT", "a bound socket has its port"),
    no(IP, 25, "IP_RECVFRAGSIZE", "fragments are not counted for programs"),
    no(IP, 26, "IP_RECVERR_RFC4884", "errors come without what is behind their quotation"),
    of_datagrams(
        32,
        "IP_MULTICAST_IF",
        |_| 0,
        Kind::MulticastInterface,
        "reads as the address that was named",
    ),
    of_datagrams(33, "IP_MULTICAST_TTL", |_| 1, Kind::MulticastHops, "0: it does not leave the host"),
    both(IP, 34, "IP_MULTICAST_LOOP", Kind::Unless(Opt::NoMulticastLoop), ""),
    datagram(IP, 35, "IP_ADD_MEMBERSHIP", Kind::Membership(membership::JOIN), MEMBER),
    datagram(IP, 36, "IP_DROP_MEMBERSHIP", Kind::Membership(membership::LEAVE), MEMBER),
    datagram(IP, 37, "IP_UNBLOCK_SOURCE", Kind::Membership(membership::UNBLOCK), MEMBER),
    datagram(IP, 38, "IP_BLOCK_SOURCE", Kind::Membership(membership::BLOCK), MEMBER),
    datagram(IP, 39, "IP_ADD_SOURCE_MEMBERSHIP", Kind::Membership(membership::JOIN_SOURCE), MEMBER),
    datagram(IP, 40, "IP_DROP_SOURCE_MEMBERSHIP", Kind::Membership(membership::LEAVE_SOURCE), MEMBER),
    datagram(IP, 41, "IP_MSFILTER", Kind::Filter, WHOLE),
    datagram(IP, 42, "MCAST_JOIN_GROUP", Kind::Membership(membership::JOIN), MEMBER),
    datagram(IP, 43, "MCAST_BLOCK_SOURCE", Kind::Membership(membership::BLOCK), MEMBER),
    datagram(IP, 44, "MCAST_UNBLOCK_SOURCE", Kind::Membership(membership::UNBLOCK), MEMBER),
    datagram(IP, 45, "MCAST_LEAVE_GROUP", Kind::Membership(membership::LEAVE), MEMBER),
    datagram(IP, 46, "MCAST_JOIN_SOURCE_GROUP", Kind::Membership(membership::JOIN_SOURCE), MEMBER),
    datagram(IP, 47, "MCAST_LEAVE_SOURCE_GROUP", Kind::Membership(membership::LEAVE_SOURCE), MEMBER),
    datagram(IP, 48, "MCAST_MSFILTER", Kind::Filter, WHOLE),
    datagram(IP, 49, "IP_MULTICAST_ALL", Kind::Unless(Opt::OwnGroupsOnly), ""),
    no(IP, 50, "IP_UNICAST_IF", "bind to the interface's address"),
    no(IP, 51, "IP_LOCAL_PORT_RANGE", "ports are chosen from the whole range (RFC 6056)"),
    no(IP, 52, "IP_PROTOCOL", "SO_PROTOCOL tells it"),
];

#[cfg(test)]
mod tests;

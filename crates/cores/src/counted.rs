//! Which of the components' counters make the indicators of the traffic, for whoever reads their pages.

use eft_messages::Role;

use crate::sample::Traffic;

/// A field of [`Traffic`] and the counters that it is the sum of.
pub type Indicator = (&'static [&'static str], fn(&mut Traffic) -> &mut u64);

/// The counters of the bytes that a component moves, whatever its role.
pub const BYTES: [&str; 4] = ["received_bytes", "sent_bytes", "bytes_in", "bytes_out"];

const TCP: &[Indicator] = &[
    (&["received_bytes"], |t| &mut t.received_bytes),
    (&["sent_bytes"], |t| &mut t.sent_bytes),
    (&["received_segments"], |t| &mut t.received_segments),
    (&["sent_segments"], |t| &mut t.sent_segments),
    (&["pure_acks_sent"], |t| &mut t.sent_empty_segments),
    (&["received_empty_segments"], |t| &mut t.received_empty_segments),
    (&["outbound_connections"], |t| &mut t.outbound_connections),
    (&["accepted_connections"], |t| &mut t.accepted_connections),
    (&["closed_connections"], |t| &mut t.closed_connections),
    (&["connections_open"], |t| &mut t.connections_open),
];

const UDP: &[Indicator] = &[
    (&["received_bytes"], |t| &mut t.received_bytes),
    (&["sent_bytes"], |t| &mut t.sent_bytes),
    (&["received_datagrams"], |t| &mut t.received_segments),
    (&["sent_datagrams"], |t| &mut t.sent_segments),
    (&["opened_sockets"], |t| &mut t.opened_sockets),
    (&["closed_sockets"], |t| &mut t.closed_sockets),
];

const IP: &[Indicator] = &[
    (&["bytes_in"], |t| &mut t.ip_received_bytes),
    (&["bytes_out"], |t| &mut t.ip_sent_bytes),
    (&["arp_in", "arp_out"], |t| &mut t.arp_packets),
    (&["icmp_in", "icmp_out"], |t| &mut t.icmp_packets),
];

/// The indicators of a role's components.
pub fn indicators(role: Role) -> &'static [Indicator] {
    match role {
        Role::Tcp => TCP,
        Role::Udp => UDP,
        Role::Ip => IP,
        _ => &[],
    }
}

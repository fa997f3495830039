//! What ip counts. Bytes are those of IP packets with their headers.

eft_component::counters! {
    PacketsIn => "packets_in",
    BytesIn => "bytes_in",
    PacketsOut => "packets_out",
    BytesOut => "bytes_out",
    LocalPackets => "local_packets",
    LocalBytes => "local_bytes",
    ArpIn => "arp_in",
    ArpOut => "arp_out",
    /// Neighbour discovery of IPv6.
    DiscoveryIn => "discovery_in",
    DiscoveryOut => "discovery_out",
    /// Redirects that were followed.
    Redirected => "redirected",
    /// IGMP and MLD: queries and reports.
    MembershipIn => "membership_in",
    MembershipOut => "membership_out",
    IcmpIn => "icmp_in",
    IcmpOut => "icmp_out",
    EchoReplies => "echo_replies",
    IcmpErrorsIn => "icmp_errors_in",
    IcmpErrorsOut => "icmp_errors_out",
    IcmpRateLimited => "icmp_rate_limited",
    FragmentsIn => "fragments_in",
    FragmentsOut => "fragments_out",
    Reassembled => "reassembled",
    ReassemblyTimeouts => "reassembly_timeouts",
    FilterAsks => "filter_asks",
    FilterAsksAgain => "filter_asks_again",
    /// Packets that passed by a grant, without a question.
    FilterGranted => "filter_granted",
    FilterBlockedIn => "filter_blocked_in",
    FilterBlockedOut => "filter_blocked_out",
    /// Blocked packets whose sender was informed.
    FilterReturned => "filter_returned",
    FilterReturnsLimited => "filter_returns_rate_limited",
    Resubmitted => "resubmitted",
    /// Packets that a dead tcp had not given back.
    GivenAgain => "given_again",
    Routes => "routes_asked",
    NeighbourTimeouts => "neighbour_timeouts",
    /// Another host claims an address of ours.
    AddressConflicts => "address_conflicts",
    /// IPv6 addresses that another host had first.
    AddressesGivenUp => "addresses_given_up",
    HeldEarly => "held_early",
    ConfigRefused => "config_refused",
    DropMalformed => "drop_malformed",
    /// Messages that came twice: the slot may hold something else by now.
    DropRepeated => "drop_repeated",
    /// Frames that a nic got again for want of an answer.
    Repeated => "repeated_requests",
    DropHeaderChecksum => "drop_header_checksum",
    DropMartian => "drop_martian",
    DropNotOurs => "drop_not_ours",
    DropSourceRouted => "drop_source_routed",
    /// The interface has no IPv6 address.
    DropIpv6 => "drop_ipv6",
    DropEthertype => "drop_ethertype",
    DropArp => "drop_arp",
    DropArpSpoofed => "drop_arp_spoofed",
    DropDiscovery => "drop_discovery",
    DropDiscoverySpoofed => "drop_discovery_spoofed",
    DropMembership => "drop_membership",
    DropIcmp => "drop_icmp",
    DropFragment => "drop_fragment",
    DropFragmentOverlap => "drop_fragment_overlap",
    DropReassemblyFull => "drop_reassembly_full",
    DropProtocol => "drop_protocol",
    /// A transport's queue is more than half full, or it is being restarted.
    DropTransportFull => "drop_transport_full",
    /// Inputs that have killed two predecessors, and packets over which several transports died.
    DropFatal => "drop_fatal",
    DropArrivalsFull => "drop_arrivals_full",
    DropNoSlot => "drop_no_slot",
    /// A transport's request that is malformed.
    RefusedSend => "refused_send",
    /// Packets that are not what a transport had sealed: something changed them on their way.
    DropDamaged => "drop_damaged",
    RefusedSource => "refused_source",
    RefusedTooLong => "refused_too_long",
    RefusedFull => "refused_full",
    /// Groups or sources for which there was no room.
    RefusedGroup => "refused_group",
    NoRoute => "no_route",
    LinkDown => "link_down",
    NeighbourFull => "neighbour_full",
    /// Answers to unknown questions.
    StaleReply => "stale_reply",
    BadDone => "bad_done",
    /// Router advertisements that were read.
    RouterAdvertisements => "router_advertisements",
    /// Messages of DHCP clients and to them.
    DhcpOut => "dhcp_out",
    DhcpIn => "dhcp_in",
    Transmissions => "transmissions",
    Arrivals => "arrivals",
    /// Connections whose ordinary packets pass without a question.
    Grants => "grants",
    /// Predecessors that failed while an input ran.
    Blamed => "blamed_inputs",
}

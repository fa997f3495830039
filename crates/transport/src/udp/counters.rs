//! udp's counters: the traffic indicators that the scheduler reads, and what went wrong.

eft_component::counters! {
    ReceivedBytes => "received_bytes",
    ReceivedDatagrams => "received_datagrams",
    SentBytes => "sent_bytes",
    SentDatagrams => "sent_datagrams",
    /// Datagrams that a record had room for behind another (UDP_GRO).
    Merged => "merged_datagrams",
    Opened => "opened_sockets",
    Closed => "closed_sockets",
    /// Gauge: blocks in use.
    Blocks => "blocks",
    DropMalformed => "drop_malformed",
    /// Messages that came twice: the slot may hold something else by now.
    DropRepeated => "drop_repeated",
    DropChecksum => "drop_checksum",
    DropUnreadable => "drop_unreadable",
    DropNoSocket => "drop_no_socket",
    DropRingFull => "drop_ring_full",
    DropNoDomain => "drop_domain_not_open",
    DropUnroutable => "drop_unroutable",
    DropNoDestination => "drop_no_destination",
    DropTooLong => "drop_too_long",
    /// To a group, with IP_MULTICAST_TTL 0.
    DropNoHops => "drop_no_hops",
    DropNotAllowed => "drop_not_allowed",
    IcmpApplied => "icmp_applied",
    DropIcmp => "drop_icmp",
    HostilePages => "hostile_pages",
    StaleReplies => "stale_replies",
    /// Requests to ip that were made again for want of an answer.
    Repeated => "repeated_requests",
    SendErrors => "send_errors",
    /// Sockets that were given up, since their state was invalid.
    Quarantined => "quarantined_blocks",
    /// Sockets whose state was invalid, and that were made anew from their pages.
    Remade => "remade_sockets",
    /// Sockets of whose state a bit had changed, and was changed back.
    Mended => "mended_blocks",
    Resubmitted => "resubmitted_requests",
    Rebirths => "rebirths",
    /// Datagrams of which some was not as it had arrived after it was copied into a ring, and was copied in another way.
    CopiedAgain => "copied_again",
    /// Inputs that have killed two predecessors and were not run.
    DropFatal => "drop_fatal",
    /// Predecessors that failed while an input ran.
    Blamed => "blamed_inputs",
}

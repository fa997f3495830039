//! tcp's counters: the traffic indicators that the scheduler reads, and what went wrong.

eft_component::counters! {
    /// Payload bytes put into receive rings in order.
    ReceivedBytes => "received_bytes",
    /// Segments as they were on the wire (a merged one counts as many).
    ReceivedSegments => "received_segments",
    /// Received segments without payload.
    ReceivedEmpty => "received_empty_segments",
    SentBytes => "sent_bytes",
    SentSegments => "sent_segments",
    Outbound => "outbound_connections",
    Accepted => "accepted_connections",
    /// Connections that ended or entered TIME-WAIT.
    Closed => "closed_connections",
    /// Gauge: connections that were established and are not over.
    Open => "connections_open",
    /// Gauge: control blocks in use.
    Blocks => "blocks",
    RetransmitTimeouts => "retransmit_timeouts",
    /// Timeouts before an acknowledgment that was only late.
    SpuriousTimeouts => "spurious_timeouts",
    /// Recoveries in which nothing had been lost.
    SpuriousRecoveries => "spurious_recoveries",
    /// Tail loss probes that sent old data again, and those that repaired a loss.
    LossProbes => "loss_probes",
    ProbesRepaired => "loss_probes_repaired",
    /// Acknowledgments that report duplicates.
    DuplicatesReported => "duplicates_reported",
    /// Received segments with a router's mark (RFC 3168), and windows reduced since segments of ours were marked.
    MarksReceived => "marks_received",
    MarkReductions => "mark_reductions",
    FastRecoveries => "fast_recoveries",
    RetransmittedSegments => "retransmitted_segments",
    RetransmittedBytes => "retransmitted_bytes",
    DuplicateAcks => "duplicate_acks",
    OutOfOrder => "out_of_order_segments",
    DuplicateData => "duplicate_segments",
    PureAcksSent => "pure_acks_sent",
    ProbesSent => "probes_sent",
    Resets => "resets_sent",
    ResetsReceived => "resets_received",
    ChallengeAcks => "challenge_acks",
    TimeWaitReused => "time_wait_reused",
    TimeWaitEvicted => "time_wait_evicted",
    Timeouts => "connections_timed_out",
    FailedConnects => "failed_connects",
    DropMalformed => "drop_malformed",
    /// Messages that came twice: the slot may hold something else by now.
    DropRepeated => "drop_repeated",
    DropChecksum => "drop_checksum",
    /// Segments without a signature for who wants one, with one for who wants none, and with another than its key makes (RFC 2385).
    DropUnsigned => "drop_unsigned",
    DropUnexpectedSignature => "drop_unexpected_signature",
    DropSignature => "drop_bad_signature",
    /// Segments with a KeyID that no key of TCP-AO has (RFC 5925 §7.5.2), and ICMP errors that TCP-AO ignores (§7.8).
    DropUnknownKey => "drop_unknown_key",
    IcmpIgnored => "icmp_ignored",
    /// Connections that sign with another key from then on, since the peer asked for it (§7.5.2.e).
    KeysChanged => "keys_changed",
    DropUnreadable => "drop_unreadable",
    DropNoSocket => "drop_no_socket",
    /// SYNs that were answered with a cookie, acknowledgments that brought a valid cookie back, and acknowledgments of no
    /// connection meanwhile that did not.
    SynCookiesSent => "syn_cookies_sent",
    SynCookiesReceived => "syn_cookies_received",
    SynCookiesFailed => "syn_cookies_failed",
    /// Of a server's TCP Fast Open: SYNs that asked for a cookie, connections that a cookie opened at once, and SYNs whose
    /// cookie was not ours, or no longer valid.
    FastOpenAsked => "fast_open_asked",
    FastOpened => "fast_opened",
    FastOpenRefused => "fast_open_refused",
    /// Of a client's: SYNs that carried data, SYN-ACKs that acknowledged some, and servers that are avoided for a while,
    /// since their SYN-ACK did not or such a SYN was not answered.
    FastOpenSent => "fast_open_sent",
    FastOpenTaken => "fast_open_taken",
    FastOpenFailed => "fast_open_failed",
    /// Larger packets that were sent to learn the path's MTU (RFC 4821), those that arrived, and paths that seem to swallow
    /// packets of the size that was thought to pass.
    MtuProbes => "mtu_probes",
    MtuProbesPassed => "mtu_probes_passed",
    BlackHoles => "mtu_black_holes",
    DropSynBacklog => "drop_syn_backlog",
    DropAcceptQueue => "drop_accept_queue",
    DeferredAccepts => "deferred_accepts",
    DropNoBlock => "drop_no_block",
    DropNoSlot => "drop_no_slot",
    DropWindow => "drop_out_of_window",
    DropPaws => "drop_paws",
    DropAck => "drop_bad_ack",
    DropReassembly => "drop_reassembly_full",
    DropNoDomain => "drop_domain_not_open",
    DropIcmp => "drop_icmp",
    IcmpApplied => "icmp_applied",
    HostilePages => "hostile_pages",
    StaleReplies => "stale_replies",
    /// Requests to ip that were made again for want of an answer.
    Repeated => "repeated_requests",
    SendErrors => "send_errors",
    /// Connections that were taken from the accept queue and never attached.
    Abandoned => "abandoned_connections",
    /// Inputs that have killed two predecessors and were not run, and connections given up for such inputs.
    DropFatal => "drop_fatal",
    Quarantined => "quarantined_blocks",
    /// Sockets among them whose programs were told: connections that ended, and listeners that listen again.
    TakenUp => "taken_up",
    /// Sockets of whose state a bit had changed, and was changed back.
    Mended => "mended_blocks",
    Resubmitted => "resubmitted_requests",
    Rebirths => "rebirths",
    /// Payloads of which some was not as it had arrived after it was copied into a ring, and was copied in another way.
    CopiedAgain => "copied_again",
    /// Predecessors that failed while an input ran.
    Blamed => "blamed_inputs",
}

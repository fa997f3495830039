//! What sockets counts.

eft_component::counters! {
    Requests => "requests",
    Refused => "requests_refused",
    OverQuota => "over_quota",
    PrivilegedPortRefused => "privileged_port_refused",
    ForeignSlotRefused => "foreign_slot_refused",
    Closed => "sockets_closed",
    Domains => "domains",
    StaleReplies => "stale_replies",
    DamagedReplies => "damaged_replies",
    Repeated => "repeated_requests",
    AskedTwice => "asked_twice",
}

//! What a NIC counts.

eft_component::counters! {
    FramesIn => "frames_in",
    BytesIn => "bytes_in",
    FramesOut => "frames_out",
    BytesOut => "bytes_out",
    /// Frames that the device segments or that were merged on arrival.
    LargeOut => "large_out",
    LargeIn => "large_in",
    /// Frames that became part of the one before.
    Coalesced => "coalesced",
    /// `Send`s whose descriptor is malformed.
    DropBadSend => "drop_bad_send",
    /// Frames that are not what a transport had sealed: something changed them on their way.
    DropDamaged => "drop_damaged",
    /// Messages that came twice: the slot may hold something else by now.
    DropRepeated => "drop_repeated",
    DropTooLong => "drop_too_long",
    DropDevice => "drop_device",
    DropPendingFull => "drop_pending_full",
    /// Frames that the device could not deliver.
    ReceiveErrors => "receive_errors",
    /// `Done`s for frames that ip does not have.
    BadDone => "bad_done",
    WouldBlock => "would_block",
    /// Turns in which frames were left in the device because ip's queue was half full.
    HeldBack => "held_back",
    /// Turns in which frames were left in the device because every slot was in use.
    NoSlot => "no_slot",
    /// Frames of which ip was told again, since it did not give them back for long.
    Repeated => "repeated_requests",
    Redelivered => "redelivered",
    /// Frames that a predecessor had read and ip had not heard of.
    Inherited => "inherited",
    LinkChanges => "link_changes",
    Pending => "pending",
    /// Frames that ip has not given back.
    Held => "held",
}

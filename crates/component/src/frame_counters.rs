//! What the server loop counts, whatever its engine.

/// Counters that every server keeps before its engine's own.
pub const FRAME_COUNTERS: &[&str] = &[
    "turns",
    "messages_in",
    "messages_out",
    "undecodable",
    "backlog_max",
    "wakes_sent",
    "effects",
    "sleeps",
    "late_us_max",
    "peers_reborn",
    "descriptor_calls",
    "faults_injected",
];

/// Indices into [`FRAME_COUNTERS`].
pub mod counter {
    pub const TURNS: usize = 0;
    pub const MESSAGES_IN: usize = 1;
    pub const MESSAGES_OUT: usize = 2;
    pub const UNDECODABLE: usize = 3;
    pub const BACKLOG_MAX: usize = 4;
    pub const WAKES_SENT: usize = 5;
    pub const EFFECTS: usize = 6;
    pub const SLEEPS: usize = 7;
    pub const LATE_US_MAX: usize = 8;
    pub const PEERS_REBORN: usize = 9;
    /// System calls on applications' descriptors (tokens, plugs).
    pub const DESCRIPTOR_CALLS: usize = 10;
    /// Messages that a fault of [`crate::fault`] struck.
    pub const FAULTS_INJECTED: usize = 11;
}
